"""The sample log: a record of 32 bytes for each request, in a memory-mapped file that other processes read live.

All processes of a trial share one file. Request k has the k-th record, so the processes need no lock, and writing a
record is one call. The shards of a divided trial share it as well: the requests of shard i of n have the records i,
i + n, i + 2n, … No Python object is kept for a request. The field `done` is written last: a record that is done
is complete.

Disk space is allocated before it is written to. So a full disk is an OSError at that moment, and never a bus error
in the middle of a measurement.

Each process also has a small file of its own, with its connections and its peak memory.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from clientlab.errors import KINDS
from clientlab.samples.disk_space import take_room
from clientlab.samples.event_log import EventLog

RECORDS_FILE = "trial.samples"
ERRORS_FILE = "trial.errors"  # one JSON line per error kind: its code and its first example
MAGIC = b"CLABSMP1"
HEADER = struct.Struct("<8sq16x")  # magic, number of the first place's request; then when the schedule began
_HEAD = struct.Struct("<8sq")  # as each process writes it: the rest stays
BEGAN = struct.Struct("<d")
BEGAN_AT = 16
RECORD_SIZE = 32
MOST_RECORDS = 20_000_000
"""Requests of a trial: 610 MiB on the disk, and about 2.2 GiB of the lab's memory when it reads them at the end."""
_MOST_MORE = (1 << 18) * RECORD_SIZE
"""Bytes by which a log that is full grows at once."""
RECORD_FIELDS = (  # the record's layout, in numpy's notation; little-endian, packed
    ("start", "<f8"),  # seconds of the machine's monotonic clock
    ("seconds", "<f8"),
    ("bytes", "<u8"),  # of the response body
    ("status", "<u2"),
    ("error", "u1"),  # 0: no error; otherwise a code of ERROR_CODES or of the trial's ERRORS_FILE
    ("done", "u1"),
    ("elapsed", "<f4"),  # the library's own seconds; 0 unless the workload records them
)
write_record = struct.Struct("<ddQHBB").pack_into
"""write_record(buffer, offset, start, seconds, bytes, status, error, done)."""
_ELAPSED = struct.Struct("<f")
_ELAPSED_AT = 28

ERROR_CODES = {kind: code for code, kind in enumerate(KINDS, start=1)}
_FIRST_OWN_CODE = 64
_LAST_CODE = 255

NOTE_SUFFIX = ".process"
"""Of the name of each process's own file."""

_PROCESS = struct.Struct("<8sqQQQQQd")
"""Magic, process id, connections begun, peak RSS in bytes, connections not opened, callers, shard, when it began."""
_PROCESS_MAGIC = b"CLABPRC5"
_CONNECTIONS_AT = 16
_PEAK_AT = 24
_UNOPENED_AT = 32
_CALLERS_AT = 40
_COUNT = struct.Struct("<Q")


