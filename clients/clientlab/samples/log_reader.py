"""Reader of sample logs: all records of a finished trial, or the progress of a running one.

The writer is `samples/log.py`. It stays apart because the measured process must not import numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clientlab.samples.log import (
    BEGAN,
    BEGAN_AT,
    ERROR_CODES,
    HEADER,
    MAGIC,
    RECORD_FIELDS,
    RECORD_SIZE,
    RECORDS_FILE,
    error_names,
)

RECORD = np.dtype(list(RECORD_FIELDS))
Records = npt.NDArray[np.void]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BLOCK = 4096
"""Records that are read at a time."""

_PROBE_STEP = 64
"""One record in so many is probed to find the blocks that have been written to."""


@dataclass(frozen=True)
class Samples:
    """Samples of one finished trial.

    `records`: one per finished request, sorted by start time. `numbers`: the request number of each record.
    `errors`: error kind → count. `examples`: error kind → first message. `kinds`: error code → error kind.
    `schedule_began`: when the schedule of an open load began, in seconds of the monotonic clock; 0 without one.
    """

    records: Records
    numbers: Integers
    errors: dict[str, int]
    examples: dict[str, str]
    kinds: dict[int, str]
    schedule_began: float = 0.0

    def only(self, wanted: Flags) -> Samples:
        """Some of the samples, with the errors among them. Shape of `wanted`: (n,)."""
        records, numbers = self.records[wanted], self.numbers[wanted]
        errors = _errors_in(records, self.kinds)
        examples = {kind: text for kind, text in self.examples.items() if kind in errors}
        return replace(self, records=records, numbers=numbers, errors=errors, examples=examples)


def read(folder: Path, began: float = 0.0) -> Samples:
    """All samples of the trial in `folder` whose requests started at `began` or later.

    `began` is in seconds of the monotonic clock. The warm-up ends before it.
    """
    first, records = _read_file(folder / RECORDS_FILE)
    return _samples(folder, first, records, records["start"] >= began)


def read_measured(folder: Path) -> Samples:
    """The samples of a trial whose beginning is not known, because it was ended: those with a number from 0 on.

    The requests of a warm-up have numbers below 0, or a log of their own.
    """
    first, records = _read_file(folder / RECORDS_FILE)
    return _samples(folder, first, records, np.arange(len(records)) >= -first)


def number_behind(folder: Path) -> int:
    """The lowest number behind those of all finished requests of the trial in `folder`; 0 before the first one."""
    path = folder / RECORDS_FILE
    with path.open("rb") as log:
        first: int = HEADER.unpack(log.read(HEADER.size))[1]
    mapped = np.memmap(path, RECORD, "r", HEADER.size, ((path.stat().st_size - HEADER.size) // RECORD_SIZE,))
    done = np.flatnonzero(mapped["done"])
    return max(0, int(done[-1]) + 1 + first) if len(done) else 0


def _samples(folder: Path, first: int, records: Records, wanted: Flags) -> Samples:
    """The finished ones of the wanted records. `first`: number of the first record's request."""
    places = np.flatnonzero((records["done"] == 1) & wanted)
    places = places[np.argsort(records["start"][places], kind="stable")]
    records = records[places]
    names = {code: kind for kind, code in ERROR_CODES.items()}
    named = error_names(folder)
    names |= {code: kind for code, (kind, _) in named.items()}
    errors = _errors_in(records, names)
    examples = {kind: example for kind, example in named.values() if kind in errors}
    return Samples(records, places + first, errors, examples, names, _schedule_began(folder / RECORDS_FILE))


def _errors_in(records: Records, kinds: dict[int, str]) -> dict[str, int]:
    codes, counts = np.unique(records["error"][records["error"] > 0], return_counts=True)
    return {kinds[code]: count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}


