"""What memray recorded, as stacks of Python functions. The Python that recorded it runs this module.

Started as ``python -m clientlab.measuring.memory_reader FILE...``, with a file for each process of the trial. Standard
output gets one JSON object:

    frames     [name, file] of each function
    peak       [stack, bytes]: what was held when the process held most; of several processes, the sum of their peaks
    allocated  [stack, bytes, allocations]: all that was allocated, freed or not

A stack is a list of places in `frames`, from the root to the leaf. It is empty where no Python function ran.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import memray

_MOST_DEPTH = 200
_FREED = {memray.AllocatorType.FREE, memray.AllocatorType.MUNMAP, memray.AllocatorType.PYMALLOC_FREE}

_Stack = tuple[int, ...]


class _Records:
    """Sums over all files. `peak`: stack → bytes. `allocated`: stack → bytes and allocations."""

    def __init__(self) -> None:
        self.frames: dict[tuple[str, str], int] = {}
        self.peak: dict[_Stack, int] = {}
        self.allocated: dict[_Stack, list[int]] = {}

    def read(self, path: str) -> None:
        with memray.FileReader(path) as reader:
            for record in reader.get_high_watermark_allocation_records(merge_threads=True):
                stack = self._stack(record)
                self.peak[stack] = self.peak.get(stack, 0) + record.size
            self._add_allocations(reader.get_allocation_records())

    def _add_allocations(self, records: Iterable[memray.AllocationRecord]) -> None:
        """Add them up by memray's own number of a stack first: to read a stack takes longer than all else."""
        sums: dict[tuple[int, int], list[int]] = {}
        stacks: dict[tuple[int, int], _Stack] = {}
        for record in records:
            if record.allocator in _FREED:
                continue
            place = record.tid, record.stack_id
            found = sums.get(place)
            if found is None:
                stacks[place] = self._stack(record)
                found = sums[place] = [0, 0]
            found[0] += record.size
            found[1] += record.n_allocations
        for place, (size, count) in sums.items():
            total = self.allocated.setdefault(stacks[place], [0, 0])
            total[0] += size
            total[1] += count

    def _stack(self, record: memray.AllocationRecord) -> _Stack:
        """The stack of a record, whose own order is from the leaf to the root."""
        leaves = record.stack_trace()[:_MOST_DEPTH]
        return tuple(self.frames.setdefault((name, file), len(self.frames)) for name, file, _line in reversed(leaves))


def main(files: list[str]) -> None:
    """Read the files, and write the sums."""
    records = _Records()
    for file in files:
        records.read(file)
    found = {
        "frames": list(records.frames),
        "peak": list(records.peak.items()),
        "allocated": [(stack, *sums) for stack, sums in records.allocated.items()],
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
