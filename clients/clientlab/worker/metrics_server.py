"""The worker's HTTP server: `/metrics` for Prometheus. One thread reads all requests and writes all answers.

A client that is slow or silent holds a connection for some seconds, and no thread. If there are too many, the oldest
one that has not sent its whole request goes first.

One thread answers one scrape after the other. prometheus-client's own server starts a thread for each request and takes
three times the CPU time, and Prometheus scrapes every worker each second, beside the trial of one of them.
"""

from __future__ import annotations

import contextlib
import http
import io
import queue
import selectors
import socket
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.registry import Collector

MOST_CONNECTIONS = 64
_MOST_SCRAPES = 16
"""Requests that wait for a scrape. Prometheus gives up after one second."""

_ACCEPTED_AT_ONCE = 32
_LISTEN_QUEUE = 1024
_MOST_BYTES = 16 << 10
"""Of a request. Its body is not read: no page takes one."""

_BLOCK = 1 << 16
_PAUSE = 0.1

Answered = Callable[[], None]
"""Is called when the client has an answer."""


@dataclass(eq=False)
class Connection:
    """A client's connection. `deadline`: when its request, or its answer, must be over (monotonic)."""

    socket: socket.socket
    deadline: float
    received: bytearray = field(default_factory=bytearray)
    answer: memoryview = field(default_factory=lambda: memoryview(b""))
    answered: Answered | None = None


class Pages(Protocol):
    """What is served."""

    def is_scrape(self, request: bytes) -> bool:
        """Whether the answer to a request may take long."""

    def answer(self, request: bytes) -> bytes:
        """The answer to a request, at once."""

    def scrape(self, request: bytes) -> tuple[bytes, Answered]:
        """The answer to a request that may take long, and what to call when the client has it."""


class PageServer:
    """Serves a host and a port from two threads, until the process ends. Scrapes run in the second one, in turn.

    A client that takes longer than `patience` seconds for its request or for an answer is cut off. Raises OSError where
    the port can't be listened on.
    """

    def __init__(self, host: str, port: int, patience: float, pages: Pages) -> None:
        self._patience = patience
        self._pages = pages
        self._open: dict[Connection, None] = {}  # by deadline, the earliest first
        self._to_scrape: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._scraped: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._selector = selectors.DefaultSelector()
        self._listener = _listening(host, port)
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        for name, target in (("metrics", self._serve), ("scrapes", self._serve_scrapes)):
            threading.Thread(target=target, name=name, daemon=True).start()

    @property
    def port(self) -> int:
        """The port, also where 0 asked for a free one."""
        return int(self._listener.getsockname()[1])

    def _serve(self) -> None:
        while True:
            first = next(iter(self._open), None)
            left = None if first is None else max(0.0, first.deadline - time.monotonic())
            for key, _ in self._selector.select(left):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    self._take_scrapes()
                elif key.data in self._open:  # else it was dropped in this turn
                    self._go_on(key.data)
            self._cut_off(time.monotonic())

    def _serve_scrapes(self) -> None:
        while True:
            connection = self._to_scrape.get()
            try:
                answer, connection.answered = self._pages.scrape(bytes(connection.received))
                connection.answer = memoryview(answer)
            except Exception:  # noqa: BLE001 - a collector's; the next scrape may succeed
                traceback.print_exc()
            self._scraped.put(connection)
            self._wake.send(b"x")

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:  # no file descriptor is left
                self._make_room()
                time.sleep(_PAUSE)
                return
            if len(self._open) >= MOST_CONNECTIONS:
                self._make_room()
            accepted.setblocking(False)
            self._keep(Connection(accepted, 0.0), selectors.EVENT_READ)

    def _make_room(self) -> None:
        """Drop the oldest one that has not sent its request; without one, the oldest."""
        reading = (connection for connection in self._open if not connection.answer)
        if oldest := next(reading, next(iter(self._open), None)):
            self._drop(oldest)

    def _keep(self, connection: Connection, event: int) -> None:
        connection.deadline = time.monotonic() + self._patience
        self._open[connection] = None
        self._selector.register(connection.socket, event, connection)

    def _let_go(self, connection: Connection) -> None:
        self._selector.unregister(connection.socket)
        del self._open[connection]

    def _drop(self, connection: Connection) -> None:
        self._let_go(connection)
        connection.socket.close()

    def _cut_off(self, now: float) -> None:
        for connection in list(self._open):
            if connection.deadline > now:
                return
            self._drop(connection)

    def _go_on(self, connection: Connection) -> None:
        try:
            if connection.answer:
                self._write(connection)
            else:
                self._read(connection)
        except BlockingIOError:
            return
        except OSError:  # the client has gone away
            self._drop(connection)

    def _read(self, connection: Connection) -> None:
        block = connection.socket.recv(_BLOCK)
        connection.received += block
        if not block or len(connection.received) > _MOST_BYTES:
            self._drop(connection)
        elif b"\r\n\r\n" in connection.received or b"\n\n" in connection.received:
            self._let_go(connection)
            self._reply(connection)

    def _reply(self, connection: Connection) -> None:
        request = bytes(connection.received)
        if not self._pages.is_scrape(request):
            try:
                connection.answer = memoryview(self._pages.answer(request))
            except Exception:  # noqa: BLE001 - a request that breaks its page must not end the thread of all pages
                traceback.print_exc()
            self._begin_to_write(connection)
        elif self._to_scrape.qsize() < _MOST_SCRAPES:
            self._to_scrape.put(connection)
        else:
            connection.socket.close()

    def _take_scrapes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(_BLOCK)
        while not self._scraped.empty():
            self._begin_to_write(self._scraped.get())

    def _begin_to_write(self, connection: Connection) -> None:
        if not connection.answer:
            connection.socket.close()
            return
        self._keep(connection, selectors.EVENT_WRITE)
        self._go_on(connection)

    def _write(self, connection: Connection) -> None:
        connection.answer = connection.answer[connection.socket.send(connection.answer) :]
        if connection.answer:
            return
        if connection.answered and _is_open(connection.socket):  # else Prometheus gave up while its request waited
            connection.answered()
        self._drop(connection)


def _listening(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_LISTEN_QUEUE)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _is_open(connection: socket.socket) -> bool:
    """Whether the client has not closed its end."""
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


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
