"""Streams: the formats in which a response is read event by event, their paths, and limits that a stream has to keep.

The lab's upstream writes a mark into each event (see docs/streams.md). A server of the user's own writes none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from clientlab.workload.delays import seconds
from clientlab.workload.written import Written

StreamFormat = Literal["sse", "jsonl", "openai-chat", "openai-responses", "anthropic"]
FORMATS: tuple[StreamFormat, ...] = get_args(StreamFormat)

API_PATHS: dict[StreamFormat, str] = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
"""Format → the path that its SDK calls. The others are read from `PLAIN_PATH`."""
PLAIN_PATH = "/stream"

SETTINGS_HEADER = "X-Stream"
"""Holds the settings of a stream where an SDK owns the URL: a query string."""

DEFAULT_EVENTS = 100
MOST_EVENTS = 100_000
"""Of a stream. The number in a mark has six digits, and the lab's upstream sends no more."""
MOST_EVENTS_OF_TRIAL = 50_000_000
"""Their records take 2.4 GB of disk space."""
DEFAULT_EVERY = 0.01
"""Seconds between two events."""
MARK_CHARACTERS = 31
"""An `@`, 6 digits of the event's number, 18 of its write time, and 6 of how late it was written."""
DEFAULT_EVENT_SIZE = 48

LIMITED = ("head", "first", "gap_p50", "gap_p99", "gap_max", "lag_p50", "lag_p99", "lag_max", "total")
"""Times of a stream that can have a limit: to its head, to its first event, its gaps, its lags, and the whole."""

_LIMIT = re.compile(r"\s*(\w+)\s*(<)\s*(\S+)\s*")


@dataclass(frozen=True)
class StreamLimits(Written):
    """Limits that a stream has to keep to count as good: ``first<300ms,gap_p99<50ms``. `each`: name → seconds."""

    each: tuple[tuple[str, float], ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> StreamLimits:
        """The limits of a text. Raises ValueError for a text that is no such list."""
        found: dict[str, float] = {}
        for part in text.split(","):
            match = _LIMIT.fullmatch(part)
            if match is None:
                raise ValueError(f"{part.strip()!r} is not a limit of a stream; write first<300ms,gap_p99<50ms")
            name, limit = match[1], seconds(match[3])
            if name not in LIMITED:
                raise ValueError(f"{name!r} is not one of {', '.join(LIMITED)}")
            if name in found:
                raise ValueError(f"{name} has two limits in {text!r}; write each once")
            if not limit:
                raise ValueError(f"{part.strip()!r}: nothing takes less than 0; write a limit above 0")
            found[name] = limit
        return cls(tuple(found.items()), ",".join(part.strip() for part in text.split(",")))

    def __str__(self) -> str:
        return self.text
