"""The bytes of streams of events, format by format, in the shapes of the real APIs.

The text of each event begins with a mark of 31 characters: `@`, six digits of the event's number (from 0), 18 digits of
the nanoseconds of the monotonic clock right before its write, and six digits of the microseconds by which this write
is behind its planned moment. A space and letters fill the text. `@` is nowhere else in a body.

A format is prepared once for each kind of stream. Then an event costs one interpolation of its mark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MARK_SIZE = 31
_MARK = "@%06d%018d%06d"
_MOST_LATE = 999_999
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SERVER_SENT = "text/event-stream"
_MODEL = "mock"
# No API counts the same; one is enough for a client that reads the field.
_PROMPT_TOKENS = 1


class StreamFormat(NamedTuple):
    """One format, prepared: the bytes of its parts, and the template of an event.

    `opening` is sent with the first event, `closing` after the last one. `offset` is None where the template holds the
    mark alone; otherwise a field before the mark holds the event's number plus `offset`.
    """

    content_type: str
    opening: bytes
    template: bytes
    offset: int | None
    ping: bytes
    closing: bytes

    def piece(self, number: int, nanoseconds: int, late: float) -> bytes:
        """Return event `number`, from 0, written at `nanoseconds` of the monotonic clock, `late` seconds too late."""
        microseconds = min(_MOST_LATE, int(late * 1_000_000)) if late > 0 else 0
        if self.offset is None:
            event = self.template % (number, nanoseconds, microseconds)
        else:
            event = self.template % (number + self.offset, number, nanoseconds, microseconds)
        return event if number else self.opening + event

    def length(self, events: int, pings: int) -> int:
        """Return the bytes of a body of `events` events, with a ping after each `pings` of them (0: none)."""
        one = len(self.template % ((0,) * (3 if self.offset is None else 4)))
        size = len(self.opening) + events * one + len(self.closing)
        if self.offset is not None:  # the field's further digits
            stop = self.offset + events
            size += sum(max(0, stop - max(self.offset, 10**digits)) for digits in range(1, len(str(stop))))
        return size + (len(self.ping) * (events // pings) if pings else 0)


def prepare(name: str, events: int, size: int, *, usage: bool) -> StreamFormat:
    """Prepare the format `name` (of FORMATS) for `events` events of `size` characters of text, the mark included.

    `usage`: openai-chat also sends the chunk with the count of tokens; the other formats always or never do.
    """
    filler = (_LETTERS * (size // len(_LETTERS) + 1))[: max(0, size - MARK_SIZE - 1)]
    text = f"{_MARK} {filler}" if size > MARK_SIZE else _MARK
    return FORMATS[name](text, events, usage)


def _sse(text: str, _events: int, _usage: bool) -> StreamFormat:  # noqa: FBT001 - a format's signature
    event = f"id: %d\ndata: {text}\n\n".encode()
    return StreamFormat(_SERVER_SENT, b"", event, 0, b": ping\n\n", b"event: done\ndata: [DONE]\n\n")


def _jsonl(text: str, _events: int, _usage: bool) -> StreamFormat:  # noqa: FBT001
    event = f'{{"number": %d, "text": "{text}"}}\n'.encode()
    return StreamFormat("application/x-ndjson", b"", event, 0, b"\n", b'{"done": true}\n')


def _openai_chat(text: str, events: int, usage: bool) -> StreamFormat:  # noqa: FBT001
    """Chat completion chunks; with `usage`, each chunk has the field, and a last one has the counts."""
    envelope = {"id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 0, "model": _MODEL}
    no_usage: dict[str, Any] = {"usage": None} if usage else {}

    def chunk(delta: dict[str, str], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data(envelope | {"choices": [choice]} | no_usage)

    last = [chunk({}, "stop")]
    if usage:
        counts = {"prompt_tokens": _PROMPT_TOKENS, "completion_tokens": events, "total_tokens": _PROMPT_TOKENS + events}
        last.append(_data(envelope | {"choices": [], "usage": counts}))
    return StreamFormat(
        _SERVER_SENT,
        chunk({"role": "assistant", "content": ""}).encode(),
        chunk({"content": text}).encode(),
        None,
        b": ping\n\n",
        "".join([*last, "data: [DONE]\n\n"]).encode(),
    )


def _openai_responses(text: str, events: int, _usage: bool) -> StreamFormat:  # noqa: FBT001
    """Typed events with a sequence number. The closing ones leave the text out, which would repeat every mark."""
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {"id": "msg_mock", "type": "message", "role": "assistant"}
    where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    begun, done = item | {"status": "in_progress", "content": []}, item | {"status": "completed", "content": [part]}
    opening: list[dict[str, Any]] = [
        {"type": "response.created", "response": _response("in_progress")},
        {"type": "response.in_progress", "response": _response("in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.content_part.added", **where, "part": part},
    ]
    delta = {"type": "response.output_text.delta", "sequence_number": "%d", **where, "delta": text, "logprobs": []}
    counts = {
        "input_tokens": _PROMPT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": events,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": _PROMPT_TOKENS + events,
    }
    closing: list[dict[str, Any]] = [
        {"type": "response.output_text.done", **where, "text": "", "logprobs": []},
        {"type": "response.content_part.done", **where, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": _response("completed") | {"output": [done], "usage": counts}},
    ]
    return StreamFormat(
        _SERVER_SENT,
        _numbered(opening, 0),
        _typed(delta).replace('"%d"', "%d").encode(),
        len(opening),
        b": ping\n\n",
        _numbered(closing, len(opening) + events),
    )


def _response(status: str) -> dict[str, Any]:
    return {
        "id": "resp_mock",
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": _MODEL,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _anthropic(text: str, events: int, _usage: bool) -> StreamFormat:  # noqa: FBT001
    message: dict[str, Any] = {
        "id": "msg_mock",
        "type": "message",
        "role": "assistant",
        "model": _MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": _PROMPT_TOKENS, "output_tokens": 1},
    }
    opening: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    closing: list[dict[str, Any]] = [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": events}},
        {"type": "message_stop"},
    ]
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return StreamFormat(
        _SERVER_SENT,
        "".join(map(_typed, opening)).encode(),
        _typed(delta).encode(),
        None,
        _typed({"type": "ping"}).encode(),
        "".join(map(_typed, closing)).encode(),
    )


def _numbered(events: Iterable[dict[str, Any]], first: int) -> bytes:
    return "".join(_typed(event | {"sequence_number": number}) for number, event in enumerate(events, first)).encode()


def _typed(event: dict[str, Any]) -> str:
    return f"event: {event['type']}\n{_data(event)}"


def _data(document: dict[str, Any]) -> str:
    return f"data: {json.dumps(document, separators=(',', ':'))}\n\n"


FORMATS: dict[str, Callable[[str, int, bool], StreamFormat]] = {
    "sse": _sse,
    "jsonl": _jsonl,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
}
