"""Reads sample logs: of a finished trial, or the progress of a running one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clientlab.statistics.histogram import Floats
from clientlab.trial.sample_log import (
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

_BLOCK = 4096  # records that are read at a time


@dataclass(frozen=True)
class Samples:
    """Samples of one trial."""

    records: Records  # one per finished request, sorted by start time
    numbers: Integers  # the request number of each record
    errors: dict[str, int]  # error kind → count
    examples: dict[str, str]  # error kind → first message
    kinds: dict[int, str]  # error code → error kind

    schedule_began: float = 0.0
    """Of an open load, in seconds of the monotonic clock. 0: a closed load."""

    delay_shares: Floats | None = None
    """What each request of a staggered load asked for. None: whole delays."""

    def only(self, wanted: Flags) -> Samples:
        """Return some of the samples, with their errors. Shape of `wanted`: (n,)."""
        records = self.records[wanted]
        errors = _count_errors(records, self.kinds)
        examples = {
            kind: text for kind, text in self.examples.items() if kind in errors
        }
        shares = self.delay_shares
        if shares is not None:
            shares = shares[wanted]
        return replace(
            self,
            records=records,
            numbers=self.numbers[wanted],
            errors=errors,
            examples=examples,
            delay_shares=shares,
        )

    def delays(self, delay: Callable[[int], float]) -> Floats:
        """Return the seconds that each request asked for.

        `delay`: from a number to the whole delay.
        """
        asked = evaluate(delay, self.numbers)
        if self.delay_shares is None:
            return asked
        return asked * self.delay_shares


def evaluate(function: Callable[[int], float], numbers: Integers) -> Floats:
    """Return the seconds that the function gives for each request number."""
    seconds = map(function, numbers.tolist())
    return np.fromiter(seconds, np.float64, len(numbers))


def find_delay_shares(numbers: Integers, firsts: Sequence[int], slots: int) -> Floats:
    """Return the share of its delay that each request of a staggered load asked for.

    `load.first_share` defines it. `firsts`: the number of the first request of each
    slice, in order.
    """
    slices = np.searchsorted(firsts, numbers, side="right") - 1
    places = numbers - np.array(firsts)[slices]
    shares = (places + 1) / slots
    return np.where(places < slots, shares, 1.0)


def read_measured(folder: Path) -> Samples:
    """Read the measured requests of a trial that has ended or was interrupted.

    Requests of the warm-up are left out: their numbers are below 0, or they have their
    own log.
    """
    log = _open(folder / RECORDS_FILE)
    places = log.find_measured(log.records["done"] == 1)
    starts = log.records["start"][places]
    order = np.argsort(starts, kind="stable")
    places = places[order]
    records = log.records[places]
    numbers = places + log.first
    names = error_names(folder)
    kinds = {code: kind for kind, code in ERROR_CODES.items()}
    kinds |= {code: kind for code, (kind, _) in names.items()}
    errors = _count_errors(records, kinds)
    examples = {kind: example for kind, example in names.values() if kind in errors}
    return Samples(records, numbers, errors, examples, kinds, log.schedule_began)


def next_number(folder: Path) -> int:
    """Return the lowest number above those of all finished requests of a trial.

    It is at least 0.
    """
    first, _, records = _open(folder / RECORDS_FILE)
    done = np.flatnonzero(records["done"])
    if not len(done):
        return 0
    last = first + int(done[-1])
    return max(0, last + 1)


def read_wave(folder: Path, slots: int) -> float | None:
    """Return the seconds of a wave, in which as many requests end as there are slots.

    It is the second wave of the warm-up if that has one, or else the first. Return None
    if there is none.
    """
    first, _, records = _open(folder / RECORDS_FILE)
    warm_up = records[: max(0, -first)]
    warm_up = warm_up[warm_up["done"] == 1]
    starts = warm_up["start"]
    ends = np.sort(starts + warm_up["seconds"])
    if len(ends) < slots:
        return None
    first_end = ends[slots - 1]
    if len(ends) < 2 * slots:
        return float(first_end - starts.min())
    return float(ends[2 * slots - 1] - first_end)


class FinishedCounter:
    """Counts the finished requests of a running trial, including the warm-up.

    The processes of a pool may begin with distant numbers, so the records have gaps.
    Blocks that are full are not read again, and those that nobody has written to are
    not read at all.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORDS_FILE
        self._full: dict[int, int] = {}
        """First record of each full block → failed requests in it."""

        self._full_until = 0  # all blocks before this record are full
        self.failed = 0  # of the requests that have finished

    def count(self) -> int:
        """Return the number of finished requests so far; 0 before the log exists."""
        records = _open(self._path).records
        finished = len(self._full) * _BLOCK
        self.failed = sum(self._full.values())
        waiting = _find_written_blocks(self._path, self._full_until, len(records))
        waiting.append(self._full_until)
        seen = set(self._full)
        while waiting:
            start = waiting.pop()
            if start in seen:
                continue
            seen.add(start)
            block = records[start : start + _BLOCK]
            done = block[block["done"] == 1]
            failed = int(np.count_nonzero(done["error"]))
            finished += len(done)
            self.failed += failed
            if len(done) == _BLOCK:
                self._full[start] = failed
            # A file system in user space may not know yet that the next block was
            # written.
            if len(done):
                waiting.append(start + _BLOCK)
        while self._full_until in self._full:
            self._full_until += _BLOCK
        return finished


