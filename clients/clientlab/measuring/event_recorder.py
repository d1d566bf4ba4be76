"""Records the events of streams: each is stamped the moment at which the client hands it over, before anything else.

A piece of a stream is what a client hands over: a line, a chunk, or a whole event. The lab's upstream writes a mark
into each event, an `@` and thirty digits, which are kept as they are. Of a foreign server, events are counted by the
format.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, cast

from clientlab.clients.client_interface import AsyncEventStreaming, EventSink, EventStreaming, Pieces
from clientlab.errors import Fault
from clientlab.measuring.sending import AsyncSend, Send
from clientlab.samples.event_log import ANSWERED, BEGUN, MARKED, UNMARKED, EventLog, write_event
from clientlab.samples.log import SampleLog
from clientlab.workload.stream_requests import events_of, warming_up
from clientlab.workload.streams import MARK_CHARACTERS, StreamFormat
from clientlab.workload.workload import Request, Workload


class StopStream(Exception):
    """The workload leaves the stream here. A sink raises it, and the client closes the response."""


_ERROR_EVENT = r'^event: ?error\b|"type": ?"(?:error|response\.failed)"|^(?:data: ?)?\{"error":'
"""Of a piece without a mark: an SSE event of that name, and the errors of the APIs whose formats the lab reads."""


@dataclass(frozen=True)
class _Signs:
    """What sinks look for in pieces, as bytes or as text."""

    mark: Any
    error: Any
    error_event: re.Pattern[Any]
    newline: Any
    data: Any
    done: Any
    nothing: Any


_MOST_PENDING = 4096
_SHORTEST_ERROR = len("event:error")

_OF_BYTES = _Signs(b"@", b"error", re.compile(_ERROR_EVENT.encode(), re.MULTILINE), b"\n", b"data:", b"[DONE]", b"")
_OF_TEXT = _Signs("@", "error", re.compile(_ERROR_EVENT, re.MULTILINE), "\n", "data:", "[DONE]", "")


@dataclass(frozen=True)
class SinkRules:
    """What the sinks of a trial need. `most`: events of a stream. `stops`: the client leaves it after so many.

    `foreign`: events have no marks, so they are counted by format and pieces.
    """

    stream: StreamFormat
    most: int
    stops: bool
    foreign: bool
    signs: _Signs
    pieces: Pieces
    most_of_warm_up: int

    @property
    def of_warm_up(self) -> SinkRules:
        """The rules for the streams of a warm-up."""
        return replace(self, most=self.most_of_warm_up, stops=self.foreign and self.stops)


def rules_of(client: Any, workload: Workload) -> SinkRules:
    """The rules for streams of the workload, as the client hands them over."""
    if workload.stream is None:
        raise ValueError("a workload without a stream")
    stops = workload.stop_after is not None
    most = workload.stop_after if workload.stop_after is not None else events_of(workload)
    short = warming_up(workload)
    return SinkRules(
        stream=workload.stream,
        most=most,
        stops=stops,
        foreign=workload.foreign,
        signs=_OF_BYTES if client.events_as == "bytes" else _OF_TEXT,
        pieces=client.pieces,
        most_of_warm_up=most if workload.foreign else events_of(short),
    )


class StreamRecord:
    """What is recorded of one stream. `sink` goes to the client. Its length is that of its pieces with events.

    `count`: events so far; `size`: of the pieces with events; `status`: of the response. The sinks of marked events are
    closures, because every event pays for each look-up.
    """

    def __init__(self, log: EventLog, request: int, rules: SinkRules) -> None:
        self.count = self.size = self.status = 0
        self._log = log
        self._request = log.shard + request * log.shards
        self._rules = rules
        self._last: Any = None
        self._tail: Any = None
        self._pending: Any = None
        if rules.foreign:
            sink = self._foreign_sink()
        else:
            sink = self._sink_of_chunks() if rules.pieces == "chunks" else self._sink_of_events()
        sink.answered = self._answered  # type: ignore[attr-defined]
        self.sink = cast("EventSink", sink)
        self._write(perf_counter(), b"", BEGUN)

    def __len__(self) -> int:
        return self.size

    def finish(self) -> None:
        """The stream has ended. Raises Fault where events are missing.

        That each came once and in order is seen when the trial's log is read.
        """
        if self._pending is not None:
            self._check(self._pending)
        if self._rules.foreign:
            if self._tail is not None:
                self._line(self._tail, perf_counter())
            if not self.count:
                raise Fault("events-missing", "the response has no event of this format")
        elif self.count < (most := self._rules.most) or int(self._last[:6]) != most - 1:
            raise Fault("events-missing", f"the stream ended after {self.count:,} of {most:,} events")

    def _answered(self, status: int) -> None:
        self._write(perf_counter(), b"", ANSWERED)
        self.status = status

    def _sink_of_events(self) -> Callable[[Any], None]:
        """A sink of lines or whole events: a piece has one mark at most, and has it whole."""
        log, request, signs = self._log, self._request, self._rules.signs
        buffer, next_place, most, full = log.buffer, log.next_place, self._rules.most, self._full
        mark, error, as_text, clock, write = signs.mark, signs.error, signs is _OF_TEXT, perf_counter, write_event

        def sink(piece: Any) -> None:
            nonlocal buffer
            now = clock()
            length = len(piece)
            if length < MARK_CHARACTERS:  # the line behind an event, or its id
                if length >= _SHORTEST_ERROR and piece.find(error) >= 0:
                    self._check(piece)
                return
            at = piece.find(mark)
            if at < 0:
                if piece.find(error) >= 0:
                    self._check(piece)
                return
            self._last = digits = piece[at + 1 : at + MARK_CHARACTERS]
            place = next_place()
            try:
                write(buffer, place, request, now, digits.encode() if as_text else digits, MARKED, 1)
            except struct.error:
                log.write_late(place, request, now, digits.encode() if as_text else digits, MARKED)
                buffer = log.buffer
            self.size += length
            self.count = count = self.count + 1
            if count >= most:
                full()

        return sink

    def _sink_of_chunks(self) -> Callable[[Any], None]:
        """A sink of chunks, which may end anywhere, and may have several marks."""
        mark, as_text = self._rules.signs.mark, self._rules.signs is _OF_TEXT

        def sink(piece: Any) -> None:
            now = perf_counter()
            self.size += len(piece)
            if self._tail is not None:
                piece, self._tail = self._tail + piece, None
            at = piece.find(mark)
            if at < 0:
                self._pend(piece)
                return
            self._pending = None
            while at >= 0:
                end = at + MARK_CHARACTERS
                digits = piece[at + 1 : end]
                if end > len(piece):  # the chunk ends within the mark
                    self._tail = piece[at:]
                    return
                self._last = digits
                self._event(digits.encode() if as_text else digits, now, MARKED)
                at = piece.find(mark, end)

        return sink

    def _pend(self, piece: Any) -> None:
        """Keep the end of a chunk without a mark, and look at its whole lines: an error may be in several chunks."""
        pending = piece if self._pending is None else self._pending[-_MOST_PENDING:] + piece
        end = pending.rfind(self._rules.signs.newline) + 1
        if end:
            self._check(pending[:end])
        self._pending = pending[end:]

    def _foreign_sink(self) -> Callable[[Any], None]:
        """A sink of a server that writes no marks."""
        takes = {"events": self._text, "lines": self._line, "chunks": self._chunk}[self._rules.pieces]

        def sink(piece: Any) -> None:
            now = perf_counter()
            self.size += len(piece)
            takes(piece, now)

        return sink

    def _chunk(self, chunk: Any, now: float) -> None:
        *lines, self._tail = (chunk if self._tail is None else self._tail + chunk).split(self._rules.signs.newline)
        for line in lines:
            self._line(line, now)

    def _line(self, line: Any, now: float) -> None:
        line, signs = line.strip(), self._rules.signs
        if self._rules.stream == "jsonl":
            if line:
                self._text(line, now)
        elif line.startswith(signs.data):
            self._text(line[len(signs.data) :].strip(), now)
        else:
            self._check(line)

    def _text(self, text: Any, now: float) -> None:
        """The text of an event. Parsers hand over the end of a stream of OpenAI's like one."""
        if text != self._rules.signs.done:
            self._check(text)
            self._event(b"", now, UNMARKED)

    def _event(self, digits: bytes, now: float, kind: int) -> None:
        self._write(now, digits, kind)
        self.count += 1
        if self.count >= self._rules.most:
            self._full()

    def _write(self, now: float, digits: bytes, kind: int) -> None:
        place = self._log.next_place()
        try:
            write_event(self._log.buffer, place, self._request, now, digits, kind, 1)
        except struct.error:
            self._log.write_late(place, self._request, now, digits, kind)

    def _full(self) -> None:
        """As many events as the workload reads are there. Raises StopStream, or Fault for one more."""
        if self._rules.stops:
            raise StopStream
        if self.count > self._rules.most:
            message = f"more than {self._rules.most:,} events; set `events` to the most of a stream"
            raise Fault("events-beyond", message)

    def _check(self, piece: Any) -> None:
        """Raises Fault for a piece without a mark that is an error."""
        if self._rules.signs.error_event.search(piece):
            text = piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece
            raise Fault("event-error", " ".join(text.split())[:300])


