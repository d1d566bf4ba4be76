"""Streams of events as servers of language models send them: five formats, and the
moments of the events.

The text of each event begins with a mark of 31 characters: `@`, six digits of its
number (from 0), 18 digits of the monotonic nanoseconds right before its write, and six
digits of the microseconds by which this write was late. So a client on the same machine
learns how long each event was on its way, and how exact this server is. `@` is nowhere
else.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from mockupstream import delays
from mockupstream.behaviour import read_delay
from mockupstream.payloads import Piece
from mockupstream.refusals import RefusedError, whole_number
from mockupstream.settings import Settings

HEADER = "x-stream"
"""Header with the settings as a query string, for libraries that own the URL.

It overrides the query.
"""
DEFAULTS = {
    "format": "sse",
    "first": "0",
    "every": "10ms",
    "events": "10",
    "size": "48",
    "pings": "0",
    "usage": "0",
    "end": "0",
    "sized": "0",
    "type": "",
}
_OTHERS = {"seed", "delay", "status"}  # of every request
_MARK, _MARK_SIZE = "@%06d%018d%06d", 31
_MOST_LATE = 999_999
_MOST_EVENTS = 1_000_000
_MOST_CHARACTERS = 16 << 20
_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_EVENT_STREAM = "text/event-stream"


class EventFormat(NamedTuple):
    """A format with its texts.

    `opening` is sent before the first event, `closing` after the last one.

    `event`: the template of an event, with the mark; `offset`: if it is not None, a
    field before the mark holds the event's number plus this.
    """

    content_type: str
    opening: bytes
    event: bytes
    closing: bytes
    ping: bytes = b": ping\n\n"
    offset: int | None = None

    def write(self, number: int, due: float) -> bytes:
        """Return event `number`, which is written now and was planned for `due`
        (monotonic seconds).
        """
        now = time.monotonic_ns()
        late = min(_MOST_LATE, max(0, int((now / 1e9 - due) * 1e6)))
        mark = (number, now, late)
        return self.event % (
            mark if self.offset is None else (number + self.offset, *mark)
        )


@dataclass(frozen=True, slots=True)
class Stream:
    """The settings of a stream.

    Each gap begins at the planned moment of the event before it, even if that was late.

    `pings`: a ping follows each of so many events; 0: none. `end`: seconds from the
    last event to the end of the body; None: both in one write. `length`: bytes of the
    body, which are announced; None: it is sent in chunks.
    """

    format: EventFormat
    first: delays.ParsedDelay
    every: delays.ParsedDelay
    events: int
    pings: int
    end: float | None
    length: int | None = None

    def pieces(self, seed: int | None) -> Iterator[Piece]:
        """Yield the parts of the body. Their pauses are drawn with `seed`."""
        source, form = random.Random(seed), self.format  # noqa: S311
        for number in range(self.events):
            pause = (self.every if number else self.first).draw(source)
            yield Piece(pause, partial(self.write, number))
        if form.closing:
            yield Piece(0.0, form.closing, self.end is None)
        if self.end:
            yield Piece(self.end, b"")

    def write(self, number: int, due: float) -> bytes:
        """Return event `number` with what is sent in the same write.

        Its length does not depend on `due`.
        """
        event = self.format.write(number, due)
        if not number:
            event = self.format.opening + event
        return (
            event + self.format.ping
            if self.pings and (number + 1) % self.pings == 0
            else event
        )


def read_stream(settings: Mapping[str, str], limits: Settings) -> Stream:
    """Return the stream with these settings, within the limits.

    Raise RefusedError (400).
    """
    if unknown := settings.keys() - DEFAULTS.keys() - _OTHERS:
        raise RefusedError(
            400,
            f"a stream has no setting {min(unknown)!r}; it has {', '.join(DEFAULTS)}",
        )
    chosen = {**DEFAULTS, **settings}
    if chosen["format"] not in FORMATS:
        raise RefusedError(
            400, f"format must be one of {', '.join(FORMATS)}, not {chosen['format']!r}"
        )
    events, size = (
        whole_number(chosen["events"], "events", 1),
        whole_number(chosen["size"], "size", _MARK_SIZE),
    )
    for name, value, most in (
        ("events", events, _MOST_EVENTS),
        ("size", size, _MOST_CHARACTERS),
    ):
        if value > most:
            raise RefusedError(400, f"{name} must be at most {most}, not {value}")
    limits.most_size.check(events * size, f"a stream of {events * size} characters")
    along = chosen["end"] == "along"
    first, every, end = (
        read_delay(text)
        for text in (chosen["first"], chosen["every"], "0" if along else chosen["end"])
    )
    for name, delay in (("first", first), ("every", every), ("end", end)):
        limits.most_delay.check(delay.stated, f"{name}={delay}")
    if not every.stated:
        raise RefusedError(400, f"every must be above 0, not {every}")
    pings, usage, sized = (
        whole_number(chosen[name], name, 0) for name in ("pings", "usage", "sized")
    )
    text = f"{_MARK} {_LETTERS * (size // len(_LETTERS) + 1)}"[
        : len(_MARK) + size - _MARK_SIZE
    ]
    form = FORMATS[chosen["format"]](text, events, bool(usage))
    if chosen["type"] and not _TYPE.fullmatch(chosen["type"]):
        raise RefusedError(
            400, f"type must be a content type like text/plain, not {chosen['type']!r}"
        )
    if chosen["type"]:
        form = form._replace(content_type=chosen["type"])
    stream = Stream(form, first, every, events, pings, None if along else end.stated)
    if not sized:
        return stream
    return replace(
        stream,
        length=sum(len(stream.write(number, 0.0)) for number in range(events))
        + len(form.closing),
    )


def _write_data(document: object, name: str = "") -> str:
    text = json.dumps(document, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n"


def _write_typed(events: Iterable[dict[str, Any]]) -> str:
    return "".join(_write_data(event, event["type"]) for event in events)


def _sse(text: str, _events: int, _usage: bool) -> EventFormat:  # noqa: FBT001 - a format's arguments
    return EventFormat(
        _EVENT_STREAM, b"", f"data: {text}\n\n".encode(), b"data: [DONE]\n\n"
    )


def _jsonl(text: str, _events: int, _usage: bool) -> EventFormat:  # noqa: FBT001
    return EventFormat(
        "application/x-ndjson", b"", f'{{"text":"{text}"}}\n'.encode(), b"", b"\n"
    )


def _openai_chat(text: str, events: int, usage: bool) -> EventFormat:  # noqa: FBT001
    """Chunks of chat completions. With `usage`, the last chunk counts the tokens."""
    envelope = {
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "mock",
    }

    def chunk(delta: dict[str, str], finish: str | None = None) -> str:
        return _write_data(
            {
                **envelope,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }
        )

    counts = {
        "prompt_tokens": 1,
        "completion_tokens": events,
        "total_tokens": 1 + events,
    }
    counted = _write_data({**envelope, "choices": [], "usage": counts}) if usage else ""
    return EventFormat(
        _EVENT_STREAM,
        chunk({"role": "assistant", "content": ""}).encode(),
        chunk({"content": text}).encode(),
        f"{chunk({}, 'stop')}{counted}data: [DONE]\n\n".encode(),
    )


_RESPONSE = {
    "id": "resp_mock",
    "object": "response",
    "created_at": 0,
    "model": "mock",
    "output": [],
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
}
"""The fields of OpenAI's object `response`."""


