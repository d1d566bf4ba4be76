"""The worker's HTTP server: `/metrics` for Prometheus, by prometheus-client's own handler, and `/healthz`.

One thread answers one scrape after the other. prometheus-client's own server starts a thread for each request and takes
three times the CPU time, and Prometheus scrapes every worker each second, beside the trial of one of them.
"""

from __future__ import annotations

import http
import io
import threading
import time

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.registry import Collector

from clientlab.worker.connections import Answered, PageServer

_PATIENCE = 2.0
"""Seconds for a whole request, and for a whole response."""

_PROMPT = 0.5
"""Seconds: Prometheus closes a scrape after one second, the network included."""


class MetricsServer:
    """Serves a collector's metrics from threads, until the process ends. `scrapes` counts those that have begun.

    A client that takes longer than `patience` seconds, whatever it does, is cut off. Raises OSError where `host` and
    `port` can't be listened on.
    """

    def __init__(self, host: str, port: int, collector: Collector, patience: float = _PATIENCE) -> None:
        self.scrapes = 0
        self._last_began = 0.0
        self._scraped = threading.Condition()
        registry = CollectorRegistry()
        registry.register(collector)
        self._handler = type("Handler", (_Handler,), {"registry": registry})
        self._connections = PageServer(host, port, patience, self)

    @property
    def port(self) -> int:
        """The port, also where 0 asked for a free one."""
        return self._connections.port

    def wait_for_scrape(self, since: float, seconds: float) -> bool:
        """Wait until a scrape that began after `since` (monotonic) was answered; False after `seconds` without one."""
        with self._scraped:
            return self._scraped.wait_for(lambda: self._last_began > since, seconds)

    def is_scrape(self, request: bytes) -> bool:
        """Whether a request is for the metrics, and may have to wait for the job."""
        return request.startswith((b"GET /metrics ", b"GET /metrics?"))

    def answer(self, request: bytes) -> bytes:
        """The answer to a request, from its status line on."""
        handler: _Handler = self._handler(request)
        return handler.answer()

    def scrape(self, request: bytes) -> tuple[bytes, Answered]:
        """The answer to a request for the metrics, and what to call when the client has it."""
        began = time.monotonic()
        self.scrapes += 1
        return self.answer(request), lambda: self._answered(began)

    def _answered(self, began: float) -> None:
        """Note a scrape that was answered, if its reader can't have closed it before."""
        if time.monotonic() - began < _PROMPT:
            with self._scraped:
                self._last_began = began
                self._scraped.notify_all()


class _Handler(MetricsHandler):
    """prometheus-client's handler of one request that is here already; its answer is not sent."""

    server_version = "clientlab"
    sys_version = ""

    def __init__(self, request: bytes) -> None:  # without a socket: BaseHTTPRequestHandler would serve it at once
        self.client_address = ("", 0)
        self.rfile = io.BytesIO(request)
        self.wfile = self._answer = io.BytesIO()

    def answer(self) -> bytes:
        """The answer, from its status line on."""
        self.handle_one_request()
        return self._answer.getvalue()

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        path = self.path.partition("?")[0]
        if path == "/healthz":
            self._say(http.HTTPStatus.OK, "ok")
        elif path == "/metrics":
            super().do_GET()
        else:
            self._say(http.HTTPStatus.NOT_FOUND, "there are /metrics and /healthz")

    def _say(self, status: http.HTTPStatus, line: str) -> None:
        content = f"{line}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
