"""The worker's HTTP server: `/metrics` for Prometheus and `/healthz`.

One thread answers one request after the other. prometheus-client's own server starts a thread for each request and
takes three times the CPU time, and Prometheus scrapes every worker each second, beside the trial of one of them.
"""

from __future__ import annotations

import http
import socketserver
import sys
import threading
import time
from typing import Any

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.registry import Collector

_PROMPT = 0.5
"""Seconds: Prometheus closes a scrape after one second, the network included."""


class MetricsServer:
    """Serves a collector's metrics from a thread, until the process ends. `scrapes` counts those that have begun.

    Raises OSError if it cannot listen on `host` and `port`.
    """

    def __init__(self, host: str, port: int, collector: Collector) -> None:
        self.scrapes = 0
        self._last_began = 0.0
        self._scraped = threading.Condition()
        registry = CollectorRegistry()
        registry.register(collector)
        handler = type("Handler", (_Handler,), {"registry": registry, "metrics_server": self})
        self._server = _Server((host, port), handler)
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    @property
    def port(self) -> int:
        """The port, also where 0 asked for a free one."""
        return int(self._server.server_address[1])

    def wait_for_scrape(self, since: float, seconds: float) -> bool:
        """Wait until a scrape that began after `since` (monotonic) was answered; False after `seconds` without one."""
        with self._scraped:
            return self._scraped.wait_for(lambda: self._last_began > since, seconds)

    def answered(self, began: float) -> None:
        """Note a scrape that was answered, if its reader can't have closed it before."""
        if time.monotonic() - began < _PROMPT:
            with self._scraped:
                self._last_began = began
                self._scraped.notify_all()


class _Server(socketserver.TCPServer):  # http.server's looks up the name of the host, which may take seconds
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show no traceback for a client that has gone away, such as a health check that reads one line."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(MetricsHandler):
    metrics_server: MetricsServer
    timeout = 2.0  # for each read and write of the connection: a silent client holds the thread no longer
    server_version = "clientlab"
    sys_version = ""

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        path = self.path.partition("?")[0]
        if path == "/healthz":
            self._send_line(http.HTTPStatus.OK, "ok")
        elif path == "/metrics":
            began = time.monotonic()
            self.metrics_server.scrapes += 1
            super().do_GET()
            self.metrics_server.answered(began)
        else:
            self._send_line(http.HTTPStatus.NOT_FOUND, "there are /metrics and /healthz")

    def _send_line(self, status: http.HTTPStatus, line: str) -> None:
        content = f"{line}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
