"""The sample log: a record of 32 bytes for each request, in a memory-mapped file that others read live.

One file a trial, shared by all its processes: request k has the k-th place, so nobody has to agree with
anybody on where to write, and writing is one call. No Python object is kept for a request. A record's
`done` is written last: what is done is whole.

Room on disk is taken before it is written to: a full disk is then an error at that moment, and never a
bus error in the middle of a measurement.

Beside it each process has a small file of its own: connections that it began, peak memory.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
import threading
from dataclasses import dataclass
from pathlib import Path

from clientlab.errors import KINDS

RECORDS_FILE = "trial.samples"
MAGIC = b"CLABSMP1"
HEADER = struct.Struct("<8sq16x")  # magic, number of the first place's request
RECORD_SIZE = 32
RECORD_FIELDS = (  # numpy's names for the record's layout; little-endian, packed
    ("start", "<f8"),  # seconds of the machine's monotonic clock
    ("seconds", "<f8"),
    ("bytes", "<u8"),  # body of the answer
    ("status", "<u2"),
    ("error", "u1"),  # 0 none, otherwise a code of ERROR_CODES or of the trial's own names
    ("done", "u1"),
    ("elapsed", "<f4"),  # the library's own seconds, 0 where they are not asked for
)
write_record = struct.Struct("<ddQHBB").pack_into
"""write_record(buffer, offset, start, seconds, bytes, status, error, done)."""
_ELAPSED = struct.Struct("<f")
_ELAPSED_AT = 28

ERROR_CODES = {kind: code for code, kind in enumerate(KINDS, start=1)}
_FIRST_OWN_CODE = 64
_LAST_CODE = 255

_PROCESS = struct.Struct("<8sqQQ")  # magic, process id, connections begun, peak RSS in bytes
_PROCESS_MAGIC = b"CLABPRC1"
_CONNECTIONS_AT = 16
_PEAK_AT = 24
_COUNT = struct.Struct("<Q")


class SampleLog:
    """One process's pen for the trial's log, safe to be used by its threads.

    `first` is the lowest number that will be written, `expected` how many there are likely to be: room
    for them is taken now, and more when it is needed. Raises OSError where the disk has none.
    """

    def __init__(self, folder: Path, first: int, expected: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = threading.Lock()
        self._names: dict[str, int] = {}
        self._old: list[mmap.mmap] = []
        self._file = os.open(folder / RECORDS_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        self.base = HEADER.size - first * RECORD_SIZE
        self.buffer = self._map(HEADER.size + expected * RECORD_SIZE)
        HEADER.pack_into(self.buffer, 0, MAGIC, first)
        self._connections = 0
        self._process = _small_file(folder / f"{os.getpid()}.process", _PROCESS.size)
        _PROCESS.pack_into(self._process, 0, _PROCESS_MAGIC, os.getpid(), 0, 0)

    def write_late(  # noqa: PLR0913, PLR0917 - a record's fields
        self, number: int, start: float, seconds: float, size: int, status: int, code: int
    ) -> mmap.mmap:
        """Write a record for which there was no room yet; returns the buffer for those to come."""
        at = self._place(number)
        write_record(self.buffer, at, start, seconds, size, status, code, 1)
        return self.buffer

    def write_elapsed(self, number: int, seconds: float) -> None:
        """Write the library's own seconds of a request whose record is not yet done."""
        at = self._place(number)
        _ELAPSED.pack_into(self.buffer, at + _ELAPSED_AT, seconds)

    def connected(self, count: int = 1) -> None:
        """Count connections that this process began to open."""
        with self._lock:
            self._connections += count
            _COUNT.pack_into(self._process, _CONNECTIONS_AT, self._connections)

    def error_code(self, kind: str, message: str) -> int:
        """The code of a kind; a kind's first message is kept beside the log as an example."""
        code = self._names.get(kind)
        if code is None:
            with self._lock:
                fcntl.flock(self._file, fcntl.LOCK_EX)
                code = self._names[kind] = _register(self._folder, kind, message)
                fcntl.flock(self._file, fcntl.LOCK_UN)
        return code

    def close(self, peak_rss: int) -> None:
        """Note the process's peak memory in bytes and let go of the files."""
        _COUNT.pack_into(self._process, _PEAK_AT, peak_rss)
        for mapped in (*self._old, self.buffer, self._process):
            mapped.close()
        os.close(self._file)

    def _place(self, number: int) -> int:
        """Where the record of that number is; takes room for it where there is none."""
        at = number * RECORD_SIZE + self.base
        with self._lock:
            if at + RECORD_SIZE > len(self.buffer):
                self._old.append(self.buffer)  # other threads may be writing to it
                self.buffer = self._map(max(at + RECORD_SIZE, 2 * len(self.buffer)))
        return at

    def _map(self, size: int) -> mmap.mmap:
        _take_room(self._file, size)
        return mmap.mmap(self._file, size)


@dataclass(frozen=True)
class ProcessNote:
    """What a process of a trial says of itself. `peak_rss_bytes` is 0 while it still works."""

    pid: int
    connections: int
    peak_rss_bytes: int


def process_notes(folder: Path) -> list[ProcessNote]:
    """The notes of all processes that have sent requests."""
    notes = []
    for path in sorted(folder.glob("*.process")):
        block = path.read_bytes()
        if len(block) == _PROCESS.size and block.startswith(_PROCESS_MAGIC):
            notes.append(ProcessNote(*_PROCESS.unpack(block)[1:]))
    return notes


def error_names(folder: Path) -> dict[int, tuple[str, str]]:
    """Code → kind and the text of its first error, of a trial's folder."""
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.error")]
    return {row["code"]: (row["kind"], row["example"]) for row in rows}


def _register(folder: Path, kind: str, message: str) -> int:
    """The code of a kind, the same in all processes of a trial: who comes first names it, in a file.

    To be called by one process at a time.
    """
    own = range(_FIRST_OWN_CODE, _LAST_CODE + 1)
    for code in (ERROR_CODES[kind],) if kind in ERROR_CODES else own:
        place = folder / f"{code}.error"
        if not place.exists():
            row = {"code": code, "kind": kind, "example": message[:500]}
            place.write_text(json.dumps(row), encoding="utf-8")
            return code
        if json.loads(place.read_text(encoding="utf-8"))["kind"] == kind:
            return code
    raise OverflowError(f"more than {len(own)} kinds of error in one trial; the last: {kind}")


def _small_file(path: Path, size: int) -> mmap.mmap:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        _take_room(file, size)
        return mmap.mmap(file, size)
    finally:
        os.close(file)


def _take_room(file: int, size: int) -> None:
    """Make the file `size` bytes long at least, with room for them on disk."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    have = os.fstat(file).st_size  # macOS: written out, which takes the room as well
    if size > have:
        os.pwrite(file, bytes(size - have), have)
