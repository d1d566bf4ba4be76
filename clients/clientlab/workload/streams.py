"""Streams of events: how a request asks the lab's upstreams for one, and where each
format is served.
"""

from __future__ import annotations

import json
from typing import Any, Literal
from urllib.parse import parse_qsl

from clientlab.errors import FieldError
from clientlab.workload.values import Delay

StreamFormat = Literal["sse", "jsonl", "openai-chat", "openai-responses", "anthropic"]

HEADER = "X-Stream"
"""Header with the settings of a stream as a query string (mockupstream.streams)."""
DEFAULT_FIRST, DEFAULT_EVERY, DEFAULT_EVENTS = (
    Delay.parse("0ms"),
    Delay.parse("10ms"),
    100,
)
# Of a trial; their records take 240 MB of disk space, and to read them takes 1 GB of
# memory.
MOST_EVENTS = 5_000_000
# That a stream of the user's own server may take before the trial counts as stalled.
UNKNOWN_SECONDS = 300.0
_EVENT_SIZES = 31, 16 << 20  # characters of an event's text; the shortest is its mark
_MOST_STREAM_SIZE = (
    256 << 20
)  # characters of all events, which an upstream of the lab sends at most
_OPTIONS = ("size", "pings", "usage", "end", "sized", "type")
_PROMPT = [{"role": "user", "content": "Hello"}]
_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": (
        "/v1/chat/completions",
        {"model": "mock", "messages": _PROMPT, "stream": True},
    ),
    "openai-responses": (
        "/v1/responses",
        {"model": "mock", "input": "Hello", "stream": True},
    ),
    "anthropic": (
        "/v1/messages",
        {"model": "mock", "max_tokens": 1024, "messages": _PROMPT, "stream": True},
    ),
}
API_PATHS = {name: path for name, (path, _) in _CALLS.items()}


def default_call(stream: StreamFormat) -> tuple[str, str, str | None]:
    """Return method, path and body of a request for a stream of this format."""
    if stream not in _CALLS:
        return "GET", "/stream", None
    path, document = _CALLS[stream]
    return "POST", path, json.dumps(document)


def check_options(options: str, events: int) -> None:
    """Raise FieldError for settings of a stream of `events` that the
    upstreams refuse.
    """
    given = parse_qsl(options, keep_blank_values=True)
    names = [name for name, _ in given]
    if wrong := next(
        (name for name in names if name not in _OPTIONS),
        None if names or not options else options,
    ):
        message = (
            f"a stream has no setting {wrong!r}; write some of {', '.join(_OPTIONS)},"
            " like pings=10&end=5ms"
        )
        raise FieldError(["stream_options"], message)
    if "size" in names:
        _check_size(dict(given)["size"], events)


def _check_size(size: str, events: int) -> None:
    least, most = _EVENT_SIZES
    most = min(most, _MOST_STREAM_SIZE // events)
    if not size.isdecimal() or not least <= int(size) <= most:
        message = f"each of {events:,} events has {least} to {most:,} characters"
        raise FieldError(["stream_options"], message, value=f"size={size}")
