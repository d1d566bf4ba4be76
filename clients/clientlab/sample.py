"""The sample log: one record a request, in a memory-mapped file that another process reads live.

A file a process: a header, then records of 32 bytes in the order in which requests began. Nothing
here is measured twice or kept as a Python object: a record is written in two strokes, at the
beginning (number, start) and at the end (seconds, bytes, status, error, and last of all `done`).
A record with a start and without `done` is a request in flight.

Files grow by whole segments whose room on disk is taken beforehand: a full disk is then an error
at that moment, and never a bus error in the middle of a measurement.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clientlab.errors import KINDS

MAGIC = b"CLABSMP1"
HEADER = struct.Struct("<8sIIQQ32x")  # magic, process id, -, connections begun, peak RSS in bytes
RECORD_SIZE = 32
RECORD_FIELDS = (  # numpy's names for the record's layout; little-endian, packed
    ("number", "<u4"),
    ("start", "<f8"),  # seconds of the machine's monotonic clock
    ("seconds", "<f8"),
    ("bytes", "<u8"),  # body of the answer
    ("status", "<u2"),
    ("error", "u1"),  # 0 none, otherwise a code of ERROR_CODES or of the file's own names
    ("done", "u1"),
)
begin_record = struct.Struct("<Id").pack_into  # at the record's offset
end_record = struct.Struct("<dQHBB").pack_into  # at the record's offset + END
END = 12

ERROR_CODES = {kind: code for code, kind in enumerate(KINDS, start=1)}
FIRST_OWN_CODE = 64  # codes from here on are named in the file's companion
LAST_CODE = 255

_SEGMENT = 1 << 20
_RECORDS = _SEGMENT // RECORD_SIZE
_HEADER_RECORDS = HEADER.size // RECORD_SIZE
_SHIFT = _RECORDS.bit_length() - 1
_CONNECTIONS = struct.Struct("<Q")
_CONNECTIONS_AT = 16
_PEAK_AT = 24


class SampleLog:
    """A writer of one process's log, safe to be used by its threads.

    Raises OSError where the disk has no room left.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{os.getpid()}.samples"
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        self._segments: list[mmap.mmap] = []
        self._growing = threading.Lock()
        self._next: Callable[[], int] = itertools.count(_HEADER_RECORDS).__next__
        self._names: dict[str, int] = {}
        self._connections = 0
        self._grow(0)
        HEADER.pack_into(self._segments[0], 0, MAGIC, os.getpid(), 0, 0, 0)

    def claim(self) -> tuple[mmap.mmap, int]:
        """Room for one record: the buffer and the record's offset in it."""
        index = self._next()
        try:
            segment = self._segments[index >> _SHIFT]
        except IndexError:
            segment = self._grow(index >> _SHIFT)
        return segment, (index & (_RECORDS - 1)) * RECORD_SIZE

    def connected(self, count: int = 1) -> None:
        """Count connections that this process began to open."""
        with self._growing:
            self._connections += count
            _CONNECTIONS.pack_into(self._segments[0], _CONNECTIONS_AT, self._connections)

    def error_code(self, kind: str, message: str) -> int:
        """The code of a kind; a kind's first message is kept beside the log as an example."""
        code = self._names.get(kind)
        return self._name(kind, message) if code is None else code

    def close(self, peak_rss: int) -> None:
        """Note the process's peak memory in bytes and let go of the file."""
        _CONNECTIONS.pack_into(self._segments[0], _PEAK_AT, peak_rss)
        for segment in self._segments:
            segment.close()
        os.close(self._file)

    def _name(self, kind: str, message: str) -> int:
        with self._growing:
            if kind not in self._names:
                own = sum(1 for code in self._names.values() if code >= FIRST_OWN_CODE)
                code = ERROR_CODES.get(kind, min(FIRST_OWN_CODE + own, LAST_CODE))
                self._names[kind] = code
                row = {"code": code, "kind": kind, "example": message[:500]}
                with self.path.with_suffix(".errors").open("a", encoding="utf-8") as names:
                    names.write(json.dumps(row) + "\n")
            return self._names[kind]

    def _grow(self, segment: int) -> mmap.mmap:
        with self._growing:
            while len(self._segments) <= segment:
                start = len(self._segments) * _SEGMENT
                _take_room(self._file, start)
                self._segments.append(mmap.mmap(self._file, _SEGMENT, offset=start))
            return self._segments[segment]


def _take_room(file: int, start: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, start, _SEGMENT)
    else:  # macOS: written out, which takes the room as well
        os.pwrite(file, bytes(_SEGMENT), start)


@dataclass(frozen=True)
class LogHeader:
    """What a log says of its process. `peak_rss_bytes` is 0 while the process still writes."""

    path: Path
    pid: int
    connections: int
    peak_rss_bytes: int


def headers(folder: Path) -> list[LogHeader]:
    """The headers of all logs in a trial's folder, those still being written included."""
    found = []
    for path in sorted(folder.glob("*.samples")):
        with path.open("rb") as log:
            block = log.read(HEADER.size)
        if len(block) == HEADER.size and block.startswith(MAGIC):
            _, pid, _, connections, peak = HEADER.unpack(block)
            found.append(LogHeader(path, pid, connections, peak))
    return found
