"""The scenario of streams: every event once, in order, with its own answer, and handed over before the next is written.

One trial reads ten streams, one after the other. Some of them are whole, and the others have a fault each.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from clientlab.conformance.evidence import Evidence, serve
from clientlab.conformance.faults import of_kind
from clientlab.conformance.scenario import Check, Scenario
from clientlab.conformance.server import Seen, ServerAnswer, ok
from clientlab.conformance.stream_answers import EVENTS, SHAPES, StreamShape, cut, failing, whole
from clientlab.strategies import Strategy, client_spec, executor_spec
from clientlab.strategies.capabilities import reads
from clientlab.workload.delays import Delay
from clientlab.workload.streams import API_PATHS, SETTINGS_HEADER, StreamFormat
from clientlab.workload.workload import Workload

PAUSE, LONG_PAUSE = 0.015, 0.1
"""Seconds between two events. The second one holds where a machine that was busy handed events over late."""

_FURTHER_LOOKS = 2
_TIMEOUT = 5.0
_CLOSED = "a stream that ends with its connection"


@dataclass(frozen=True)
class StreamPart:
    """One stream of the trial, and the kind that its request is recorded with; ``none``: a whole one."""

    name: str
    answer: Callable[[StreamShape, int, float], ServerAnswer]
    kind: str = "none"


_WHOLE = StreamPart("a stream", whole)
PARTS = (
    _WHOLE,
    _WHOLE,
    StreamPart("answer 503 to a stream", lambda *_: ok(status="503 Service Unavailable"), "status-5xx"),
    _WHOLE,
    StreamPart("a stream that is cut", cut, "protocol"),
    _WHOLE,
    StreamPart("an event that is an error", failing, "event-error"),
    _WHOLE,
    StreamPart(_CLOSED, partial(whole, chunked=False)),
    _WHOLE,
)
_PLAIN_HEADERS = {"host", "accept", "accept-encoding", "user-agent"}
_OF_A_BODY = {"content-type", "content-length"}


def format_of(strategy: Strategy) -> StreamFormat:
    """The format in which the client reads the scenarios' streams."""
    formats: tuple[StreamFormat, ...] = ("sse", "openai-chat", "anthropic")
    spec = client_spec(strategy.client)
    return next(one for one in formats if not spec.stream_formats or one in spec.stream_formats)


def can_read(strategy: Strategy) -> bool:
    """Whether the strategy reads streams: its client does, and its executor leaves them to the client."""
    spec = client_spec(strategy.client)
    return not executor_spec(strategy.executor).drives_client and reads(spec, (spec.stream_formats or ("sse",))[0])


def _do(strategy: Strategy) -> Evidence:
    found = _read(strategy, PAUSE)
    for _ in range(_FURTHER_LOOKS):
        if not (_as_written(found) or _as_written_without_chunks(found)):
            break
        # On a machine that is busy elsewhere, any event may be late. A library that holds events does so each time.
        found = _read(strategy, LONG_PAUSE)
    return found


def _read(strategy: Strategy, pause: float) -> Evidence:
    stream = format_of(strategy)
    shape = SHAPES[stream]

    def answer(seen: Seen) -> ServerAnswer:
        return PARTS[min(seen.order, len(PARTS) - 1)].answer(shape, seen.order, pause)

    workload = Workload(
        stream=stream, events=EVENTS, every=Delay.parse("10ms"), requests=len(PARTS), concurrency=1, warmup=0,
        timeout=_TIMEOUT,
    )  # fmt: skip
    return serve(strategy, workload, answer)


def events_of_stream(found: Evidence, number: int) -> list[tuple[int, int, float, float]]:
    """Of each event of a stream: its number, the stream that it was written for, when written, and when handed over."""
    events = found.events
    if events is None or number not in events.requests:
        return []
    at = events.requests.tolist().index(number)
    own = slice(int(events.first[at]), int(events.first[at + 1]))
    streams = [round(1e6 * late) for late in events.late[own].tolist()]
    times = events.written[own].tolist(), events.arrived[own].tolist()
    return list(zip(events.number[own].tolist(), streams, *times, strict=True))


def whole_streams(found: Evidence) -> list[int]:
    """Numbers of the requests that read a whole stream."""
    unread = {_CLOSED} if client_spec(found.strategy.client).quirks.needs_length else set()
    return [k for k, part in enumerate(PARTS) if part.kind == "none" and part.name not in unread]


