"""Streams: every event once, in order and at once; a stream that is cut and an event
that is an error are errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, repeat

from clientlab.conformance import checks
from clientlab.conformance.checks import (
    CheckResult,
    judge,
    measure_against,
    speaks_http2,
)
from clientlab.conformance.server import Paced, Respond
from clientlab.strategies import Strategy, client_spec, executor_spec, load
from clientlab.workload.streams import StreamFormat
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload

_EVENTS = 8
_PAUSES = (
    0.015,
    0.1,
)  # seconds between events; the longer one if events were late: the machine may be busy
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding:"
    b" chunked\r\n\r\n"
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
_FORMATS: dict[
    StreamFormat, tuple[str, str, str]
] = {  # format → an event, an event that is an error, and the end
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
_WHOLE, _CUT, _ERROR = "whole", "cut", "error"
_PARTS = (_WHOLE, _CUT, _WHOLE, _ERROR, _WHOLE)
_KINDS = {_CUT: "protocol", _ERROR: "event-error", _WHOLE: "none"}


def check_streams(strategy: Strategy) -> Iterator[CheckResult]:
    """Check five streams in one trial.

    Clients that read no streams as they arrive have no check.
    """
    client = client_spec(strategy.client)
    cls = load(client.import_path)
    if (
        not (hasattr(cls, "stream") or hasattr(cls, "events"))
        or executor_spec(strategy.executor).drives_client
    ):
        return
    names = (
        "every event once, in order",
        "events handed over at once",
        "stream that is cut",
        "event that is an error",
    )
    if speaks_http2(strategy):
        for name in names:
            yield CheckResult(name, unchecked="the checking server paces no HTTP/2")
        return
    form = next(
        name for name in _FORMATS if not client.formats or name in client.formats
    )
    for pause in _PAUSES:
        workload = Workload(
            stream=form,
            every=Delay("", (pause,)),
            events=_EVENTS,
            requests=len(_PARTS),
            concurrency=1,
            warmup=0,
            timeout=5.0,
        )
        found = measure_against(_answer_in_turn(form, pause), strategy, workload)
        streams = found.streams
        late = (
            streams is None
            or not len(streams.lags)
            or float(streams.lags.max()) >= pause
        )
        if not late:
            break
    whole = _PARTS.count(_WHOLE)
    got = 0 if streams is None else streams.events
    ordered = streams is not None and not streams.disordered
    message = (
        f"{whole} streams have {whole * _EVENTS} events; {got} were handed"
        f" over{'' if ordered else ', out of order'}"
    )
    yield judge(names[0], got == whole * _EVENTS and ordered, message, checks.PART_READ)
    message = (
        f"events were handed over after the next one was written, {1000 * pause:g} ms"
        " later"
    )
    yield judge(names[1], not late, message, checks.PART_READ)
    for part, name in ((_CUT, names[2]), (_ERROR, names[3])):
        yield CheckResult(name, *found.judge_kind(_PARTS.index(part), _KINDS[part]))


def _answer_in_turn(form: StreamFormat, pause: float) -> Respond:
    answers = map(
        partial(_write_stream, form=form, pause=pause), chain(_PARTS, repeat(_WHOLE))
    )
    return lambda _: next(answers)


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
