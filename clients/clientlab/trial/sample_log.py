"""The sample log and the log of events: mapped files that other processes read live.

The sample log has one record of 32 bytes per request. All processes of a trial share
one file. Request k has the k-th record, so the processes need no lock, and writing a
record is one call. The requests of shard i of n have the records i, i + n, i + 2n, …
The field `done` is written last: a record that is done is complete. Disk space is
allocated first, so a full disk raises OSError instead of a bus error.

Each process also has a small file with its connections and its peak memory. In a trial
with streams, it has a log of events, too: one record of 48 bytes for each event, in the
order of arrival. The readers are `samples` and `stream_times`, because the measured
process must not import numpy.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import mmap
import os
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clientlab.errors import KINDS, PluginError

RECORDS_FILE = "trial.samples"
ERRORS_FILE = "trial.errors"  # one JSON line per error kind
MAGIC = b"CLABSMP1"
# Magic, number of the first record's request, when the schedule began, number of the
# first request of the slice
HEADER = struct.Struct("<8sqdq")
_HEAD = struct.Struct("<8sq")  # the part of the header that each process writes
_BEGAN_AT = 16
_SLICE_AT = 24
RECORD_SIZE = 32
RECORD_FIELDS = (  # the record's layout, in numpy's notation; little-endian, packed
    ("start", "<f8"),  # seconds of the machine's monotonic clock
    ("seconds", "<f8"),
    ("bytes", "<u8"),  # of the response body
    ("status", "<u2"),
    # 0: no error; otherwise a code of ERROR_CODES or of the trial's ERRORS_FILE
    ("error", "u1"),
    ("done", "u1"),
    # The library's own seconds, or those after the first byte of the body; 0 unless the
    # workload records either
    ("elapsed", "<f4"),
)
write_record = struct.Struct("<ddQHBB").pack_into
"""write_record(buffer, offset, start, seconds, bytes, status, error, done)."""
_ELAPSED = struct.Struct("<f")
_ELAPSED_AT = 28

ERROR_CODES = {kind: code for code, kind in enumerate(KINDS, start=1)}
_STEP = 64 << 20
"""Bytes of disk space that a log reserves at a time.

A file system takes long to reserve gigabytes, and does not let the process end before.
"""
_OWN_CODES = range(64, 256)  # of error kinds that the lab does not list

NOTE_SUFFIX = ".process"  # file name extension of each process's own file
# Magic, process id, connections begun, peak RSS in bytes, connections not opened,
# callers, shard, when it began
_PROCESS = struct.Struct("=8sqQQQQQd")
_PROCESS_MAGIC = b"CLABPRC5"
# Places of its fields, each of 8 bytes
_CONNECTIONS = 2
_PEAK = 3
_UNOPENED = 4
_CALLERS = 5

EVENTS_SUFFIX = ".events"  # file name extension of each process's own log of events
MAPPED_FILES = (f"/{RECORDS_FILE}", EVENTS_SUFFIX)
"""Ends of the names of logs, which are no memory of the client."""

EVENT_SIZE = 48
EVENT_FIELDS = (  # laid out like RECORD_FIELDS
    ("request", "<i8"),  # its number in the sample log
    ("at", "<f8"),  # seconds of the machine's monotonic clock
    # As mockupstream.streams wrote it into the event; empty if it has none.
    ("mark", "S30"),
    ("done", "u2"),
)
write_event = struct.Struct("<qd30sH").pack_into
"""write_event(buffer, offset, request, at, mark, done)."""
_LEAST_EVENTS = 16_384


class _MappedLog:
    """A file of records, mapped into memory, that the threads of a process share.

    Raise OSError if the disk is full.
    """

    def __init__(self, path: Path, size: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._old: list[mmap.mmap] = []
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.buffer = _map(self._file, min(size, _STEP))

    def _make_room(self, size: int) -> None:
        with self._lock:
            present = len(self.buffer)
            if size > present:
                self._old.append(self.buffer)  # another thread may be writing to it
                grown = present + min(present, _STEP)
                self.buffer = _map(self._file, max(size, grown))

    def _close_files(self) -> None:
        for mapped in (*self._old, self.buffer):
            mapped.close()
        os.close(self._file)


class EventLog(_MappedLog):
    """One process's writer of the events of its streams."""

    def __init__(self, folder: Path) -> None:
        path = folder / f"{os.getpid()}{EVENTS_SUFFIX}"
        super().__init__(path, _LEAST_EVENTS * EVENT_SIZE)
        self.next_place = itertools.count(0, EVENT_SIZE).__next__  # atomic

    def write_late(self, place: int, request: int, at: float, mark: bytes) -> mmap.mmap:
        """Write a record beyond the end of the buffer, which grows.

        Return the buffer for the next records.
        """
        try:
            self._make_room(place + EVENT_SIZE)
        except OSError as error:  # not an error of the request: the trial fails
            raise PluginError(f"the log of events has no space: {error}") from error
        write_event(self.buffer, place, request, at, mark, 1)
        return self.buffer

    def close(self) -> None:
        self._close_files()