class FinishedCounter:
    """Counts the finished requests of a running trial, the warm-up included. `failed`: of those of the last count.

    It reads each record only until that record is done, so that a count costs little in a long trial.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORDS_FILE
        self._settled = self._settled_failed = 0  # all places before this one are done
        self.failed = 0

    def count(self) -> int:
        """Number of requests that have finished so far. 0 before the log exists."""
        if not self._path.exists():
            return 0
        ahead, self.failed, unbroken = 0, self._settled_failed, True
        with self._path.open("rb") as log:
            log.seek(HEADER.size + self._settled * RECORD_SIZE)
            while block := log.read(_BLOCK * RECORD_SIZE):
                rows = np.frombuffer(block, RECORD, len(block) // RECORD_SIZE)
                done = rows["done"] == 1
                failed = done & (rows["error"] != 0)
                leading = _leading(done) if unbroken else 0
                self._settled += leading
                self._settled_failed += int(failed[:leading].sum())
                self.failed += int(failed.sum())
                ahead += int(done.sum()) - leading
                unbroken = unbroken and leading == len(done)
                if not done.any():
                    break
        return self._settled + ahead


@dataclass(frozen=True)
class NewRecords:
    """Records that were written since the previous call, and the request number of each."""

    records: Records
    numbers: Integers


class LogFollower:
    """Reads the log of a running trial again and again, and returns each record once. The warm-up is left out.

    The processes of a trial write to parts of the file that lie far apart, and requests finish out of order.
    A block is read until all its records are done, and never again. `schedule_began`: when the schedule of an open load
    began, in seconds of the monotonic clock; 0 before.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORDS_FILE
        self._settled: set[int] = set()
        self._seen: dict[int, Flags] = {}
        self._mapped: Records | None = None
        self.schedule_began = 0.0

    def new_records(self, *, last: bool = False) -> NewRecords:
        """The records that were written since the previous call.

        Only one record in 64 is probed, because most of the log stays empty for long: a record far from all
        others may come late. With `last`, every record is read, so that none is missing at the end.
        """
        found = list(self._read_blocks(last=last))
        if not found:
            return NewRecords(np.empty(0, RECORD), np.empty(0, np.int64))
        return NewRecords(np.concatenate([r for r, _ in found]), np.concatenate([n for _, n in found]))

    def _read_blocks(self, *, last: bool) -> Iterator[tuple[Records, Integers]]:
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            head = log.read(HEADER.size)
            whole = (self._path.stat().st_size - HEADER.size) // RECORD_SIZE
            if whole < 1 or not head.startswith(MAGIC):
                return  # the trial's process has made the file and not yet written the header
            first: int = HEADER.unpack(head)[1]
            self.schedule_began = BEGAN.unpack_from(head, BEGAN_AT)[0]
            blocks = set(range(-(-whole // _BLOCK))) if last else self._started_blocks(whole)
            for block in sorted(blocks - self._settled):
                log.seek(HEADER.size + block * _BLOCK * RECORD_SIZE)
                content = log.read(_BLOCK * RECORD_SIZE)
                rows = np.frombuffer(content, RECORD, len(content) // RECORD_SIZE)
                places = self._new_places(block, rows)
                numbers = places + (first + block * _BLOCK)
                measured = numbers >= 0
                if measured.any():
                    yield rows[places][measured], numbers[measured]

    def _started_blocks(self, whole: int) -> set[int]:
        """The blocks in which a probe found a record that is done."""
        if self._mapped is None or len(self._mapped) != whole:  # kept: mapping the file anew costs more than probing
            self._mapped = np.memmap(self._path, RECORD, "r", HEADER.size, (whole,))
        done = self._mapped["done"][::_PROBE_STEP]
        return {*self._seen, *(np.flatnonzero(done) * _PROBE_STEP // _BLOCK).tolist()}

    def _new_places(self, block: int, rows: Records) -> Integers:
        """Indices of the records in `rows` that are done and were not at the previous call."""
        done: Flags = rows["done"] == 1
        if not done.any():
            return np.empty(0, np.int64)
        fresh = done.copy()
        seen = self._seen.get(block)
        if seen is not None:
            fresh[: len(seen)] &= ~seen
        if len(done) == _BLOCK and done.all():
            self._settled.add(block)
            self._seen.pop(block, None)
        else:
            self._seen[block] = done
        return np.flatnonzero(fresh)


def _leading(done: Flags) -> int:
    return len(done) if done.all() else int(done.argmin())


def _schedule_began(path: Path) -> float:
    if not path.exists():
        return 0.0
    with path.open("rb") as log:
        head = log.read(HEADER.size)
    began: float = BEGAN.unpack_from(head, BEGAN_AT)[0] if len(head) == HEADER.size else 0.0
    return began


def _read_file(path: Path) -> tuple[int, Records]:
    """Request number of the first place, and all places, used or not."""
    if not path.exists():
        return 0, np.empty(0, RECORD)
    content = path.read_bytes()
    magic, first = HEADER.unpack_from(content) if len(content) >= HEADER.size else (b"", 0)
    if magic != MAGIC:
        return 0, np.empty(0, RECORD)
    whole = (len(content) - HEADER.size) // RECORD_SIZE
    return first, np.frombuffer(content, RECORD, whole, HEADER.size)
