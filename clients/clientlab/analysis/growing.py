"""A sample log read while it grows: each look gives the records that were not there at the last one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clientlab.analysis.samples import RECORD, Records
from clientlab.sample import HEADER, MAGIC, RECORD_SIZE, RECORDS_FILE

_BLOCK = 4096  # records
_PROBED = 64

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fresh:
    """Records that are new, and which requests they are."""

    records: Records
    numbers: npt.NDArray[np.int64]


class Growing:
    """The log of a trial's folder. The warm-up, whose numbers are below zero, is left out.

    Processes of a trial write to parts of the file that lie far apart, and requests finish out of order:
    a block is looked at from its first record on until all of it is done, and never again.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORDS_FILE
        self._settled: set[int] = set()
        self._seen: dict[int, Flags] = {}
        self._mapped: Records | None = None

    def fresh(self, *, last: bool = False) -> Fresh:
        """The records that have been written since the last look.

        A block's beginning is seen by a record in 64 of it: a log has room for all that may come, and most
        of it is empty for long. `last`: every record is looked for, and all that there are have been given.
        """
        found = list(self._looked_at(last=last))
        if not found:
            return Fresh(np.empty(0, RECORD), np.empty(0, np.int64))
        return Fresh(np.concatenate([r for r, _ in found]), np.concatenate([n for _, n in found]))

    def _looked_at(self, *, last: bool) -> Iterator[tuple[Records, npt.NDArray[np.int64]]]:
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            head = log.read(HEADER.size)
            whole = (self._path.stat().st_size - HEADER.size) // RECORD_SIZE
            if whole < 1 or not head.startswith(MAGIC):
                return  # its process is about to write it
            first: int = HEADER.unpack(head)[1]
            blocks = set(range(-(-whole // _BLOCK))) if last else self._begun(whole)
            for block in sorted(blocks - self._settled):
                log.seek(HEADER.size + block * _BLOCK * RECORD_SIZE)
                content = log.read(_BLOCK * RECORD_SIZE)
                rows = np.frombuffer(content, RECORD, len(content) // RECORD_SIZE)
                places = self._new_places(block, rows)
                numbers = places + (first + block * _BLOCK)
                measured = numbers >= 0
                if measured.any():
                    yield rows[places][measured], numbers[measured]

    def _begun(self, whole: int) -> set[int]:
        """The blocks of which something is seen to be done."""
        if self._mapped is None or len(self._mapped) != whole:  # kept: mapping it anew costs more than looking
            self._mapped = np.memmap(self._path, RECORD, "r", HEADER.size, (whole,))
        done = self._mapped["done"][::_PROBED]
        return {*self._seen, *(np.flatnonzero(done) * _PROBED // _BLOCK).tolist()}

    def _new_places(self, block: int, rows: Records) -> npt.NDArray[np.int64]:
        """Which records of a block are done and were not at the last look."""
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
