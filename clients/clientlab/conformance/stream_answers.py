"""The streams that the counting server sends: events of each format, with the marks that the lab reads.

The formats are written anew here, as the makers of the APIs describe them, and share no code with the lab's upstream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from clientlab.conformance.server import Paced

EVENTS = 5
"""Events of each whole stream."""

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
_CHAT = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
_FAILURE = {"type": "overloaded_error", "message": "Overloaded"}


@dataclass(frozen=True)
class StreamShape:
    """How an API writes a stream. `before`, `after`: events around those with text, the latter with the last one."""

    event: Callable[[str], bytes]
    error: bytes
    before: bytes = b""
    after: bytes = b""


def _data(value: Mapping[str, Any], event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(value)}\n\n".encode()


def _chunk(delta: Mapping[str, str], reason: str | None = None) -> bytes:
    return _data({**_CHAT, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def _typed(kind: str, **fields: Any) -> bytes:
    return _data({"type": kind, **fields}, kind)


_MESSAGE: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "mock", "content": [], "stop_reason": None,
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip

SHAPES = {
    "sse": StreamShape(
        lambda text: f"data: {text}\n\n".encode(),
        _data(_FAILURE, "error"),
        after=b"data: [DONE]\n\n",
    ),
    "openai-chat": StreamShape(
        lambda text: _chunk({"content": text}),
        _data({"error": _FAILURE}),
        before=_chunk({"role": "assistant", "content": ""}),
        after=_chunk({}, "stop") + b"data: [DONE]\n\n",
    ),
    "anthropic": StreamShape(
        lambda text: _typed("content_block_delta", index=0, delta={"type": "text_delta", "text": text}),
        _typed("error", error=_FAILURE),
        before=_typed("message_start", message=_MESSAGE)
        + _typed("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        after=_typed("content_block_stop", index=0)
        + _typed("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 5})
        + _typed("message_stop"),
    ),
}


def _marked(shape: StreamShape, stream: int, number: int) -> bytes:
    """An event with its mark, whose last digits are the number of the stream."""
    text = f"@{number:06d}{time.monotonic_ns():018d}{stream:06d} and some text"
    before = shape.before if number == 0 else b""
    return before + shape.event(text)


def _framed(make: Callable[[], bytes]) -> bytes:
    body = make()
    return b"%x\r\n%s\r\n" % (len(body), body)


def whole(shape: StreamShape, stream: int, pause: float, *, chunked: bool = True) -> Paced:
    """A stream of five events, in chunks or until the connection is closed. Its last chunk comes a pause later."""
    events: list[Callable[[], bytes]] = [partial(_marked, shape, stream, number) for number in range(EVENTS)]
    if not chunked:
        return Paced(_HEAD + b"Connection: close\r\n\r\n", (*events, lambda: shape.after), pause, last=True)
    parts = [partial(_framed, event) for event in (*events[:-1], lambda: events[-1]() + shape.after)]
    return Paced(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", (*parts, lambda: b"0\r\n\r\n"), pause)


def cut(shape: StreamShape, stream: int, pause: float) -> Paced:
    """Two events and half of the third, then the end of the connection."""
    good = whole(shape, stream, pause)
    half = _framed(partial(_marked, shape, stream, 2))
    return Paced(good.start, (*good.parts[:2], lambda: half[: len(half) // 2]), pause, last=True)


def failing(shape: StreamShape, stream: int, pause: float) -> Paced:
    """Two events and one that is an error. The body ends as it should."""
    good = whole(shape, stream, pause)
    return Paced(good.start, (*good.parts[:2], lambda: _framed(lambda: shape.error), good.parts[-1]), pause)


def long(shape: StreamShape, stream: int, pause: float, events: int) -> Paced:
    """A stream of many events."""
    start = whole(shape, stream, pause).start
    parts = [partial(_framed, partial(_marked, shape, stream, number)) for number in range(events)]
    return Paced(start, parts, pause, last=True)
