"""The log of events: a record of 48 bytes for each event of a stream, in a memory-mapped file of each process.

Records stand in the order in which a process wrote them. The events of a stream are those with its request's number.
A record holds the moment at which the event was handed over, and the digits of the mark that the lab's upstream wrote
into it, unparsed: the measured process does not take time for that.

As with the sample log, disk space is allocated before it is written to, and the field `done` is written last.
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import threading
from pathlib import Path

from clientlab.samples.disk_space import take_room

EVENTS_SUFFIX = ".events"
"""Of the name of each process's own file."""

EVENT_RECORD_SIZE = 48
EVENT_FIELDS = (  # the record's layout, in numpy's notation; little-endian, packed
    ("request", "<i8"),
    ("at", "<f8"),  # seconds of the machine's monotonic clock
    ("digits", "S30"),  # of the mark: number (6), write time in ns (18), lateness in us (6); empty without a mark
    ("kind", "u1"),
    ("done", "u1"),
)
write_event = struct.Struct("<qd30sBB").pack_into
"""write_event(buffer, offset, request, at, digits, kind, done)."""

BEGUN, ANSWERED, MARKED, UNMARKED = range(4)
"""Kinds of records: a request was begun, the head of its response was there, an event with a mark, and one without."""

_LEAST_RECORDS = 4096


class EventLog:
    """One process's writer. Its threads may share it. Raises OSError if the disk is full.

    The process's own request k has the number `shard` + k x `shards` in the trial.
    """

    def __init__(self, folder: Path, expected: int, shard: int = 0, shards: int = 1) -> None:
        """`expected`: the likely number of records, whose disk space is allocated now."""
        self.shard, self.shards = shard, shards
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._old: list[mmap.mmap] = []
        path = folder / f"{os.getpid()}{EVENTS_SUFFIX}"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        self.next_place = itertools.count(0, EVENT_RECORD_SIZE).__next__
        self.buffer = self._map(max(expected, _LEAST_RECORDS) * EVENT_RECORD_SIZE)

    def write_late(self, at: int, request: int, moment: float, digits: bytes, kind: int) -> None:
        """Write a record at an offset beyond the end of the buffer, which grows."""
        with self._lock:
            if at + EVENT_RECORD_SIZE > len(self.buffer):
                self._old.append(self.buffer)  # another thread may be writing to it
                self.buffer = self._map(max(at + EVENT_RECORD_SIZE, 2 * len(self.buffer)))
        write_event(self.buffer, at, request, moment, digits, kind, 1)

    def close(self) -> None:
        for mapped in (*self._old, self.buffer):
            mapped.close()
        os.close(self._file)

    def _map(self, size: int) -> mmap.mmap:
        take_room(self._file, size)
        return mmap.mmap(self._file, size)
