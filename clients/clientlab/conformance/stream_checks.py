"""Streams: every event once, in order and at once.

A stream that is cut and an event that is an error are errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, repeat

from clientlab.conformance import checking
from clientlab.conformance.checking import (
    CheckResult,
    judge,
    measure_against,
    speaks_http2,
)
from clientlab.conformance.server import Paced, Respond
from clientlab.strategies import Strategy, client_spec, executor_spec, load
from clientlab.workload.streams import StreamFormat
from clientlab.workload.values import Delay
from clientlab.workload.workload import make_workload

_EVENTS = 8
# Seconds between events; the longer one if events were late: the machine may be busy.
_PAUSES = (0.015, 0.1)
_HEAD = (
    b"HTTP/1.1 200 OK\r\n"
    b"Content-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_CHAT = (
    '{"id":"1","object":"chat.completion.chunk","created":0,"model":"m",'
    '"choices":[{"index":0,"delta":{"content":"%s"}}]}'
)
_DELTA = (
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}'
)
_OVERLOADED = (
    '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
)
# Format → an event, an event that is an error, and the end.
_FORMATS: dict[StreamFormat, tuple[str, str, str]] = {
    "sse": (
        "data: %s\n\n",
        'event: error\ndata: {"error":"overloaded"}\n\n',
        "data: [DONE]\n\n",
    ),
    "openai-chat": (
        f"data: {_CHAT}\n\n",
        'data: {"error":{"message":"overloaded"}}\n\n',
        "data: [DONE]\n\n",
    ),
    "anthropic": (
        f"event: content_block_delta\ndata: {_DELTA}\n\n",
        f"event: error\ndata: {_OVERLOADED}\n\n",
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ),
}
_WHOLE = "whole"
_CUT = "cut"
_ERROR = "error"
_PARTS = (_WHOLE, _CUT, _WHOLE, _ERROR, _WHOLE)
_KINDS = {_CUT: "protocol", _ERROR: "event-error"}

# The names of the checks.
_ORDERED = "every event once, in order"
_AT_ONCE = "events handed over at once"
_CHECKED_PARTS = {"stream that is cut": _CUT, "event that is an error": _ERROR}


def check_streams(strategy: Strategy) -> Iterator[CheckResult]:
    """Check five streams in one trial.

    Clients that read no streams as they arrive have no check.
    """
    client = client_spec(strategy.client)
    cls = load(client.import_path)
    reads_streams = hasattr(cls, "stream") or hasattr(cls, "events")
    if not reads_streams or executor_spec(strategy.executor).drives_client:
        return
    if speaks_http2(strategy):
        for name in (_ORDERED, _AT_ONCE, *_CHECKED_PARTS):
            yield CheckResult(name, unchecked="the checking server paces no HTTP/2")
        return
    usable = client.formats or _FORMATS
    form = next(name for name in _FORMATS if name in usable)
    for pause in _PAUSES:
        workload = make_workload(
            stream=form,
            every=Delay("", (pause,)),
            events=_EVENTS,
            requests=len(_PARTS),
            concurrency=1,
            warmup=0,
            timeout=5.0,
        )
        evidence = measure_against(_answer_in_turn(form, pause), strategy, workload)
        streams = evidence.streams
        events = 0
        ordered = False
        late = True
        if streams is not None:
            events = streams.events
            ordered = not streams.disordered
            late = not len(streams.lags) or float(streams.lags.max()) >= pause
        if not late:
            break
    whole = _PARTS.count(_WHOLE)
    message = (
        f"{whole} streams have {whole * _EVENTS} events; {events} were handed over"
    )
    if not ordered:
        message += ", out of order"
    is_right = ordered and events == whole * _EVENTS
    yield judge(_ORDERED, is_right, message, checking.PART_READ)
    message = (
        f"events were handed over after the next one was written, {1000 * pause:g} ms"
        " later"
    )
    yield judge(_AT_ONCE, not late, message, checking.PART_READ)
    for name, part in _CHECKED_PARTS.items():
        yield evidence.judge_kind(name, _PARTS.index(part), _KINDS[part])


def _answer_in_turn(form: StreamFormat, pause: float) -> Respond:
    parts = chain(_PARTS, repeat(_WHOLE))
    return lambda _: _write_stream(next(parts), form, pause)


def _frame_event(event: str, number: int) -> bytes:
    """Return a chunk with an event, marked with the present time."""
    return _frame(event % _mark(number))


def _write_stream(part: str, form: StreamFormat, pause: float) -> Paced:
    event, error, end = _FORMATS[form]
    count = _EVENTS if part == _WHOLE else _EVENTS // 2
    blocks: list[Callable[[], bytes]] = [lambda: _HEAD]
    blocks += [partial(_frame_event, event, number) for number in range(count)]
    if part == _WHOLE:
        blocks.append(lambda: _frame(end) + b"0\r\n\r\n")
    elif part == _ERROR:
        blocks.append(lambda: _frame(error) + b"0\r\n\r\n")
    return Paced(blocks, pause, closes=part == _CUT)


def _mark(number: int) -> str:
    return f"@{number:06d}{time.monotonic_ns():018d}{0:06d} text"


def _frame(text: str) -> bytes:
    return b"%x\r\n%b\r\n" % (len(text), text.encode())
