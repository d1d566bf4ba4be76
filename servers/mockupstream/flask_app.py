"""The contract on Flask: nothing but the framework."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakSet

from flask import Flask, Request, Response, request
from werkzeug.exceptions import NotFound
from werkzeug.routing import Rule

from mockupstream.contract import Call, Contract, Reply, Route, joined, routes_of
from mockupstream.faults import BAD_BYTES, RESET_AT_CLOSE, SILENT, FaultBook
from mockupstream.metrics import CONTENT_TYPE, Ledger, UpstreamCollector, digest_of
from mockupstream.settings import Settings
from mockupstream.trace import STREAMS, Trace

_READ_SIZE = 1 << 16


def build(
    settings: Settings,
    ledger: Ledger,
    exposition: UpstreamCollector,
    faults: FaultBook,
) -> Flask:
    """Return the application."""
    app = Flask("mockupstream", static_folder=None)
    app.url_map.merge_slashes = (
        False  # otherwise, a path with two slashes would be redirected
    )
    upstream = _FlaskUpstream(Contract(settings, faults), ledger)
    app.add_url_rule(
        "/healthz",
        "healthz",
        lambda: Response("ok\n", content_type="text/plain; charset=utf-8"),
    )
    app.add_url_rule(
        "/metrics",
        "metrics",
        lambda: Response(exposition.text(), content_type=CONTENT_TYPE),
    )
    app.add_url_rule("/faults", "faults", faults.summary)
    app.add_url_rule("/faults", "put", lambda: _put(faults), methods=["PUT"])
    routes, other = routes_of(settings)
    for route in routes:
        # add_url_rule would restrict the methods, and every route takes any method.
        app.url_map.add(
            Rule(
                route.template.replace("{", "<").replace("}", ">"),
                endpoint=route.template,
            )
        )
        app.view_functions[route.template] = upstream.view(route)
    otherwise = upstream.view(other)
    app.register_error_handler(NotFound, lambda _error: otherwise())
    if settings.trace is not None:
        traced = Trace(settings.trace).around_app(app.wsgi_app)
        app.wsgi_app = traced  # type: ignore[assignment, method-assign]  # Flask's way of middleware
    return app


class _Response(Response):
    """A response with only the contract's headers.

    Flask would add an HTML type to one without a type.
    """

    default_mimetype = None


class _FlaskUpstream:
    """Serves the contract's routes in any number of threads."""

    def __init__(self, contract: Contract, ledger: Ledger) -> None:
        self._contract = contract
        self._ledger = ledger
        self._lock = threading.Lock()
        self._seen: WeakSet[socket.socket] = WeakSet()

    def view(self, route: Route) -> Callable[..., Response]:
        def handle(**arguments: str) -> Response:
            self._count_connection()
            self._ledger.begin()
            streams = False
            try:
                reply, due = self._reply(route, arguments)
                if reply.fault is not None:
                    streams = True
                    return _BrokenResponse(
                        reply, self._ledger, self._contract.longest_stall
                    )
                streams = reply.pieces is not None
                if streams:
                    request.environ[STREAMS] = True
                body = _Body(reply, self._ledger, due) if streams else reply.body
                response = _Response(body, reply.status, reply.headers)
                if reply.length is not None:
                    response.content_length = reply.length
                return response
            finally:
                if not streams:
                    self._ledger.end()

        return handle

    def _count_connection(self) -> None:
        """Count a connection, by its socket, at its first request that is
        not a scrape.
        """
        connection = _connection_of(request.environ)
        with self._lock:
            if connection in self._seen:
                return
            self._seen.add(connection)
        self._ledger.connection()

    def _reply(self, route: Route, arguments: dict[str, str]) -> tuple[Reply, float]:
        """Return the reply after its delay, and when it was planned."""
        digest = digest_of(request.method, request.environ["RAW_URI"])
        length, sha256 = _read(request, digest=route.digest)
        read = time.monotonic()
        call = Call(
            request.method,
            request.environ["QUERY_STRING"],
            arguments,
            length,
            sha256,
            lambda: joined(request.headers.items()),
            lambda: request.url,
        )
        reply = self._contract.reply(route, call)
        _sleep_until(read + reply.seconds)
        if reply.fault in SILENT:
            return reply, read + reply.seconds
        sent = len(reply.body) if request.method != "HEAD" else 0
        self._ledger.ready(
            route.number,
            reply.status,
            time.monotonic() - read,
            reply.seconds,
            length,
            sent,
            digest,
        )
        return reply, read + reply.seconds


class _BrokenResponse(_Response):
    """A response that ends its connection, as its fault says.

    It is in flight until then. It sends by WSGI's `write` and raises an error of the
    connection, which both servers take for a client that left.
    """

    automatically_set_content_length = False

    def __init__(self, reply: Reply, ledger: Ledger, longest_stall: float) -> None:
        super().__init__(b"", reply.status, reply.headers)
        if reply.length is not None:
            self.content_length = reply.length
        self._reply = reply
        self._ledger = ledger
        self._longest_stall = longest_stall

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        connection = _connection_of(environ)
        try:
            match self._reply.fault:
                case "truncate":
                    headers = self.get_wsgi_headers(environ).to_wsgi_list()
                    write = start_response(self.status, headers)
                    for piece in self._reply.pieces or ():
                        data = piece.write(time.monotonic())
                        self._ledger.sent(len(data))
                        write(data)
                case "garbage":
                    connection.sendall(BAD_BYTES)
                case "stall":
                    # It ends when the client leaves.
                    connection.settimeout(self._longest_stall)
                    with contextlib.suppress(OSError):
                        connection.recv(1)
                case "reset":
                    connection.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE
                    )
            _close(connection)
        finally:
            self._ledger.end()
        raise ConnectionResetError(errno.ECONNRESET, "a fault that was asked for")


def _connection_of(environ: dict[str, Any]) -> socket.socket:
    connection: socket.socket = (
        environ.get("gunicorn.socket") or environ["werkzeug.socket"]
    )
    return connection


def _close(connection: socket.socket) -> None:
    """Close a connection at once, and leave its server a socket that has ended.

    gunicorn would wait up to 2 s for the client to close, in the thread that accepts
    connections, and miscounts its connections if one of them has no socket.
    """
    ended, other = socket.socketpair()
    other.close()
    with ended:
        os.dup2(ended.fileno(), connection.fileno(), inheritable=False)


def _put(faults: FaultBook) -> Response:
    status, text = faults.put(request.get_data())
    return Response(text, status, content_type="text/plain; charset=utf-8")


class _Body:
    """The pieces of a reply.

    It is in flight until the server closes it, which WSGI promises even if sending
    fails.
    """

    def __init__(self, reply: Reply, ledger: Ledger, due: float) -> None:
        self._pieces = iter(reply.pieces or ())
        self._ledger = ledger
        self._due = due

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self._due += piece.pause
        _sleep_until(self._due)
        data = piece.write(self._due)
        self._ledger.sent(len(data))
        return data

    def close(self) -> None:
        self._ledger.end()


def _read(asked: Request, *, digest: bool) -> tuple[int, str]:
    """Read the whole body without keeping it, and return its length and SHA-256."""
    length, sha256 = 0, hashlib.sha256()
    while data := asked.stream.read(_READ_SIZE):
        length += len(data)
        if digest:
            sha256.update(data)
    return length, sha256.hexdigest()


def _sleep_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)
