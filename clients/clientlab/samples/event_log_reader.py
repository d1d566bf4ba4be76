"""Reader of event logs: the streams of a finished trial, or the new events of a running one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clientlab.samples.event_log import (
    ANSWERED,
    BEGUN,
    EVENT_FIELDS,
    EVENT_RECORD_SIZE,
    EVENTS_SUFFIX,
    MARKED,
    UNMARKED,
)

EVENT_RECORD = np.dtype(list(EVENT_FIELDS))
EventRecords = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ZERO = ord("0")
_NUMBER, _WRITTEN, _LATE = slice(0, 6), slice(6, 24), slice(24, 30)


@dataclass(frozen=True)
class StreamEvents:
    """The streams of a trial. Times are seconds of the monotonic clock; NaN where they are unknown.

    `requests`: number of each stream's request, ascending. `begun`, `answered`: when it was begun, and when the head
    of its response was there. Shape (s,). `first`: index of the stream's first event, shape (s + 1,), so that the
    events of stream i are `first[i]` to `first[i + 1]`. Of each event, in the order of arrival within its stream, shape
    (n,): when it arrived, its number, when the server wrote it, and seconds by which that was late. `written` and
    `late` are NaN and `number` is -1 for events without a mark.
    """

    requests: Integers
    begun: Floats
    answered: Floats
    first: Integers
    arrived: Floats
    number: Integers
    written: Floats
    late: Floats

    @property
    def count(self) -> int:
        """Events in all."""
        return len(self.arrived)

    @property
    def counts(self) -> Integers:
        """Events of each stream, shape (s,)."""
        return np.diff(self.first)

    def only(self, wanted: npt.NDArray[np.bool_]) -> StreamEvents:
        """Some of the streams. Shape of `wanted`: (s,)."""
        of_events = np.repeat(wanted, self.counts)
        counts = self.counts[wanted]
        return StreamEvents(
            self.requests[wanted], self.begun[wanted], self.answered[wanted],
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            self.arrived[of_events], self.number[of_events], self.written[of_events], self.late[of_events],
        )  # fmt: skip


def read_events(folder: Path) -> StreamEvents | None:
    """The streams of the trial in `folder`, without those of its warm-up; None for a trial without streams."""
    paths = sorted(folder.glob(f"*{EVENTS_SUFFIX}"))
    if not paths:
        return None
    records = np.concatenate([np.frombuffer(_whole(path.read_bytes()), EVENT_RECORD) for path in paths])
    return streams_of(records[(records["done"] == 1) & (records["request"] >= 0)])


def streams_of(records: EventRecords) -> StreamEvents:
    """The records by stream. Those of a stream are ordered by arrival, and of equal arrivals as they were written."""
    records = records[np.lexsort((records["at"], records["request"]))]
    kinds = records["kind"]
    requests, places = np.unique(records["request"], return_inverse=True)
    is_event = (kinds == MARKED) | (kinds == UNMARKED)
    events = records[is_event]
    number, written, late = marks_of(events["digits"], events["kind"] == MARKED)
    counts = np.bincount(places[is_event], minlength=len(requests))
    return StreamEvents(
        requests=requests.astype(np.int64),
        begun=_moments(records["at"], places, kinds == BEGUN, len(requests)),
        answered=_moments(records["at"], places, kinds == ANSWERED, len(requests)),
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        arrived=events["at"].astype(np.float64),
        number=number,
        written=written,
        late=late,
    )


def marks_of(digits: npt.NDArray[np.bytes_], marked: npt.NDArray[np.bool_]) -> tuple[Integers, Floats, Floats]:
    """Number, write time and lateness (seconds) of each mark. A mark with other characters than digits is none."""
    codes = np.zeros((len(digits), 30), np.uint8)
    if len(digits):
        codes = np.ascontiguousarray(digits).view(np.uint8).reshape(len(digits), 30)
    values = codes.astype(np.int64) - _ZERO
    sound = marked & ((values >= 0) & (values <= 9)).all(axis=1)
    number = np.where(sound, _joined(values[:, _NUMBER]), -1)
    written = np.where(sound, _joined(values[:, _WRITTEN]) / 1e9, np.nan)
    late = np.where(sound, _joined(values[:, _LATE]) / 1e6, np.nan)
    return number, written, late


def _joined(digits: Integers) -> Integers:
    """Rows of digits as numbers, shape (n,)."""
    powers = 10 ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64)
    found: Integers = digits @ powers
    return found


def _moments(at: Floats, places: Integers, wanted: npt.NDArray[np.bool_], streams: int) -> Floats:
    found = np.full(streams, np.nan)
    found[places[wanted]] = at[wanted]
    return found


def _whole(content: bytes) -> bytes:
    return content[: len(content) - len(content) % EVENT_RECORD_SIZE]


@dataclass
class EventFollower:
    """Reads the logs of a running trial again and again, and returns each record once. The warm-up is left out."""

    folder: Path
    _read: dict[Path, int] = field(default_factory=dict)

    def new_records(self) -> EventRecords:
        """The records written since the previous call. One that another thread is still writing comes later."""
        found = [self._of_file(path) for path in sorted(self.folder.glob(f"*{EVENTS_SUFFIX}"))]
        if not found:
            return np.empty(0, EVENT_RECORD)
        records = np.concatenate(found)
        return records[records["request"] >= 0]

    def _of_file(self, path: Path) -> EventRecords:
        with path.open("rb") as log:
            log.seek(self._read.get(path, 0) * EVENT_RECORD_SIZE)
            chunks = []
            while True:
                rows = np.frombuffer(_whole(log.read(_BLOCK)), EVENT_RECORD)
                done = rows["done"] == 1
                leading = len(done) if done.all() else int(done.argmin())
                chunks.append(rows[:leading])
                if leading < len(rows) or not len(rows):
                    break
        found = np.concatenate(chunks)
        self._read[path] = self._read.get(path, 0) + len(found)
        return found


_BLOCK = EVENT_RECORD_SIZE << 14
