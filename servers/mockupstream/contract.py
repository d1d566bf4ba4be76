"""The contract of an upstream: its routes as pure functions.

An application adds only its framework.

An application reads a request into a `Call`, gets the `Reply` from `Contract.reply`,
waits its seconds and sends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import parse_qsl

from mockupstream import payloads
from mockupstream.behaviour import Behaviour, BehaviourReader, read_delay, read_status
from mockupstream.faults import SILENT, Fault, FaultBook, split_call
from mockupstream.payloads import Piece
from mockupstream.refusals import RefusedError, as_json, whole_number
from mockupstream.settings import Settings
from mockupstream.streams import HEADER, Stream, read_stream

API_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
JSON = "application/json"
OCTETS = "application/octet-stream"
_ROOT = as_json({"message": "hello"})
_DEFAULT_CHUNK = 1024
_UNSENT = 500  # status of a reply that is never sent
# HTTP gives these no body (RFC 9110, 15.3.5, 15.3.6, 15.4.5).
BODILESS = frozenset({204, 205, 304})


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by lower-case name, sorted.

    Repeated ones are joined by a comma (RFC 9110, 5.3).

    Names with an underscore are left out, because WSGI does not distinguish them from
    hyphens and gunicorn drops them.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers:
        if "_" not in name:
            values.setdefault(name.lower(), []).append(value)
    return {name: ",".join(values[name]) for name in sorted(values)}


class Call(NamedTuple):
    """A request whose body was read.

    `sha256`: only for /echo; `arguments`: the path's values for the template.
    """

    method: str
    query: str
    arguments: Mapping[str, str]
    length: int
    sha256: str
    headers: Callable[[], Mapping[str, str]]
    url: Callable[[], str]


class Answer(NamedTuple):
    """The result of a route: a `body`, or its `pieces` and their `length`, if it is
    known in advance.
    """

    content_type: str
    body: bytes
    status: int = 200
    pieces: Iterable[Piece] | None = None
    length: int | None = None


class Reply(NamedTuple):
    """The response after `seconds`: `body` or `pieces`.

    Pieces without a `length` are sent chunked. `fault`: what the application does to
    the connection (a kind of `faults.SILENT`, or `truncate` after the pieces).
    """

    seconds: float
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    pieces: Iterable[Piece] | None = None
    length: int | None = None
    fault: str | None = None


class Route(NamedTuple):
    """A path template and its answer.

    `digest`: needs the body's SHA-256; `settled`: depends only on path and query;
    `streams`: settings may be in a header.
    """

    template: str
    number: int
    answer: Callable[[Contract, Call, Behaviour], Answer]
    digest: bool = False
    settled: bool = False
    streams: bool = False


class Contract:
    """Answers calls within the given settings. Each worker has one."""

    def __init__(self, settings: Settings, faults: FaultBook) -> None:
        self._settings = settings
        self._faults = faults
        self._reader = BehaviourReader(settings)
        self._read_stream = lru_cache(maxsize=16)(
            lambda chosen: read_stream(dict(chosen), settings)
        )

    def reply(self, route: Route, call: Call) -> Reply:
        """Return the response and its delay in seconds.

        A refused request also gets a response.
        """
        if self._faults.is_on:
            return self._reply_or_fail(route, call)
        return self._reply(route, call)

    def _reply_or_fail(self, route: Route, call: Call) -> Reply:
        """Return the reply to a request that meets a fault if it has a call's number.

        Numbers below 0 are those of the warm-up.
        """
        query, number = split_call(call.query)
        call = call._replace(query=query)
        if number is None and route.streams:
            _, number = split_call(call.headers().get(HEADER, ""))
        if number is None or number < 0:
            return self._reply(route, call)
        fault = self._faults.meet(number)
        if not fault.is_carried_out:
            return _fail(fault)
        reply = self._reply(route, call)
        reply = reply._replace(seconds=reply.seconds + fault.delay)
        return _spoil(reply, fault, call.method)

    def _reply(self, route: Route, call: Call) -> Reply:
        wait = None
        try:
            behaviour = self._reader.read(call.query)
            if "seconds" in call.arguments:
                wait = self._reader.draw(
                    read_delay(call.arguments["seconds"]), behaviour.seed
                )
            else:
                wait = self._reader.wait(behaviour)
            self._settings.most_body.check(
                call.length, f"a request body of {call.length} bytes"
            )
            answer = route.answer(self, call, behaviour)
        except RefusedError as refused:
            timing = () if wait is None else (("Server-Timing", wait.header),)
            headers = (("Content-Type", JSON), *timing)
            return Reply(
                wait.seconds if wait else 0.0,
                refused.status,
                headers,
                refused.body(),
                None,
                None,
            )
        # The path overrides the query.
        status = (
            answer.status
            if behaviour.status is None or "code" in call.arguments
            else behaviour.status
        )
        headers = (
            ("Content-Type", answer.content_type),
            ("Server-Timing", wait.header),
        )
        if status in BODILESS:
            return Reply(wait.seconds, status, headers[1:], b"", None, None)
        if answer.pieces is not None and call.method == "HEAD":
            return Reply(wait.seconds, status, headers, b"", (), answer.length)
        return Reply(
            wait.seconds, status, headers, answer.body, answer.pieces, answer.length
        )

    @property
    def longest_stall(self) -> float:
        """Return the seconds after which a stalled connection is closed."""
        return self._settings.most_delay.value

    def is_settled(self, route: Route, query: str) -> bool:
        """Return whether requests without a body for the same path of the route and
        this query get the same reply.
        """
        if split_call(query)[1] is not None:
            return False
        try:
            return route.settled and self._reader.read(query).wait is not None
        except RefusedError:
            return False

    def root(self, _call: Call, _behaviour: Behaviour) -> Answer:
        """`/`: a small JSON."""
        return Answer(JSON, _ROOT)

    def delay(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/delay/{seconds}`: the request as JSON, with httpbin's keys, after the delay
        of the path.
        """
        document = {
            "args": dict(behaviour.parameters),
            "delay": call.arguments["seconds"],
            "headers": dict(call.headers()),
            "method": call.method,
            "url": call.url(),
        }
        return Answer(JSON, as_json(document))

    def todo(self, call: Call, _behaviour: Behaviour) -> Answer:
        """`/todos/{id}`: a small JSON document."""
        return Answer(
            JSON, payloads.todo(whole_number(call.arguments["id"], "the todo's id", 0))
        )

    def echo(self, call: Call, _behaviour: Behaviour) -> Answer:
        """`/echo`: the request as received, its body as length and SHA-256."""
        document = {
            "method": call.method,
            "headers": dict(call.headers()),
            "body": {"length": call.length, "sha256": call.sha256},
        }
        return Answer(JSON, as_json(document))

    def upload(self, call: Call, _behaviour: Behaviour) -> Answer:
        """`/upload`: the number of body bytes received, at a cost that does not grow
        with the body.
        """
        return Answer(JSON, as_json({"length": call.length}))

    def bytes(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/bytes/{n}`: n seeded bytes."""
        size = self._size(call.arguments["n"], "n")
        if size <= payloads.BLOCK:
            return Answer(OCTETS, payloads.seeded(size, behaviour.seed))
        return Answer(
            OCTETS,
            b"",
            pieces=payloads.chunks(size, payloads.BLOCK, behaviour.seed),
            length=size,
        )

    def stream(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/stream/{n}?chunk=`: n seeded bytes, chunked."""
        size = self._size(call.arguments["n"], "n")
        chunk = whole_number(
            behaviour.parameters.get("chunk", str(_DEFAULT_CHUNK)), "chunk", 1
        )
        if chunk > payloads.BLOCK:
            raise RefusedError(
                400, f"chunk must be from 1 to {payloads.BLOCK}, not {chunk}"
            )
        return Answer(OCTETS, b"", pieces=payloads.chunks(size, chunk, behaviour.seed))

    def drip(self, _call: Call, behaviour: Behaviour) -> Answer:
        """`/drip?duration=&numbytes=&code=`: bytes spread over a duration, after the
        `delay`.
        """
        parameters = behaviour.parameters
        size = self._size(parameters.get("numbytes", "10"), "numbytes", least=1)
        duration = read_delay(parameters.get("duration", "2"))
        self._settings.most_delay.check(duration.stated, f"a duration of {duration}")
        status = read_status(parameters.get("code", "200"))
        seconds = self._reader.draw(duration, behaviour.seed).seconds
        return Answer(
            OCTETS, b"", status=status, pieces=payloads.drip(size, seconds), length=size
        )

    def status(self, call: Call, _behaviour: Behaviour) -> Answer:
        """`/status/{code}`: the status, without a body."""
        return Answer(JSON, b"", status=read_status(call.arguments["code"]))

    def planet(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/planets/{name}?lon=&lat=&elevation=&when=`: the position of a planet."""
        return Answer(
            JSON, payloads.planet_position(call.arguments["name"], behaviour.parameters)
        )

    def events(self, call: Call, behaviour: Behaviour, name: str = "") -> Answer:
        """`/stream` and the paths of APIs, whose format is `name`: events, one after
        the other (see `streams`).
        """
        given = parse_qsl(call.headers().get(HEADER, ""), keep_blank_values=True)
        settings = {
            **behaviour.parameters,
            **dict(given),
            **({"format": name} if name else {}),
        }
        seed = settings.pop("seed", None)
        settings.pop("call", None)
        stream: Stream = self._read_stream(frozenset(settings.items()))
        pieces = stream.pieces(None if seed is None else whole_number(seed, "seed", 0))
        return Answer(
            stream.format.content_type, b"", pieces=pieces, length=stream.length
        )

    def unknown(self, _call: Call, _behaviour: Behaviour) -> Answer:
        """Refuse any other path."""
        raise RefusedError(
            404, "no such path", paths=[route.template for route in ROUTES]
        )

    def _size(self, text: str, what: str, least: int = 0) -> int:
        size = whole_number(text, what, least)
        self._settings.most_size.check(size, f"a response of {size} bytes")
        return size


def _fail(fault: Fault) -> Reply:
    """Return the reply to an attempt that is not carried out."""
    if fault.status is None:
        return Reply(fault.delay, _UNSENT, (), b"", fault="reset")
    headers = [("Content-Type", JSON)]
    if fault.retry_after is not None:
        headers.append(("Retry-After", str(fault.retry_after)))
    body = as_json({"error": f"fault {fault.kind}"})
    return Reply(fault.delay, fault.status, tuple(headers), body)


def _spoil(reply: Reply, fault: Fault, method: str) -> Reply:
    """Return the reply to an attempt that is carried out, with its fault."""
    if fault.kind == "good":
        return reply
    if fault.kind in SILENT:
        return reply._replace(fault=fault.kind)
    body = reply.body
    length: int | None = len(body)
    if reply.pieces is not None:
        length = reply.length
        body = b"".join(piece.write(time.monotonic()) for piece in reply.pieces)
    if method == "HEAD":
        body = b""
    if fault.kind == "truncate":
        half = Piece(0.0, body[: len(body) // 2])
        return reply._replace(body=b"", pieces=(half,), length=length, fault=fault.kind)
    if not body:
        return reply
    return reply._replace(
        body=b"", pieces=payloads.spread(body, fault.over), length=length
    )


ROUTES = (
    Route("/", 0, Contract.root, settled=True),
    Route("/delay/{seconds}", 1, Contract.delay),
    Route("/todos/{id}", 2, Contract.todo, settled=True),
    Route("/echo", 3, Contract.echo, digest=True),
    Route("/bytes/{n}", 4, Contract.bytes),
    Route("/stream/{n}", 5, Contract.stream),
    Route("/drip", 6, Contract.drip),
    Route("/status/{code}", 7, Contract.status, settled=True),
    Route("/planets/{name}", 8, Contract.planet),
    Route("/upload", 9, Contract.upload),
    Route("/stream", 10, Contract.events, streams=True),
    *(
        Route(path, 11 + place, partial(Contract.events, name=name), streams=True)
        for place, (name, path) in enumerate(API_PATHS.items())
    ),
)
UNKNOWN = Route("unknown", len(ROUTES), Contract.unknown)
EVERY_ROUTE = (*ROUTES, UNKNOWN)


def routes_of(settings: Settings) -> tuple[tuple[Route, ...], Route]:
    """Return the routes that an application serves, and the route of every
    other path.
    """
    return (ROUTES[:1], ROUTES[0]) if settings.any_path else (ROUTES, UNKNOWN)