class SampleLog(_MappedLog):
    """One process's writer of the trial's log.

    Its threads and several callers may share it.

    `first`: lowest request number of the trial. `expected`: likely number of requests.
    Disk space for the first of them is reserved now; raise OSError if the disk is full.
    Request k of a shard has record `shard` + k × `shards`.
    """

    def __init__(
        self, folder: Path, first: int, expected: int, shard: int = 0, shards: int = 1
    ) -> None:
        super().__init__(folder / RECORDS_FILE, HEADER.size + expected * RECORD_SIZE)
        self.codes: dict[str, int] = {}  # error kind → code
        # Opened now: the error to register may be that the process has no file
        # descriptor left.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._errors = os.open(folder / ERRORS_FILE, flags, 0o644)
        self.stride = shards * RECORD_SIZE
        self.base = HEADER.size + (shard - first) * RECORD_SIZE
        _HEAD.pack_into(self.buffer, 0, MAGIC, first)
        self.shard = shard
        self.shards = shards
        self.events: EventLog | None = None  # of a trial with streams
        with (folder / f"{os.getpid()}{NOTE_SUFFIX}").open("x+b") as file:
            self._process = _map(file.fileno(), _PROCESS.size)
        self._counts = memoryview(self._process).cast("Q")

    def begin(self) -> None:
        """Register a caller.

        The first one registers this process as one that sends requests.
        """
        with self._lock:
            if not self._counts[_CALLERS]:
                fields = os.getpid(), 0, 0, 0, 0, self.shard, time.perf_counter()
                _PROCESS.pack_into(self._process, 0, _PROCESS_MAGIC, *fields)
            self._counts[_CALLERS] += 1

    @property
    def schedule_began(self) -> float:
        """When the schedule of an open load began, in monotonic seconds; 0 before."""
        began: float = HEADER.unpack_from(self.buffer)[2]
        return began

    @property
    def slice_began_with(self) -> int:
        """Number of the first request of the current slice; 0 before the first one."""
        first: int = HEADER.unpack_from(self.buffer)[3]
        return first

    def write_late(  # noqa: PLR0913, PLR0917 - a record's fields
        self,
        number: int,
        start: float,
        seconds: float,
        size: int,
        status: int,
        code: int,
    ) -> mmap.mmap:
        """Write a record, which may be beyond the end of the buffer.

        Return the buffer for the next records. A status that does not fit into a record
        is written as 0.
        """
        place = self._find_place(number)
        if not 0 <= status < 1 << 16:
            status = 0
        write_record(self.buffer, place, start, seconds, size, status, code, 1)
        return self.buffer

    def write_elapsed(self, number: int, seconds: float) -> None:
        """Write the field `elapsed` of a request, before its record is done."""
        at = self._find_place(number)
        _ELAPSED.pack_into(self.buffer, at + _ELAPSED_AT, seconds)

    def connected(self, count: int = 1) -> None:
        """Count attempts to open a connection."""
        with self._lock:
            self._counts[_CONNECTIONS] += count

    def unopened(self) -> None:
        """Note that one of the counted attempts failed."""
        with self._lock:
            self._counts[_UNOPENED] += 1

    def error_code(self, kind: str, message: str) -> int:
        """Return the code of an error kind.

        The first message of a kind is kept in ERRORS_FILE as an example.
        """
        if kind not in self.codes:
            with self._lock:
                fcntl.flock(self._errors, fcntl.LOCK_EX)
                try:
                    self._register(kind, message)
                finally:
                    fcntl.flock(self._errors, fcntl.LOCK_UN)
        return self.codes[kind]

    def _register(self, kind: str, message: str) -> None:
        """Read the codes of all processes, and choose one for the kind if it is new."""
        size = os.fstat(self._errors).st_size
        rows = _parse_errors(os.pread(self._errors, size, 0))
        self.codes |= {row["kind"]: row["code"] for row in rows}
        if kind in self.codes:
            return
        code = ERROR_CODES.get(kind)
        if code is None:
            free = set(_OWN_CODES).difference(self.codes.values())
            if not free:
                raise OverflowError(
                    f"more than {len(_OWN_CODES)} kinds of error in one trial; the"
                    f" last: {kind}: {message}"
                )
            code = min(free)
        row = {"code": code, "kind": kind, "example": message[:500]}
        os.write(self._errors, json.dumps(row).encode() + b"\n")
        self.codes[kind] = code

    def close(self, peak_rss: int) -> None:
        """Write the process's peak memory in bytes and close the files."""
        self._counts[_PEAK] = peak_rss
        self._counts.release()
        self._process.close()
        if self.events is not None:
            self.events.close()
        self._close_files()
        os.close(self._errors)

    def _find_place(self, number: int) -> int:
        """Return the offset of a request's record.

        Enlarge the file if the record is beyond its end.
        """
        at = number * self.stride + self.base
        self._make_room(at + RECORD_SIZE)
        return at


