"""The worker's HTTP server: `/metrics` for Prometheus, by prometheus-client's own handler, and `/healthz`.

One thread answers one request after the other. prometheus-client's own server starts a thread for each request and
takes three times the CPU time, and Prometheus scrapes every worker each second, beside the trial of one of them.
"""

from __future__ import annotations

import http
import io
import socket
import socketserver
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PATIENCE = 2.0
"""Seconds for a whole request and its response: while one client is served, Prometheus waits."""

_PROMPT = 0.5
"""Seconds: Prometheus closes a scrape after one second, the network included."""


class MetricsServer:
    """Serves a collector's metrics from a thread, until the process ends. `scrapes` counts those that have begun.

    A client that takes longer than `patience` seconds, whatever it does, is cut off. Raises OSError where `host` and
    `port` can't be listened on.
    """

    def __init__(self, host: str, port: int, collector: Collector, patience: float = _PATIENCE) -> None:
        self.scrapes = 0
        self._last_began = 0.0
        self._scraped = threading.Condition()
        registry = CollectorRegistry()
        registry.register(collector)
        self._server = _Server((host, port), _handler(self, registry, patience))
        # Nobody calls shutdown(), which the interval is for: no idle worker wakes up twice a second.
        threading.Thread(target=self._server.serve_forever, args=(3600.0,), name="metrics", daemon=True).start()

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


class _Received(io.RawIOBase):
    """What a client sends until a deadline (monotonic). A socket's own time limit begins anew with each byte."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        _limit(self._connection, self._deadline)
        return self._connection.recv_into(buffer)


def _limit(connection: socket.socket, deadline: float) -> None:
    """Let the connection's next operation end by the deadline. Raises TimeoutError after it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the client was too slow")
    connection.settimeout(left)


def _is_open(connection: socket.socket) -> bool:
    """Whether the client has not closed its end."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


class _Server(socketserver.TCPServer):
    """`http.server.HTTPServer` without its look-up of the host's name, which can take seconds."""

    allow_reuse_address = True
    request_queue_size = 16

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that went away is no error
            super().handle_error(request, client_address)


def _handler(server: MetricsServer, registry: CollectorRegistry, patience: float) -> type[MetricsHandler]:
    class Handler(MetricsHandler):
        server_version = "clientlab"
        sys_version = ""

        def setup(self) -> None:
            super().setup()
            self.deadline = time.monotonic() + patience
            self.rfile = io.BufferedReader(_Received(self.connection, self.deadline))

        def do_GET(self) -> None:  # noqa: N802 - http.server's name
            _limit(self.connection, self.deadline)  # of `sendall` as a whole
            path = self.path.partition("?")[0]
            if path == "/healthz":
                self._answer(http.HTTPStatus.OK, "ok")
            elif path == "/metrics":
                self._metrics()
            else:
                self._answer(http.HTTPStatus.NOT_FOUND, "there are /metrics and /healthz")

        def _metrics(self) -> None:
            began = time.monotonic()
            server.scrapes += 1
            super().do_GET()
            if _is_open(self.connection):  # else Prometheus gave up while the request waited in the queue
                server.answered(began)

        def _answer(self, status: http.HTTPStatus, line: str) -> None:
            content = f"{line}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    Handler.registry = registry
    return Handler
