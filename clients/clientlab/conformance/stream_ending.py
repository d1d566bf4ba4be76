"""The scenarios of streams that end otherwise: left after a few events by the workload, or without an end."""

from __future__ import annotations

import time

from clientlab.conformance.evidence import Evidence, serve, speaks_http2
from clientlab.conformance.hostile import EndlessOutcome, ended_scenario
from clientlab.conformance.scenario import Check, Scenario
from clientlab.conformance.server import Endless, Seen, ServerAnswer, Stall, counting_server
from clientlab.conformance.stream_answers import SHAPES, long, whole
from clientlab.conformance.streams import can_read, events_of_stream, format_of
from clientlab.strategies import Strategy, client_spec
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload

STREAMS_LEFT, AFTER = 3, 3
"""Streams that are left, and the events after which each of them is."""

SLACK = 2.0
"""Seconds within which the server has to see the end of a stream that was left, on a busy machine."""

_MANY = 200
_PAUSE, _LAST_PAUSE = 0.02, 0.2
"""Seconds between two events. The last stream takes longer, so that the server can see the end of the others."""

_TIMEOUT = 5.0
_LOOK = 0.01


def _leave(strategy: Strategy) -> Evidence:
    """One trial whose streams are left. The server notices the end of the last one a moment later."""
    stream = format_of(strategy)
    shape = SHAPES[stream]

    def answer(seen: Seen) -> ServerAnswer:
        return long(shape, seen.order, _PAUSE if seen.order < STREAMS_LEFT - 1 else _LAST_PAUSE, _MANY)

    workload = Workload(
        stream=stream, events=_MANY, every=Delay.parse("10ms"), stop_after=AFTER, requests=STREAMS_LEFT, concurrency=1,
        warmup=0, timeout=_TIMEOUT,
    )  # fmt: skip
    found = serve(strategy, workload, answer)
    until = time.monotonic() + SLACK
    while len(found.server.left) < STREAMS_LEFT and time.monotonic() < until:
        time.sleep(_LOOK)
    return found


def _successes(found: Evidence) -> str:
    """Each stream that is left is a success, with the events that came before."""
    if found.kinds:
        kind = next(iter(found.kinds.values()))
        return f"a stream that is left is a success; one is recorded as {kind} ({found.samples.examples[kind]})"
    for number in range(STREAMS_LEFT):
        if (got := [one for one, *_ in events_of_stream(found, number)]) != list(range(AFTER)):
            return f"stream {number} is left after the events 0 to {AFTER - 1}; handed over were {got}"
    return ""


def _own_events(found: Evidence) -> str:
    """No stream has events of the one before it, as on a connection that is used again half-read."""
    for number in range(STREAMS_LEFT):
        if foreign := {stream for _, stream, *_ in events_of_stream(found, number)} - {number}:
            return f"events of stream {foreign.pop()}, which was left, were handed over as those of stream {number}"
    return ""


def _seen_by_server(found: Evidence) -> str:
    """The server saw the end of each stream while the last one was read, and of the last one soon after."""
    if client_spec(found.strategy.client).quirks.resets_no_stream:
        return ""  # with the connection at the latest
    last = events_of_stream(found, STREAMS_LEFT - 1)
    for number in range(STREAMS_LEFT):
        moment = found.server.left.get(number)
        if moment is None or (number < STREAMS_LEFT - 1 and last and moment > last[-1][2]):
            return f"stream {number}, which was left after {AFTER} events, is still open, as the server sees it"
    return ""


_LEAVING: dict[str, Check[Evidence]] = {
    "streams that are left": _successes,
    "own events behind a stream that is left": _own_events,
    "the server sees that a stream is left": _seen_by_server,
}

LEFT = Scenario("streams that are left", _leave, _LEAVING, frozenset({"client"}), can_read)


_PINGS, _SILENCE = "pings without an end", "silence in a stream"
_PING = b"8\r\n: ping\n\n\r\n"


def _ended(strategy: Strategy, mode: str) -> EndlessOutcome:
    stream = format_of(strategy)
    start = whole(SHAPES[stream], 0, 0.0).start
    answer: ServerAnswer = Endless(start, _PING, 0.05) if mode == _PINGS else Stall(start + _PING)
    with counting_server(lambda _: answer) as server:
        return EndlessOutcome.of(strategy, server.url, server.let_go, stream=stream)


def _fits(strategy: Strategy) -> bool:
    return can_read(strategy) and not speaks_http2(strategy) and not client_spec(strategy.client).url_only


STREAM_WITHOUT_END = ended_scenario("streams without an end", (_PINGS, _SILENCE), _ended, _fits)