def begin_schedule(folder: Path, began: float) -> None:
    """Tell all processes of a trial when the schedule of its open load began."""
    _write_to_header(folder, _BEGAN_AT, struct.pack("<d", began))


def begin_slice(folder: Path, first: int) -> None:
    """Tell all processes of a trial the number of the first request of a slice."""
    _write_to_header(folder, _SLICE_AT, struct.pack("<q", first))


def _write_to_header(folder: Path, place: int, content: bytes) -> None:
    """Write into the log of the trial in `folder`, which must exist."""
    with (folder / RECORDS_FILE).open("r+b") as log:
        log.seek(place)
        log.write(content)


@dataclass(frozen=True)
class ProcessNote:
    """Figures that a process of a trial wrote about itself."""

    pid: int
    connections: int  # attempts to connect
    peak_rss_bytes: int  # 0 while the process runs
    unopened: int = 0  # attempts that failed
    callers: int = 1  # clients that sent requests
    shard: int = 0  # from 0
    began: float = 0.0  # when its first client was made, in monotonic seconds

    @property
    def opened(self) -> int:
        return self.connections - self.unopened


def process_notes(folder: Path) -> list[ProcessNote]:
    """Return the notes of the processes of a trial that have begun to send requests."""
    notes = []
    for path in sorted(folder.glob(f"*{NOTE_SUFFIX}")):
        block = path.read_bytes()
        if len(block) == _PROCESS.size and block.startswith(_PROCESS_MAGIC):
            _magic, *figures = _PROCESS.unpack(block)
            notes.append(ProcessNote(*figures))
    return notes


def error_names(folder: Path) -> dict[int, tuple[str, str]]:
    """Return error code → error kind and its first message, in the trial's folder."""
    path = folder / ERRORS_FILE
    rows = _parse_errors(path.read_bytes()) if path.exists() else []
    return {row["code"]: (row["kind"], row["example"]) for row in rows}


def _parse_errors(content: bytes) -> list[dict[str, Any]]:
    *lines, _incomplete = content.split(b"\n")
    return [json.loads(line) for line in lines]


def _map(file: int, size: int) -> mmap.mmap:
    """Allocate disk space for `size` bytes, and map the file into memory."""
    present = os.fstat(file).st_size
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    elif size > present:  # macOS: writing zeros allocates the space as well
        os.pwrite(file, bytes(size - present), present)
    return mmap.mmap(file, size)
