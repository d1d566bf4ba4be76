"""Reads event logs: the times of a trial's streams, or the news of a running trial."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clientlab.observing.samples import Flags, Integers, Records, Samples
from clientlab.statistics.histogram import Floats
from clientlab.trial.sample_log import EVENT_FIELDS, EVENT_SIZE, EVENTS_SUFFIX

EVENT = np.dtype(list(EVENT_FIELDS))
_COLUMNS = (range(6), range(6, 24), range(24, 30))  # of the parts of a mark
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
    good: Flags = samples.records["error"] == 0
    order = np.argsort(samples.numbers[good])
    numbers = samples.numbers[good][order]
    starts = samples.records["start"][good][order]
    logs = sorted(folder.glob(f"*{EVENTS_SUFFIX}"))
    events = np.concatenate([_NO_EVENTS, *(_parse(log.read_bytes()) for log in logs)])
    events = events[(events["done"] == 1) & np.isin(events["request"], numbers)]
    events = events[np.lexsort((events["at"], events["request"]))]
    arrived = events["at"]
    places = np.searchsorted(numbers, events["request"])
    is_first = np.diff(places, prepend=-1) > 0
    begins = np.flatnonzero(is_first)
    follows = ~is_first[1:]
    times = StreamTimes(
        numbers=numbers[places[begins]],
        first=arrived[begins] - starts[places[begins]],
        gaps=np.diff(arrived)[follows],
        lags=_NONE,
        late=_NONE,
        together=None,
        disordered=0,
    )
    (number, nanoseconds, microseconds_late), is_mark = parse_marks(events["mark"])
    if not len(events) or not is_mark.all():
        return times
    in_stream = np.arange(len(events)) - begins[np.cumsum(is_first) - 1]
    times = replace(
        times,
        late=microseconds_late / 1e6,
        disordered=len(np.unique(places[number != in_stream])),
    )
    written = nanoseconds / 1e9
    # The clocks of two machines count from different moments: an event would be written
    # before its request was sent.
    is_possible = (written >= starts[places]) & (written <= arrived)
    if np.mean(is_possible) < _ALMOST_ALL:
        return times
    together = np.count_nonzero((written[1:] <= arrived[:-1])[follows])
    return replace(times, lags=arrived - written, together=int(together))


def pool_streams(parts: list[StreamTimes]) -> StreamTimes:
    """Return the streams of all shards of a trial.

    Shards without events say nothing about the clocks.
    """
    disordered = sum(part.disordered for part in parts)
    parts = [part for part in parts if part.events] or parts[:1]
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(numbers)
    known = [part.together for part in parts if part.together is not None]
    knows_lags = len(known) == len(parts)
    return StreamTimes(
        numbers=numbers[order],
        first=np.concatenate([part.first for part in parts])[order],
        gaps=np.concatenate([part.gaps for part in parts]),
        lags=np.concatenate([part.lags for part in parts]) if knows_lags else _NONE,
        late=np.concatenate([part.late for part in parts]),
        together=sum(known) if knows_lags else None,
        disordered=disordered,
    )


def parse_marks(marks: npt.NDArray[np.bytes_]) -> tuple[list[Integers], Flags]:
    """Return the parts of each mark, each of shape (n,), and whether it is one.

    The parts are number, nanoseconds of the write, and microseconds late.
    """
    codes = np.ascontiguousarray(marks).view(np.uint8).reshape(len(marks), 30)
    is_digit = (codes >= ord("0")) & (codes <= ord("9"))
    parts: list[Integers] = []
    # Digit by digit: all of them as whole numbers would take 240 bytes per event.
    for columns in _COLUMNS:
        value = np.zeros(len(marks), np.int64)
        for column in columns:
            value = 10 * value + codes[:, column] - ord("0")
        parts.append(value)
    return parts, np.asarray(is_digit.all(axis=1))


@dataclass
class EventFollower:
    """Returns the events of a running trial once, without those of the warm-up."""

    folder: Path
    _read: dict[Path, int] = field(default_factory=dict)

    def new_events(self) -> Records:
        """Return the events that were logged since the previous call."""
        parts = [_NO_EVENTS]
        for path in self.folder.glob(f"*{EVENTS_SUFFIX}"):
            with path.open("rb") as log:
                log.seek(self._read.get(path, 0) * EVENT_SIZE)
                while len(block := _parse(log.read(_BLOCK * EVENT_SIZE))):
                    done = block["done"] == 1
                    complete = block if done.all() else block[: int(done.argmin())]
                    self._read[path] = self._read.get(path, 0) + len(complete)
                    parts.append(complete)
                    if len(complete) < len(block):
                        break
        events = np.concatenate(parts)
        return events[events["request"] >= 0]


def _parse(content: bytes) -> Records:
    """Return the whole records in `content`."""
    return np.frombuffer(content, EVENT, len(content) // EVENT_SIZE)