class EventRecorder:
    """Iterates over request numbers, and makes the send function that reads the stream of the present one.

    As `ElapsedRecorder`, it belongs to one thread or task.
    """

    def __init__(self, log: SampleLog, rules: SinkRules, numbers: Iterable[int]) -> None:
        if log.events is None:
            raise ValueError("a log without events")
        self._log = log.events
        self._rules = rules
        self._numbers = numbers
        self._number = 0

    def __iter__(self) -> Iterator[int]:
        for number in self._numbers:
            self._number = number
            yield number

    def _begin(self) -> StreamRecord:
        rules = self._rules
        return StreamRecord(self._log, self._number, rules if self._number >= 0 else rules.of_warm_up)

    def sending(self, client: EventStreaming) -> Send:
        """A send function that reads a stream. It returns the status, and the record in place of a body."""

        def send(request: Request) -> tuple[int, StreamRecord]:
            record = self._begin()
            try:
                status = client.events(request, record.sink)
            except StopStream:
                return record.status, record
            finally:
                del record.sink  # it refers back: no stream is left to the garbage collector
            if status < 400:
                record.finish()
            return status, record

        return send

    def asending(self, client: AsyncEventStreaming) -> AsyncSend:
        """The same for asyncio."""

        async def send(request: Request) -> tuple[int, StreamRecord]:
            record = self._begin()
            try:
                status = await client.events(request, record.sink)
            except StopStream:
                return record.status, record
            finally:
                del record.sink  # it refers back: no stream is left to the garbage collector
            if status < 400:
                record.finish()
            return status, record

        return send
