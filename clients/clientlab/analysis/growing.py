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

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fresh:
    """Records that are new, and which requests they are."""

    records: Records
    numbers: npt.NDArray[np.int64]


class Growing:
    """The log of a trial's folder. The warm-up, whose numbers are below zero, is left out.

    Processes of a trial write to parts of the file that lie far apart, and requests finish out of order:
    a block is looked at until all of it is done, and never again.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORDS_FILE
        self._settled: set[int] = set()
        self._seen: dict[int, Flags] = {}

    def fresh(self) -> Fresh:
        """All records that have been written since the last look."""
        found = list(self._looked_at())
        if not found:
            return Fresh(np.empty(0, RECORD), np.empty(0, np.int64))
        return Fresh(np.concatenate([r for r, _ in found]), np.concatenate([n for _, n in found]))

    def _looked_at(self) -> Iterator[tuple[Records, npt.NDArray[np.int64]]]:
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            head = log.read(HEADER.size)
            if len(head) < HEADER.size or not head.startswith(MAGIC):
                return  # its process is about to write it
            first: int = HEADER.unpack(head)[1]
            whole = (self._path.stat().st_size - HEADER.size) // RECORD_SIZE
            for block in range(-(-whole // _BLOCK)):
                if block in self._settled:
                    continue
                log.seek(HEADER.size + block * _BLOCK * RECORD_SIZE)
                content = log.read(_BLOCK * RECORD_SIZE)
                rows = np.frombuffer(content, RECORD, len(content) // RECORD_SIZE)
                places = self._new_places(block, rows)
                numbers = places + (first + block * _BLOCK)
                measured = numbers >= 0
                if measured.any():
                    yield rows[places][measured], numbers[measured]

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