def in_order(found: Evidence) -> str:
    """Every event of the whole streams was handed over once and in order, by the request that it was written for."""
    for number in whole_streams(found):
        events = events_of_stream(found, number)
        if (got := [one for one, *_ in events]) != list(range(EVENTS)):
            return f"stream {number} has the events 0 to {EVENTS - 1} once each and in order; handed over were {got}"
        if foreign := {stream for _, stream, *_ in events} - {number}:
            return f"events of stream {foreign.pop()} were handed over as those of stream {number}"
    return ""


def _as_written(found: Evidence) -> str:
    """Every event was handed over before the next one was written."""
    for number in whole_streams(found):
        if PARTS[number].name != _CLOSED and (broken := _held(found, number)):
            return broken
    return ""


def _held(found: Evidence, number: int) -> str:
    """Which event of a stream was handed over after the next one was written; empty if none was."""
    events = events_of_stream(found, number)
    for one, following in itertools.pairwise(events):
        if one[3] >= following[2]:
            seconds = statistics.median(arrived - written for _, _, written, arrived in events)
            return (
                f"event {one[0]} of stream {number} was handed over after event {following[0]} was written: its events "
                f"came {1000 * seconds:.0f} ms after they were written"
            )
    return ""


def _as_written_without_chunks(found: Evidence) -> str:
    """The same of a stream that is not sent in chunks. Empty for a library that holds its events back."""
    quirks = client_spec(found.strategy.client).quirks
    number = [part.name for part in PARTS].index(_CLOSED)
    if quirks.needs_length or (quirks.holds_events and "lines" not in found.strategy.settings):
        return ""
    return _held(found, number)


def _made_of(number: int, found: Evidence) -> str:
    """Empty if a stream was recorded with the kind of its part."""
    part, needs_length = PARTS[number], client_spec(found.strategy.client).quirks.needs_length
    return of_kind(number, "protocol" if part.name == _CLOSED and needs_length else part.kind, found)


def _whole_recorded(found: Evidence) -> str:
    """Every whole stream is a success."""
    for number in whole_streams(found):
        if broken := of_kind(number, "none", found):
            before = repr(PARTS[number - 1].name) if number else "none"
            return f"stream {number}, behind {before}: {broken}"
    return ""


def _once(found: Evidence) -> str:
    sent = len(found.server.seen)
    return "" if sent == len(PARTS) else f"{len(PARTS)} requests are to be sent, each once; {sent} reached the server"


def _kept(found: Evidence) -> str:
    """The request behind a whole stream came on the connection of the stream, unless the library leaves it."""
    strategy, quirks = found.strategy, client_spec(found.strategy.client).quirks
    either = found.http2 or executor_spec(strategy.executor).concurrent or quirks.opens_ahead
    if either or len(found.server.seen) < 2:
        return ""
    first, second = (seen.connection for seen in found.server.seen[:2])
    left = quirks.streams_apart or format_of(strategy) in quirks.leaves_streams
    apart = left or strategy.policy == "per call"
    if apart == (first != second):
        return ""
    return (
        "a connection for each stream is its policy, and one was used again"
        if apart
        else "a new connection was opened behind a whole stream, where one is kept"
    )


def _headers(found: Evidence) -> str:
    """A stream's request has the workload's headers, and of the library's own those that its spec names."""
    if found.http2 or not found.server.seen:
        return ""
    quirks, seen = client_spec(found.strategy.client).quirks, found.server.seen[0]
    expected = _PLAIN_HEADERS | set(quirks.own_headers) | ({"connection"} if quirks.keep_alive_header else set())
    if format_of(found.strategy) in API_PATHS:
        expected |= _OF_A_BODY | {SETTINGS_HEADER.lower()}
    if more := set(seen.headers) - expected:
        return f"it sends headers that others do not send: {', '.join(sorted(more))}"
    if fewer := expected - set(seen.headers):
        return f"headers are missing: {', '.join(sorted(fewer))}"
    accept = seen.headers["accept"]
    return "" if accept == "*/*" or "accept" in quirks.own_headers else f"header accept: */* reached it as {accept!r}"


def _kind(found: Evidence, check: str) -> str | None:
    return next((found.kind(k) for k, part in enumerate(PARTS) if part.name == check and part is not _WHOLE), None)


CHECKS: dict[str, Check[Evidence]] = {
    "every event once, in order": in_order,
    "events handed over as they are written": _as_written,
    "events handed over without chunks": _as_written_without_chunks,
    **{part.name: partial(_made_of, k) for k, part in enumerate(PARTS) if part is not _WHOLE},
    "whole streams recorded": _whole_recorded,
    "streams sent once": _once,
    "connection behind a stream": _kept,
    "headers of streams": _headers,
}

STREAMS = Scenario("streams", _do, CHECKS, frozenset({"client"}), can_read, _kind)
