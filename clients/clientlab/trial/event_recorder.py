"""Records the events of streams.

A sink gets each piece as the client hands it over, and reads the clock at once.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from clientlab.errors import ClientError
from clientlab.trial.sample_log import EventLog, SampleLog, write_event
from clientlab.workload.parts import EventStream

_MARK_SIZE = 31  # `@` and 30 digits
_ERROR = re.compile(
    rb'^event: ?error\b|"type": ?"(?:error|response\.failed)"|^(?:data: ?)?\{"error":',
    re.MULTILINE,
)
_TEXTS = {  # what holds the text of an event, where no mark does
    "sse": rb"^data:(?! ?\[DONE\])",
    "jsonl": rb"^\{",
    "openai-chat": rb'"content": ?"[^"]',
    "openai-responses": rb'"type": ?"response\.output_text\.delta"',
    "anthropic": rb'"type": ?"text_delta"',
}
_PARSED_SSE = rb"^(?!event:|(?:data: ?)?\[DONE\])."


class EventSink:
    """Takes the events of one stream as the client hands them over.

    `number`: of the request in this shard. `size`: bytes, or characters of parsed
    texts.

    `expected`: how many events the lab's upstream sends; None for the user's own
    server, whose events have no marks, but fit `pattern`.
    """

    __slots__ = (
        "_buffer",
        "_expected",
        "_last",
        "_log",
        "_next_place",
        "_pattern",
        "_pending",
        "_request",
        "count",
        "size",
    )

    def __init__(
        self,
        log: EventLog,
        expected: int | None,
        pattern: re.Pattern[bytes],
        request: int,
    ) -> None:
        self._log = log
        self._buffer = log.buffer
        self._next_place = log.next_place
        self._request = request
        self._expected = expected
        self._pattern = pattern
        self.count = 0
        self.size = 0
        self._last: bytes | str = b""
        self._pending = b""  # the end of a chunk that may be the beginning of a mark

    def finish(self, status: int) -> None:
        """Raise ClientError if the stream had an error event, or events are missing.

        Their order is checked later. A refused request has no events.
        """
        if status >= 400:
            return
        self._check(self._last.encode() if isinstance(self._last, str) else self._last)
        if not self.count or self._expected not in {None, self.count}:
            expected = "" if self._expected is None else f" of {self._expected:,}"
            raise ClientError(
                "events-missing",
                f"the stream ended after {self.count:,}{expected} events",
            )

    def _check(self, piece: bytes) -> None:
        if _ERROR.search(piece):
            text = " ".join(piece.decode("utf-8", "replace").split())
            raise ClientError("event-error", text[:300])

    def _record(self, now: float, mark: bytes) -> None:
        count = self.count
        self.count = count + 1
        place = self._next_place()
        try:
            write_event(self._buffer, place, self._request, now, mark, 1)
        except struct.error:
            self._buffer = self._log.write_late(place, self._request, now, mark)
        if count == self._expected:  # a stream without an end
            raise ClientError(
                "events-missing", f"the stream goes on after {self._expected:,} events"
            )


class ParsedEventSink(EventSink):
    """Takes events, or lines, that the library has parsed."""

    __slots__ = ()

    def take(self, text: str | bytes) -> None:
        """Take an event, which holds at most one mark."""
        now = perf_counter()
        self.size += len(text)
        if self._expected is None:
            piece = text.encode() if isinstance(text, str) else text
            self._check(piece)
            if self._pattern.search(piece):
                self._record(now, b"")
            return
        at = text.find("@" if isinstance(text, str) else b"@")  # type: ignore[arg-type]
        if at < 0:
            self._last = text or self._last
            return
        mark = text[at + 1 : at + _MARK_SIZE]
        self._record(now, mark.encode() if isinstance(mark, str) else mark)


class ChunkSink(EventSink):
    """Takes bytes as they arrived."""

    __slots__ = ()

    def take(self, chunk: bytes) -> None:
        """Take a chunk, which may end anywhere, and may hold several events."""
        now = perf_counter()
        self.size += len(chunk)
        chunk = bytes(chunk)  # a memoryview has no `find`
        if self._pending:
            chunk = self._pending + chunk
            self._pending = b""
        if self._expected is None:
            self._take_lines(chunk, now)
            return
        at = chunk.find(b"@")
        if at < 0:
            self._last = chunk
            return
        while at >= 0:
            end = at + _MARK_SIZE
            mark = chunk[at + 1 : end]
            if len(mark) < _MARK_SIZE - 1:
                self._pending = chunk[at:]
                return
            self._record(now, mark)
            at = chunk.find(b"@", end)

    def _take_lines(self, chunk: bytes, now: float) -> None:
        """Count the events in the whole lines of a chunk without marks."""
        whole, _, self._pending = chunk.rpartition(b"\n")
        self._check(whole)
        for _ in self._pattern.finditer(whole):
            self._record(now, b"")


def choose_sinks(
    log: SampleLog, stream: EventStream, client: Any
) -> Callable[[int], EventSink]:
    """Return a function from the number of a request to the sink of its events.

    A client has a method `events`, which hands over parsed events, or only their texts
    if `hands_over_texts` is true; or a method `stream`, which passes on chunks as they
    arrive.
    """
    if log.events is None:
        raise ValueError("the log of a workload without a stream")
    parses = hasattr(client, "events")
    pattern = _TEXTS[stream.format]
    if getattr(client, "hands_over_texts", False):
        pattern = b""  # a text may be a line feed
    elif parses and stream.format == "sse":
        pattern = _PARSED_SSE
    new_sink = partial(
        ParsedEventSink if parses else ChunkSink,
        log.events,
        stream.events if stream.marks else None,
        re.compile(pattern, re.MULTILINE),
    )
    return lambda number: new_sink(log.shard + number * log.shards)
