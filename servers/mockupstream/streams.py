"""Streams of events: the settings of one request, and the planned moments of its events.

The settings stand in the query, or, where a library owns the URL, in the header X-Stream, whose value is a query
string.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from mockupstream import delays, stream_formats
from mockupstream.behaviour import read_delay
from mockupstream.payloads import BLOCK
from mockupstream.refusals import RefusedError, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mockupstream.behaviour import Behaviour
    from mockupstream.settings import Settings

HEADER = "x-stream"
MOST_KEPT = 1 << 20
"""Bytes of a JSON body that a server keeps until it is read."""
_DEFAULTS = (
    ("format", "sse"),
    ("first", "0"),
    ("every", "10ms"),
    ("events", "10"),
    ("size", "48"),
    ("pings", "0"),
    ("usage", "0"),
    ("end", "apart"),
)
_NAMES = (*(name for name, _ in _DEFAULTS), "seed", "delay", "status")
_AT_ONCE = delays.Fixed(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """One stream: `events` events, the first one `first` seconds after the request was read, then gaps of `every`.

    A gap is drawn when it begins, and is `longest` seconds at most. `pings`: after how many events comes a ping each
    time, 0 for never. `end`: how long after the last event the HTTP body ends, in a write of its own; None: in the same
    write as the last bytes. `sized`: the head states the body's length, so nothing comes behind the last bytes.
    """

    format: stream_formats.StreamFormat
    events: int
    first: float
    every: delays.ParsedDelay
    longest: float
    pings: int
    end: delays.ParsedDelay | None
    sized: bool
    source: random.Random

    @property
    def length(self) -> int | None:
        """Bytes of the body, if the head states them."""
        return self.format.length(self.events, self.pings) if self.sized else None

    def moments(self, read: float) -> Iterator[float]:
        """Yield the planned moment of each event, in seconds of the clock by which the request was read at `read`.

        A late event delays no later one.
        """
        moment = read + self.first
        yield moment
        for _ in range(self.events - 1):
            moment += min(self.every.draw(self.source), self.longest)
            yield moment

    def pings_after(self, number: int) -> bool:
        """Whether a ping follows event `number`, from 0."""
        return self.pings > 0 and (number + 1) % self.pings == 0


class _Settings(NamedTuple):
    """The settings that are the same for all streams of a workload, as read; see EventStream."""

    format: stream_formats.StreamFormat
    events: int
    first: delays.ParsedDelay
    every: delays.ParsedDelay
    pings: int
    end: delays.ParsedDelay | None


class StreamReader:
    """Reads the settings of streams within the limits of an upstream."""

    def __init__(self, settings: Settings) -> None:
        """Streams without a seed are drawn from an own random source."""
        self._limits = settings
        self._source = random.Random()  # noqa: S311
        # The streams of a workload differ in their seeds alone. While one is read, all others of the worker wait.
        self._settings = lru_cache(maxsize=256)(self._read)

    def read(self, behaviour: Behaviour, name: str | None = None, *, usage: bool = False) -> EventStream:
        """Return the stream of one request. Raises RefusedError (400).

        `name`: the format, if the path decides it. `usage`: the request's body wants the count of tokens.
        """
        found = behaviour.parameters
        settings = self._settings(*(found.get(setting, default) for setting, default in _DEFAULTS), name, usage)
        source = self._source if behaviour.seed is None else random.Random(behaviour.seed)  # noqa: S311
        first, limit = settings.first.draw(source), self._limits.most_delay
        limit.check(first, f"first of {first:.6g} s, as drawn,")
        return EventStream(
            format=settings.format,
            events=settings.events,
            first=first,
            every=settings.every,
            longest=limit.value,
            pings=settings.pings,
            end=settings.end,
            sized=found.get("end") == "length",
            source=source,
        )

    def _read(  # noqa: PLR0913, PLR0917 - one argument a setting, so that the results can be remembered by them
        self,
        format_: str,
        first: str,
        every: str,
        events: str,
        size: str,
        pings: str,
        usage: str,
        end: str,
        name: str | None,
        wanted: bool,  # noqa: FBT001
    ) -> _Settings:
        count, characters = whole_number(events, "events", 1), _size(size)
        self._limits.most_events.check(count, f"a stream of {count} events")
        self._limits.most_size.check(count * characters, f"a stream of {count * characters} characters")
        counted = _switch(usage, "usage") or wanted
        return _Settings(
            stream_formats.prepare(name or _format(format_), count, characters, usage=counted),
            count,
            self._delay(first, "first"),
            self._gap(every),
            whole_number(pings, "pings", 0),
            self._end(end),
        )

    def _gap(self, text: str) -> delays.ParsedDelay:
        every = self._delay(text, "every")
        # Of all delays, only one that is always 0 draws 0 from this source.
        if every.draw(random.Random(0)) <= 0:  # noqa: S311
            raise RefusedError(400, f"every: the gap must be above 0, not {text}")
        return every

    def _end(self, text: str) -> delays.ParsedDelay | None:
        if text == "with":
            return None
        if text in {"apart", "length"}:
            return _AT_ONCE
        try:
            return self._delay(text, "end")
        except RefusedError as refused:
            raise RefusedError(400, f"{refused}; write with, apart, length or a delay") from refused

    def _delay(self, text: str, name: str) -> delays.ParsedDelay:
        delay = read_delay(text, name)
        self._limits.most_delay.check(delay.stated, f"{name} of {delay}")
        return delay


def merged(query: str, headers: Mapping[str, str]) -> str:
    """Return the query string of a stream: that of the header first, because the first of each name counts.

    Raises RefusedError (400) if the header names a setting that does not exist.
    """
    header = headers.get(HEADER)
    if header is None:
        return query
    for name, _ in parse_qsl(header, keep_blank_values=True):
        if name not in _NAMES:
            raise RefusedError(400, f"X-Stream: no setting is called {name!r}: there are {', '.join(_NAMES)}")
    return f"{header}&{query}"


def wants_usage(length: int, body: bytes) -> bool:
    """Whether the JSON body of a request to an API's path wants the count of tokens.

    Raises RefusedError (400) if the body wants no stream, or cannot be read.
    """
    if length > MOST_KEPT:
        raise RefusedError(400, f"a JSON body must have at most {MOST_KEPT} bytes, not {length}")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("stream") is not True:
        raise RefusedError(400, 'only streams are served: send a JSON body with "stream": true')
    options = document.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _format(name: str) -> str:
    if name not in stream_formats.FORMATS:
        raise RefusedError(400, f"no format is called {name!r}: there are {', '.join(stream_formats.FORMATS)}")
    return name


def _size(text: str) -> int:
    size = whole_number(text, "size", stream_formats.MARK_SIZE)
    if size > BLOCK:
        raise RefusedError(400, f"size must be from {stream_formats.MARK_SIZE} to {BLOCK}, not {size}")
    return size


def _switch(text: str, name: str) -> bool:
    if text not in {"0", "1"}:
        raise RefusedError(400, f"{name} must be 0 or 1, not {text!r}")
    return text == "1"