def _find_written_blocks(path: Path, first: int, count: int) -> list[int]:
    """Return the first record of each block that a process may have written to.

    The blocks are those from record `first` to `count`. The file system knows which
    pages of a file were written. One that does not know calls all of them written.
    """
    if first >= count:
        return []
    starts = []
    with path.open("rb") as log:
        place = first
        while place < count:
            offset = HEADER.size + place * RECORD_SIZE
            try:
                offset = os.lseek(log.fileno(), offset, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # nothing was written from here on
                    break
            record = (offset - HEADER.size) // RECORD_SIZE
            start = record - record % _BLOCK
            starts.append(start)
            place = start + _BLOCK
    return starts


class LogFollower:
    """Returns each record of a running trial once, without the warm-up.

    Requests finish out of order, so each call looks at every record. `schedule_began`:
    as in `Samples`.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORDS_FILE
        self._seen: Flags = np.empty(0, np.bool_)
        self.schedule_began = 0.0

    def new_records(self) -> tuple[Records, Integers]:
        """Return the records written since the previous call, and their numbers."""
        log = _open(self._path)
        self.schedule_began = log.schedule_began
        done = log.records["done"] == 1
        fresh = done.copy()
        known = min(len(done), len(self._seen))
        fresh[:known] &= ~self._seen[:known]
        self._seen = done
        places = log.find_measured(fresh)
        return log.records[places], places + log.first


class _OpenLog(NamedTuple):
    first: int
    """Number of the request of the first record."""

    schedule_began: float

    records: Records
    """All of them, used or not."""

    def find_measured(self, is_wanted: Flags) -> Integers:
        """Return the places of these records, without those of the warm-up."""
        places = np.flatnonzero(is_wanted)
        return places[places + self.first >= 0]


def _open(path: Path) -> _OpenLog:
    nothing = _OpenLog(0, 0.0, np.empty(0, RECORD))
    if not path.exists():
        return nothing
    with path.open("rb") as log:
        head = log.read(HEADER.size)
    count = (path.stat().st_size - HEADER.size) // RECORD_SIZE
    if count < 1 or not head.startswith(MAGIC):
        return nothing  # its process has not written the header yet
    _, first, schedule_began, _ = HEADER.unpack(head)
    mapped = np.memmap(path, RECORD, "r", HEADER.size, (count,))
    return _OpenLog(first, schedule_began, mapped.view(np.ndarray))


def _count_errors(records: Records, kinds: dict[int, str]) -> dict[str, int]:
    errors = records["error"]
    codes, counts = np.unique(errors[errors > 0], return_counts=True)
    names = [kinds[code] for code in codes.tolist()]
    return dict(zip(names, counts.tolist(), strict=True))
