"""The log of events: one record of 48 bytes for each event of a stream.

Each process has its own memory-mapped file, with its records in the order of arrival. The field `done` is written last.
The mark that the lab's upstream wrote into an event is kept unparsed (see mockupstream.streams). The reader is
`stream_figures`, which needs numpy.
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import threading
from pathlib import Path

from clientlab.errors import PluginError

EVENTS_SUFFIX = ".events"  # file name extension of each process's own file
RECORD_SIZE = 48
RECORD_FIELDS = (  # the record's layout, in numpy's notation; little-endian, packed
    ("request", "<i8"),  # its number in the sample log
    ("at", "<f8"),  # seconds of the machine's monotonic clock
    ("mark", "S30"),  # number (6 digits), nanoseconds of the write (18), microseconds late (6); empty without a mark
    ("done", "u2"),
)
write_event = struct.Struct("<qd30sH").pack_into
"""write_event(buffer, offset, request, at, mark, done)."""
_LEAST_RECORDS = 16_384


class EventLog:
    """One process's writer, which its threads share. Raise OSError if the disk is full."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._old: list[mmap.mmap] = []
        self._file = os.open(folder / f"{os.getpid()}{EVENTS_SUFFIX}", os.O_RDWR | os.O_CREAT, 0o644)
        self.next_place = itertools.count(0, RECORD_SIZE).__next__  # atomic
        self.buffer = self._map(_LEAST_RECORDS * RECORD_SIZE)

    def write_late(self, place: int, request: int, at: float, mark: bytes) -> mmap.mmap:
        """Write a record beyond the end of the buffer, which grows. Return the buffer for the next records."""
        with self._lock:
            if place + RECORD_SIZE > len(self.buffer):
                self._old.append(self.buffer)  # another thread may be writing to it
                try:
                    self.buffer = self._map(2 * len(self.buffer))
                except OSError as error:  # not an error of the request: the trial fails
                    raise PluginError(f"the log of events has no space: {error}") from error
        write_event(self.buffer, place, request, at, mark, 1)
        return self.buffer

    def close(self) -> None:
        for mapped in (*self._old, self.buffer):
            mapped.close()
        os.close(self._file)

    def _map(self, size: int) -> mmap.mmap:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._file, 0, size)
        else:  # macOS: writing zeros allocates the space as well
            present = os.fstat(self._file).st_size
            os.pwrite(self._file, bytes(size - present), present)
        return mmap.mmap(self._file, size)
