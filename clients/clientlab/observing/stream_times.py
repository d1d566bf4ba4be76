"""Reads event logs: the times of a trial's streams, or the news of a running trial."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clientlab.observing.noise import over_parts
from clientlab.observing.samples import Flags, Integers, Records, Samples
from clientlab.statistics.histogram import Floats
from clientlab.trial.sample_log import EVENT_FIELDS, EVENT_SIZE, EVENTS_SUFFIX

EVENT = np.dtype(list(EVENT_FIELDS))
_NONE: Floats = np.empty(0)
_NO_EVENTS = np.empty(0, EVENT)
_ALMOST_ALL = 0.999
_BLOCK = 4096  # records that are read at a time


@dataclass(frozen=True)
class StreamTimes:
    """The times of the s successful streams of a trial, with n events, in seconds."""

    numbers: Integers
    """Numbers of their requests, ascending, shape (s,)."""

    first: Floats
    """From the real start of each to its first event, (s,)."""

    gaps: Floats
    """Between two events of a stream, (n - s,)."""

    lags: Floats
    """From the write of each event until the client handed it over, (n,).

    Empty if unknown.
    """

    late: Floats
    """By which each event was written after its planned moment, (n,).

    Empty if unknown.
    """

    together: int | None
    """Events that had been written when the one before arrived; None if unknown."""

    disordered: int
    """Streams with an event that is missing, twice or out of order."""

    @property
    def events(self) -> int:
        return len(self.numbers) + len(self.gaps)


def read_streams(folder: Path, samples: Samples) -> StreamTimes:
    """Read the streams of the requests in `samples` that succeeded.

    Their times must be those of the log.
    """
    good = samples.only(samples.records["error"] == 0)
    order = np.argsort(good.numbers)
    numbers = good.numbers[order]
    starts = good.records["start"][order]
    events = _read_events(folder, numbers)
    arrived = events["at"]
    places = np.searchsorted(numbers, events["request"])  # of the streams
    is_first = np.diff(places, prepend=-1) > 0
    begins = np.flatnonzero(is_first)
    follows = ~is_first[1:]
    streams = places[begins]
    lags = _NONE
    late = _NONE
    together = None
    disordered = 0
    marks = parse_marks(events["mark"])
    if len(events) and marks.are_valid.all():
        late = marks.seconds_late
        stream_of_event = np.cumsum(is_first) - 1
        expected = np.arange(len(events)) - begins[stream_of_event]
        is_out_of_order = marks.numbers != expected
        disordered = len(np.unique(places[is_out_of_order]))
        # The clocks of two machines count from different moments: an event would be
        # written before its request was sent.
        is_possible = marks.written >= starts[places]
        is_possible &= marks.written <= arrived
        if is_possible.mean() >= _ALMOST_ALL:
            lags = arrived - marks.written
            was_written = marks.written[1:] <= arrived[:-1]
            together = int(np.count_nonzero(was_written & follows))
    return StreamTimes(
        numbers=numbers[streams],
        first=arrived[begins] - starts[streams],
        gaps=np.diff(arrived)[follows],
        lags=lags,
        late=late,
        together=together,
        disordered=disordered,
    )


def _read_events(folder: Path, numbers: Integers) -> Records:
    """Return the events of these requests, by request and then by time."""
    logs = sorted(folder.glob(f"*{EVENTS_SUFFIX}"))
    parts = [_parse(log.read_bytes()) for log in logs]
    events = np.concatenate([_NO_EVENTS, *parts])
    is_wanted = np.isin(events["request"], numbers)
    events = events[is_wanted & (events["done"] == 1)]
    order = np.lexsort((events["at"], events["request"]))
    ordered: Records = events[order]
    return ordered


def pool_streams(parts: list[StreamTimes]) -> StreamTimes:
    """Return the streams of all shards of a trial.

    Shards without events say nothing about the clocks.
    """
    disordered = sum(part.disordered for part in parts)
    parts = [part for part in parts if part.events] or parts[:1]

    def join(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    numbers = join("numbers")
    order = np.argsort(numbers)
    together = over_parts(sum, parts, "together")
    lags = _NONE
    if together is not None:
        lags = join("lags")
    return StreamTimes(
        numbers=numbers[order],
        first=join("first")[order],
        gaps=join("gaps"),
        lags=lags,
        late=join("late"),
        together=together,
        disordered=disordered,
    )


class Marks(NamedTuple):
    """What a server of the lab wrote into n events, each of shape (n,)."""

    numbers: Integers
    """Of each event in its stream, from 0."""

    written: Floats
    """Seconds on the server's monotonic clock."""

    seconds_late: Floats
    are_valid: Flags


def parse_marks(marks: npt.NDArray[np.bytes_]) -> Marks:
    """Return the parts of the marks of events."""
    flat_codes = np.ascontiguousarray(marks).view(np.uint8)
    codes = flat_codes.reshape(len(marks), 30)
    digits = codes - ord("0")  # other characters are above 9, too

    # Digit by digit: all of them as whole numbers would take 240 bytes per event.
    def parse(first: int, end: int) -> Integers:
        value = np.zeros(len(marks), np.int64)
        for column in range(first, end):
            value = 10 * value + digits[:, column]
        return value

    is_digit = digits <= 9
    return Marks(
        numbers=parse(0, 6),
        written=parse(6, 24) / 1e9,
        seconds_late=parse(24, 30) / 1e6,
        are_valid=np.all(is_digit, axis=1),
    )


@dataclass
class EventFollower:
    """Returns the events of a running trial once, without those of the warm-up."""

    folder: Path
    _read: Counter[Path] = field(default_factory=Counter)
    """Bytes of each log that were read."""

    def new_events(self) -> Records:
        """Return the events that were logged since the previous call."""
        parts = [_NO_EVENTS]
        for path in self.folder.glob(f"*{EVENTS_SUFFIX}"):
            with path.open("rb") as log:
                log.seek(self._read[path])
                while len(block := _parse(log.read(_BLOCK * EVENT_SIZE))):
                    unfinished = np.flatnonzero(block["done"] != 1)
                    if len(unfinished):
                        block = block[: unfinished[0]]
                    self._read[path] += block.nbytes
                    parts.append(block)
                    if len(unfinished):
                        break
        events = np.concatenate(parts)
        return events[events["request"] >= 0]


def _parse(content: bytes) -> Records:
    """Return the whole records in `content`."""
    return np.frombuffer(content, EVENT, len(content) // EVENT_SIZE)
