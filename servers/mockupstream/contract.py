"""The contract of an upstream: its routes as pure functions. An application adds only its framework.

An application reads a request into a `Call`, asks `Contract.reply` for the `Reply`, waits its seconds and sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from mockupstream import faults, payloads, streams
from mockupstream.behaviour import BehaviourReader, Wait, read_delay, read_status
from mockupstream.planets import position
from mockupstream.rate_limit import retry_after
from mockupstream.refusals import RefusedError, as_json, whole_number
from mockupstream.streams import EventStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mockupstream.behaviour import Behaviour
    from mockupstream.payloads import Piece
    from mockupstream.settings import Settings

JSON = "application/json"
OCTETS = "application/octet-stream"
_ROOT = as_json({"message": "hello"})
_DEFAULT_CHUNK = 1024
# HTTP gives these no body (RFC 9110, 15.3.5, 15.3.6, 15.4.5).
BODILESS = frozenset({204, 205, 304})
FIRST_ERROR = 400


class Call(NamedTuple):
    """A request whose body was read: `length` and `sha256` (of /echo alone, else empty) are what is left of it.

    `body` is the body itself, up to streams.MOST_KEPT bytes, for routes that keep it; else empty. `arguments` are the
    parts of the path named in the route's template; `headers` and `url` are asked for by few routes, and are computed
    only then.
    """

    method: str
    query: str
    arguments: Mapping[str, str]
    length: int
    sha256: str
    body: bytes
    headers: Callable[[], Mapping[str, str]]
    url: Callable[[], str]


class Answer(NamedTuple):
    """The result of a route: `body`; `pieces` of a body; or `stream`. `length`: of both, if known."""

    content_type: str
    body: bytes
    status: int = 200
    pieces: Iterable[Piece] | None = None
    length: int | None = None
    stream: EventStream | None = None


class Reply(NamedTuple):
    """The response after `seconds`: `body`, `pieces` or `stream`. Without a `length`, the last two are sent chunked.

    The head of a stream is sent at once after `seconds`; the moments of its events count from there.
    """

    seconds: float
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    pieces: Iterable[Piece] | None
    length: int | None
    stream: EventStream | None = None
    fault: faults.MadeFault | None = None


class Route(NamedTuple):
    """A path template (`/bytes/{n}`) and its answer.

    `digest` tells that the body's SHA-256 is wanted, `keeps` that the body is, `settled` that a small answer follows
    from path and query alone, `streams` that settings may also stand in the header X-Stream.
    """

    template: str
    number: int
    answer: Callable[[Contract, Call, Behaviour], Answer]
    digest: bool = False
    settled: bool = False
    streams: bool = False
    keeps: bool = False


class Shared(Protocol):
    """What a contract asks of all workers together; a ledger has it."""

    @property
    def limits(self) -> bool:
        """Whether requests per second are limited."""

    def refused_for(self) -> float:
        """Seconds until a request would be within the limit; 0: it is within."""

    def arrived(self, request: int, method: str) -> int:
        """Count an attempt of a request, by its identity. Returns its number, from 1."""


class Contract:
    """Answers calls within the given settings. Each worker has one."""

    def __init__(self, settings: Settings, shared: Shared) -> None:
        """Take the defaults and limits, and what all workers share."""
        self._settings = settings
        self._shared = shared
        self._reader = BehaviourReader(settings)
        self._streams = streams.StreamReader(settings)

    def reply(self, route: Route, call: Call) -> Reply:
        """Return the response and its delay in seconds. A refused request has a response, too."""
        wait = None
        try:
            query = streams.merged(call.query, call.headers()) if route.streams else call.query
            behaviour = self._reader.read(query)
            wait = self._wait(call.arguments, behaviour)
            self._settings.most_body.check(call.length, f"a request body of {call.length} bytes")
            attempt = 1 if behaviour.request is None else self._shared.arrived(behaviour.request, call.method)
            if too_early := self._shared.refused_for():
                return _limited(too_early)
            answer = route.answer(self, call, behaviour)
            if behaviour.attempt_faults and (fault := behaviour.fault(attempt)) is not None:
                return _spoiled(call, fault, answer, wait)
        except RefusedError as refused:
            return _refusal(refused, wait)
        # The path overrides the query.
        status = answer.status if behaviour.status is None or "code" in call.arguments else behaviour.status
        return _reply(call, status, answer, wait)

    def settled(self, route: Route, query: str) -> bool:
        """Whether each reply to a path of the route is the same, to requests with this query and without a body."""
        try:
            behaviour = self._reader.read(query)
        except RefusedError:
            return False
        same = behaviour.wait is not None and not behaviour.attempt_faults and behaviour.request is None
        return route.settled and same and not self._shared.limits

    def root(self, _call: Call, _behaviour: Behaviour) -> Answer:
        """`/`: a small JSON."""
        return Answer(JSON, _ROOT)

    def delay(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/delay/{seconds}`: the request as JSON, with httpbin's keys, after the delay of the path."""
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
        return Answer(JSON, payloads.todo(whole_number(call.arguments["id"], "the todo's id", 0)))

    def echo(self, call: Call, _behaviour: Behaviour) -> Answer:
        """`/echo`: the request as received, its body as length and SHA-256."""
        document = {
            "method": call.method,
            "headers": dict(call.headers()),
            "body": {"length": call.length, "sha256": call.sha256},
        }
        return Answer(JSON, as_json(document))

    def upload(self, call: Call, _behaviour: Behaviour) -> Answer:
        """`/upload`: the number of body bytes received. Its cost does not grow with the body."""
        return Answer(JSON, as_json({"length": call.length}))

    def bytes(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/bytes/{n}`: n seeded bytes."""
        size = self._size(call.arguments["n"], "n")
        if size <= payloads.BLOCK:
            return Answer(OCTETS, payloads.seeded(size, behaviour.seed))
        return Answer(OCTETS, b"", pieces=payloads.seeded_pieces(size, behaviour.seed), length=size)

    def stream(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/stream/{n}?chunk=`: n seeded bytes, chunked."""
        size = self._size(call.arguments["n"], "n")
        chunk = whole_number(behaviour.parameters.get("chunk", str(_DEFAULT_CHUNK)), "chunk", 1)
        if chunk > payloads.BLOCK:
            raise RefusedError(400, f"chunk must be from 1 to {payloads.BLOCK}, not {chunk}")
        return Answer(OCTETS, b"", pieces=payloads.chunks(size, chunk, behaviour.seed))

    def events(self, _call: Call, behaviour: Behaviour) -> Answer:
        """`/stream?format=&first=&every=&events=`: a stream of events, each at its moment."""
        return self._events(behaviour, self._streams.read(behaviour))

    def openai_chat(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/v1/chat/completions`: a stream as the OpenAI API sends it."""
        usage = streams.wants_usage(call.length, call.body)
        return self._events(behaviour, self._streams.read(behaviour, "openai-chat", usage=usage))

    def openai_responses(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/v1/responses`: a stream as the OpenAI API sends it."""
        streams.wants_usage(call.length, call.body)
        return self._events(behaviour, self._streams.read(behaviour, "openai-responses"))

    def anthropic(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/v1/messages`: a stream as the Anthropic API sends it."""
        streams.wants_usage(call.length, call.body)
        return self._events(behaviour, self._streams.read(behaviour, "anthropic"))

    def drip(self, _call: Call, behaviour: Behaviour) -> Answer:
        """`/drip?duration=&numbytes=&code=`: bytes spread over a duration, after the `delay`."""
        parameters = behaviour.parameters
        size = self._size(parameters.get("numbytes", "10"), "numbytes", least=1)
        duration = read_delay(parameters.get("duration", "2"))
        self._settings.most_delay.check(duration.stated, f"a duration of {duration}")
        status = read_status(parameters.get("code", "200"))
        seconds = self._reader.draw(duration, behaviour.seed).seconds
        return Answer(OCTETS, b"", status=status, pieces=payloads.drip(size, seconds), length=size)

    def status(self, call: Call, _behaviour: Behaviour) -> Answer:
        """`/status/{code}`: the status, without a body."""
        return Answer(JSON, b"", status=read_status(call.arguments["code"]))

    def planet(self, call: Call, behaviour: Behaviour) -> Answer:
        """`/planets/{name}?lon=&lat=&elevation=&when=`: the position of a planet."""
        return Answer(JSON, position(call.arguments["name"], behaviour.parameters))

    def unknown(self, _call: Call, _behaviour: Behaviour) -> Answer:
        """Refuse any other path."""
        raise RefusedError(404, "no such path", paths=[route.template for route in ROUTES])

    @staticmethod
    def _events(behaviour: Behaviour, stream: EventStream) -> Answer:
        """Answer with the stream, or with a document where the query wants the status of an error, as APIs do."""
        if behaviour.status is not None and behaviour.status >= FIRST_ERROR:
            return Answer(JSON, as_json({"error": f"the request asked for the status {behaviour.status}"}))
        return Answer(stream.format.content_type, b"", length=stream.length, stream=stream)

    def _wait(self, arguments: Mapping[str, str], behaviour: Behaviour) -> Wait:
        if "seconds" in arguments:
            return self._reader.draw(read_delay(arguments["seconds"]), behaviour.seed)
        return self._reader.wait(behaviour)

    def _size(self, text: str, what: str, least: int = 0) -> int:
        size = whole_number(text, what, least)
        self._settings.most_size.check(size, f"a response of {size} bytes")
        return size


def _reply(call: Call, status: int, answer: Answer, wait: Wait) -> Reply:
    headers = (("Content-Type", answer.content_type), ("Server-Timing", wait.told))
    if status in BODILESS:
        return Reply(wait.seconds, status, headers[1:], b"", None, None)
    if (answer.pieces is not None or answer.stream is not None) and call.method == "HEAD":
        return Reply(wait.seconds, status, headers, b"", (), answer.length)
    return Reply(wait.seconds, status, headers, answer.body, answer.pieces, answer.length, answer.stream)


def _spoiled(call: Call, fault: faults.MadeFault, answer: Answer, wait: Wait) -> Reply:
    """The reply with its fault. Raises RefusedError (400) for a stream, and for a fault of a body without a body."""
    if answer.stream is not None:
        raise RefusedError(400, "a stream of events has no faults; leave out fault")
    status = int(fault.value) if fault.kind == "status" else answer.status
    reply = _reply(call, status, answer, wait)
    if faults.needs_body(fault) and (call.method == "HEAD" or not (reply.body or reply.pieces)):
        raise RefusedError(400, f"fault {fault.kind} needs a body, and this answer has none")
    after = () if fault.retry_after is None else (("Retry-After", str(fault.retry_after)),)
    return reply._replace(headers=(*reply.headers, *after), fault=fault)


def _refusal(refused: RefusedError, wait: Wait | None) -> Reply:
    headers: tuple[tuple[str, str], ...] = (("Content-Type", JSON),)
    if wait is not None:
        headers = (*headers, ("Server-Timing", wait.told))
    return Reply(wait.seconds if wait else 0.0, refused.status, headers, refused.body(), None, None)


def _limited(wait: float) -> Reply:
    """The reply to a request beyond the limit per second, which would be within after so many seconds."""
    reply = _refusal(RefusedError(429, "more requests per second than MOCKUPSTREAM_RATE permits"), None)
    return reply._replace(headers=(*reply.headers, ("Retry-After", retry_after(wait))))


UNREADABLE = _refusal(
    RefusedError(400, "the body of the request is malformed, incomplete, or did not arrive in time"), None
)
"""The reply to a request whose body cannot be read to its end. The connection is closed behind it."""

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
    Route("/v1/chat/completions", 11, Contract.openai_chat, streams=True, keeps=True),
    Route("/v1/responses", 12, Contract.openai_responses, streams=True, keeps=True),
    Route("/v1/messages", 13, Contract.anthropic, streams=True, keeps=True),
)
UNKNOWN = Route("unknown", len(ROUTES), Contract.unknown)
EVERY_ROUTE = (*ROUTES, UNKNOWN)
