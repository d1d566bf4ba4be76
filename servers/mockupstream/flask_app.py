"""The contract on Flask: nothing but the framework."""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from weakref import WeakSet

from flask import Flask, Request, Response, request
from werkzeug.exceptions import NotFound
from werkzeug.routing import Rule

from mockupstream.contract import Call, Contract, Reply, Route, joined, routes_of
from mockupstream.metrics import CONTENT_TYPE, Ledger, UpstreamCollector, digest_of
from mockupstream.settings import Settings
from mockupstream.trace import STREAMS, Trace

_READ_SIZE = 1 << 16


def build(settings: Settings, ledger: Ledger, exposition: UpstreamCollector) -> Flask:
    """Return the application."""
    app = Flask("mockupstream", static_folder=None)
    app.url_map.merge_slashes = (
        False  # otherwise, a path with two slashes would be redirected
    )
    upstream = _FlaskUpstream(Contract(settings), ledger)
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
        connection = (
            request.environ.get("gunicorn.socket") or request.environ["werkzeug.socket"]
        )
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
