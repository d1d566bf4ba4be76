"""The reader of event logs: the times of a trial's streams, or what is new in a running
trial.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clientlab.statistics.histogram import Floats
from clientlab.trial.sample_log import EVENT_FIELDS, EVENT_SIZE, EVENTS_SUFFIX
from clientlab.trial.samples import Flags, Integers, Records, Samples

EVENT = np.dtype(list(EVENT_FIELDS))
_DIGITS = (
    range(6),
    range(6, 24),
    range(24, 30),
)  # of a mark: number, nanoseconds of the write, microseconds late
_ALMOST_ALL = 0.999
_BLOCK = 4096  # records that are read at a time


@dataclass(frozen=True)
class StreamTimes:
    """The times of the successful streams of a trial, in seconds.

    `numbers`: of their requests, ascending, shape (s,); `first`: from the real start of
    each to its first event, (s,). `gaps`: between two events of a stream, (n - s,).
    `lags`: from the write of each event until the client handed it over, and `late`: by
    which it was written after its planned moment, (n,); empty if unknown. `together`:
    events that had been written when the one before arrived; None if unknown.
    `disordered`: streams with an event that is missing, twice or out of order.
    """

    numbers: Integers
    first: Floats
    gaps: Floats
    lags: Floats
    late: Floats
    together: int | None
    disordered: int

    @property
    def events(self) -> int:
        return len(self.numbers) + len(self.gaps)


def read_streams(folder: Path, samples: Samples) -> StreamTimes:
    """Read the streams of the requests in `samples` that succeeded.

    Their times must be those of the log.
    """
    good: Flags = samples.records["error"] == 0
    order = np.argsort(samples.numbers[good])
    numbers, starts = (
        samples.numbers[good][order],
        samples.records["start"][good][order],
    )
    parts = [
        _read(path.read_bytes()) for path in sorted(folder.glob(f"*{EVENTS_SUFFIX}"))
    ]
    events = np.concatenate(parts) if parts else np.empty(0, EVENT)
    events = events[(events["done"] == 1) & np.isin(events["request"], numbers)]
    events = events[np.lexsort((events["at"], events["request"]))]
    arrived, places = events["at"], np.searchsorted(numbers, events["request"])
    begins = np.flatnonzero(np.diff(places, prepend=-1))  # of each stream's events
    follows = np.ones(len(events), bool)
    follows[begins] = False
    first = arrived[begins] - starts[places[begins]]
    times = StreamTimes(
        numbers[places[begins]],
        first,
        np.diff(arrived)[follows[1:]],
        _NONE,
        _NONE,
        None,
        0,
    )
    values, is_mark = parse_marks(events["mark"])
    if not len(events) or not is_mark.all():
        return times
    written, late, index = values[1] / 1e9, values[2] / 1e6, np.arange(len(events))
    disordered = np.unique(
        places[
            values[0]
            != index - begins[np.searchsorted(begins, index, side="right") - 1]
        ]
    )
    times = replace(times, late=late, disordered=len(disordered))
    # The clocks of two machines count from different moments: an event would be written
    # before its request was sent.
    if np.mean((written >= starts[places]) & (written <= arrived)) < _ALMOST_ALL:
        return times
    together = int(np.count_nonzero((written[1:] <= arrived[:-1])[follows[1:]]))
    return replace(times, lags=arrived - written, together=together)


def pool_streams(parts: list[StreamTimes]) -> StreamTimes:
    """Return the streams of all shards of a trial.

    Shards without events say nothing about the clocks.
    """
    disordered = sum(one.disordered for one in parts)
    parts = [one for one in parts if one.events] or parts[:1]
    numbers = np.concatenate([one.numbers for one in parts])
    order = np.argsort(numbers)
    first, gaps, lags, late = (
        np.concatenate([getattr(one, name) for one in parts])
        for name in ("first", "gaps", "lags", "late")
    )
    known = [one.together for one in parts if one.together is not None]
    together = sum(known) if len(known) == len(parts) else None
    return StreamTimes(
        numbers[order],
        first[order],
        gaps,
        _NONE if together is None else lags,
        late,
        together,
        disordered,
    )


def parse_marks(marks: npt.NDArray[np.bytes_]) -> tuple[list[Integers], Flags]:
    """Return number, nanoseconds and microseconds of each mark, each of shape (n,), and
    whether it is one.
    """
    codes, values = (
        np.ascontiguousarray(marks).view(np.uint8).reshape(len(marks), 30),
        list[Integers](),
    )
    for columns in (
        _DIGITS
    ):  # digit by digit: all of them as whole numbers would take 240 bytes per event
        value = np.zeros(len(marks), np.int64)
        for column in columns:
            value = 10 * value + codes[:, column] - ord("0")
        values.append(value)
    return values, np.logical_and(codes >= ord("0"), codes <= ord("9")).min(
        axis=1, initial=True
    )


@dataclass
class EventFollower:
    """Returns the events of a running trial once, without those of the warm-up."""

    folder: Path
    _read: dict[Path, int] = field(default_factory=dict)

    def new_events(self) -> Records:
        """Return the events that were logged since the previous call."""
        parts = [np.empty(0, EVENT)]
        for path in self.folder.glob(f"*{EVENTS_SUFFIX}"):
            with path.open("rb") as log:
                log.seek(self._read.get(path, 0) * EVENT_SIZE)
                while len(block := _read(log.read(_BLOCK * EVENT_SIZE))):
                    done = block["done"] == 1
                    found = block if done.all() else block[: int(done.argmin())]
                    self._read[path] = self._read.get(path, 0) + len(found)
                    parts.append(found)
                    if len(found) < len(block):
                        break
        events = np.concatenate(parts)
        return events[events["request"] >= 0]


_NONE: Floats = np.empty(0)


def _read(content: bytes) -> Records:
    return np.frombuffer(content[: len(content) - len(content) % EVENT_SIZE], EVENT)