class SampleLog:
    """One process's writer of the trial's log. Its threads may share it, and so may several callers.

    `first` is the lowest request number of the trial, and `expected` the likely number of requests: their disk space is
    allocated now, and more when it is needed. Raises OSError if the disk is full. `begin` makes the process one of the
    trial's. The process's own request k has the record of the number `shard` + k x `shards`.
    """

    events: EventLog | None = None
    """Of a workload whose responses are streams: closed with this log."""

    def __init__(self, folder: Path, first: int, expected: int, shard: int = 0, shards: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._names: dict[str, int] = {}
        self._old: list[mmap.mmap] = []
        self._file = os.open(folder / RECORDS_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        # Opened now: the error to register may be that the process has no file descriptor left.
        self._errors = os.open(folder / ERRORS_FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self.stride = shards * RECORD_SIZE
        self.base = HEADER.size + (shard - first) * RECORD_SIZE
        self.buffer = self._map(HEADER.size + expected * RECORD_SIZE)
        _HEAD.pack_into(self.buffer, 0, MAGIC, first)
        self._shard = shard
        self._connections = self._unopened = self._callers = 0
        self._process = _small_file(folder / f"{os.getpid()}{NOTE_SUFFIX}", _PROCESS.size)

    def begin(self) -> None:
        """Register a caller, and with the first one this process as one that sends requests."""
        with self._lock:
            self._callers += 1
            if self._callers == 1:
                fields = os.getpid(), 0, 0, 0, 1, self._shard, time.perf_counter()
                _PROCESS.pack_into(self._process, 0, _PROCESS_MAGIC, *fields)
            else:
                _COUNT.pack_into(self._process, _CALLERS_AT, self._callers)

    @property
    def schedule_began(self) -> float:
        """When the schedule of an open load began, in seconds of the monotonic clock; 0 before."""
        began: float = BEGAN.unpack_from(self.buffer, BEGAN_AT)[0]
        return began

    def write_late(  # noqa: PLR0913, PLR0917 - a record's fields
        self, number: int, start: float, seconds: float, size: int, status: int, code: int
    ) -> mmap.mmap:
        """Write a record beyond the end of the buffer. Returns the larger buffer for the next records.

        A status that no record can hold is written as 0.
        """
        at = self._place(number)
        write_record(self.buffer, at, start, seconds, size, status if 0 <= status < 1 << 16 else 0, code, 1)
        return self.buffer

    def write_elapsed(self, number: int, seconds: float) -> None:
        """Write the library's own seconds of a request, before its record is done."""
        at = self._place(number)
        _ELAPSED.pack_into(self.buffer, at + _ELAPSED_AT, seconds)

    def connected(self, count: int = 1) -> None:
        """Count attempts of this process to open a connection."""
        with self._lock:
            self._connections += count
            _COUNT.pack_into(self._process, _CONNECTIONS_AT, self._connections)

    def unopened(self) -> None:
        """Note that one of the counted attempts failed and opened no connection."""
        with self._lock:
            self._unopened += 1
            _COUNT.pack_into(self._process, _UNOPENED_AT, self._unopened)

    def known_code(self, kind: str) -> int | None:
        """The code of an error kind that this process has met before; None for a new one."""
        return self._names.get(kind)

    def error_code(self, kind: str, message: str) -> int:
        """The code of an error kind. The first message of a kind is kept in ERRORS_FILE as an example."""
        code = self._names.get(kind)
        if code is None:
            with self._lock:
                fcntl.flock(self._errors, fcntl.LOCK_EX)
                code = self._names[kind] = _register(self._errors, kind, message)
                fcntl.flock(self._errors, fcntl.LOCK_UN)
        return code

    def close(self, peak_rss: int) -> None:
        """Write the process's peak memory in bytes and close the files."""
        _COUNT.pack_into(self._process, _PEAK_AT, peak_rss)
        for mapped in (*self._old, self.buffer, self._process):
            mapped.close()
        os.close(self._file)
        os.close(self._errors)
        if self.events is not None:
            self.events.close()

    def _place(self, number: int) -> int:
        """The offset of a request's record. Enlarges the file if the record is beyond its end."""
        at = number * self.stride + self.base
        with self._lock:
            if at + RECORD_SIZE > len(self.buffer):
                self._old.append(self.buffer)  # another thread may be writing to it
                # In steps, because a sender waits meanwhile.
                more = min(len(self.buffer), _MOST_MORE)
                self.buffer = self._map(max(at + RECORD_SIZE, len(self.buffer) + more))
        return at

    def _map(self, size: int) -> mmap.mmap:
        take_room(self._file, size)
        return mmap.mmap(self._file, size)


def begin_schedule(folder: Path, began: float) -> None:
    """Let all processes of the trial in `folder` know when the schedule of its open load began. The log exists."""
    file = os.open(folder / RECORDS_FILE, os.O_WRONLY)
    try:
        os.pwrite(file, BEGAN.pack(began), BEGAN_AT)
    finally:
        os.close(file)


@dataclass(frozen=True)
class ProcessNote:
    """Figures that a process of a trial wrote about itself. `peak_rss_bytes` is 0 while the process runs.

    `connections`: attempts to connect. `unopened`: attempts that failed. `callers`: clients that sent requests.
    `shard`: of a divided trial, from 0. `began`: when its first client was made, in seconds of the monotonic clock.
    """

    pid: int
    connections: int
    peak_rss_bytes: int
    unopened: int = 0
    callers: int = 1
    shard: int = 0
    began: float = 0.0

    @property
    def opened(self) -> int:
        return self.connections - self.unopened


def process_notes(folder: Path) -> list[ProcessNote]:
    """The notes of all processes that sent requests, in the trial's folder."""
    found = (process_note(path) for path in sorted(folder.glob(f"*{NOTE_SUFFIX}")))
    return [note for note in found if note is not None]


def process_note(path: Path) -> ProcessNote | None:
    """The note of one process; None if the process has not begun to send requests."""
    block = path.read_bytes()
    if len(block) == _PROCESS.size and block.startswith(_PROCESS_MAGIC):
        return ProcessNote(*_PROCESS.unpack(block)[1:])
    return None


def error_names(folder: Path) -> dict[int, tuple[str, str]]:
    """Error code → error kind and the text of its first error, in the trial's folder."""
    path = folder / ERRORS_FILE
    return _named(path.read_bytes()) if path.exists() else {}


def _register(file: int, kind: str, message: str) -> int:
    """The code of a kind, equal in all processes of a trial: the first process to meet it writes it to the file.

    The caller holds the file's lock.
    """
    named = _named(os.pread(file, os.fstat(file).st_size, 0))
    for code, (other, _) in named.items():
        if other == kind:
            return code
    own = range(_FIRST_OWN_CODE, _LAST_CODE + 1)
    code = ERROR_CODES.get(kind) or next((free for free in own if free not in named), 0)
    if not code:
        raise OverflowError(f"more than {len(own)} kinds of error in one trial; the last: {kind}")
    os.write(file, json.dumps({"code": code, "kind": kind, "example": message[:500]}).encode() + b"\n")
    return code


def _named(lines: bytes) -> dict[int, tuple[str, str]]:
    """Error code → kind and example, from the complete lines. The last line may be incomplete."""
    rows = [json.loads(line) for line in lines.splitlines(keepends=True) if line.endswith(b"\n")]
    return {row["code"]: (row["kind"], row["example"]) for row in rows}


def _small_file(path: Path, size: int) -> mmap.mmap:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        take_room(file, size)
        return mmap.mmap(file, size)
    finally:
        os.close(file)