def _openai_responses(text: str, events: int, _usage: bool) -> EventFormat:  # noqa: FBT001
    """Typed events with sequence numbers.

    Those after the last delta leave out the text, which would repeat marks.
    """
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {
        "id": "msg_mock",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    usage = {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": events,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 1 + events,
    }
    opening: list[dict[str, Any]] = [
        {
            "type": "response.created",
            "response": {**_RESPONSE, "status": "in_progress"},
        },
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "content": []},
        },
        {"type": "response.content_part.added", **where, "part": part},
    ]
    delta = {
        "type": "response.output_text.delta",
        "sequence_number": 0,
        **where,
        "delta": text,
        "logprobs": [],
    }
    closing: list[dict[str, Any]] = [
        {"type": "response.output_text.done", **where, "text": "", "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {
                **_RESPONSE,
                "status": "completed",
                "output": [item],
                "usage": usage,
            },
        },
    ]
    event = _write_typed([delta]).replace('"sequence_number":0', '"sequence_number":%d')
    first = len(opening) + events
    return EventFormat(
        _EVENT_STREAM,
        _write_typed(
            one | {"sequence_number": number} for number, one in enumerate(opening)
        ).encode(),
        event.encode(),
        _write_typed(
            one | {"sequence_number": number}
            for number, one in enumerate(closing, first)
        ).encode(),
        offset=len(opening),
    )


def _anthropic(text: str, events: int, _usage: bool) -> EventFormat:  # noqa: FBT001
    message: dict[str, Any] = {
        "id": "msg_mock",
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    opening: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
    ]
    delta = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    }
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    closing: list[dict[str, Any]] = [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": events}},
        {"type": "message_stop"},
    ]
    return EventFormat(
        _EVENT_STREAM,
        _write_typed(opening).encode(),
        _write_typed([delta]).encode(),
        _write_typed(closing).encode(),
        _write_typed([{"type": "ping"}]).encode(),
    )


FORMATS: dict[str, Callable[[str, int, bool], EventFormat]] = {
    "sse": _sse,
    "jsonl": _jsonl,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
}
