"""Resources that a trial used: CPU seconds and memory of its process and of all its children.

The sum of resident sets counts a page that forked processes share once for each of them. Linux counts such a page as
1/n in each of n processes (proc(5), smaps_rollup: Pss), but keeps a peak of the resident set only. So the peak of a
process is VmHWM - (Rss - Pss), all read at one moment when the trial's clock rests. The sample log is mapped into the
processes, but is no memory of the client, so its pages are subtracted.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from clientlab.samples.log import RECORDS_FILE

_STATUS = Path("/proc/self/status")
_SCHED = 2  # CPUCLOCK_SCHED of Linux
_kept: dict[int, int] = {}  # process id, which a fork changes → file descriptor


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its ended children, user and system."""
    return time.process_time() + children_cpu_seconds()


def children_cpu_seconds() -> float:
    """Return the CPU time of the ended children of this process, user and system."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def cpu_seconds_of(pid: int) -> float | None:
    """Return the CPU time of another process, without its children, in nanosecond steps (clock_getcpuclockid(3)).

    Return None if the system has no such clock, or the process has ended.
    """
    with contextlib.suppress(OSError):
        return time.clock_gettime(~pid << 3 | _SCHED) if sys.platform == "linux" else None
    return None


def has_gil() -> bool:
    """Return whether this process has a GIL. A free-threaded Python has none, unless a library needs it."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def peak_rss() -> int:
    """Return the largest resident set of this process so far, in bytes.

    On Linux it is not `ru_maxrss`, because a new program inherits its parent's value there.
    """
    keep_status_open()
    if os.getpid() in _kept:
        return high_water(os.pread(_kept[os.getpid()], 1 << 16, 0).decode("ascii"))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def keep_status_open() -> None:
    """Open the file that `peak_rss` reads now: later the process may have no file descriptor left."""
    if os.getpid() not in _kept and _STATUS.exists():
        _kept[os.getpid()] = os.open(_STATUS, os.O_RDONLY)


def raise_descriptor_limit() -> None:
    """Raise the limit of open files and sockets, of this process and its children, to the system's hard limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):  # macOS calls it unlimited and takes less
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def offer_to_the_oom_killer() -> None:
    """If memory runs out, let the kernel end this process and its children before other programs (proc(5))."""
    with contextlib.suppress(OSError):  # no Linux, or not permitted
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def high_water(status: str) -> int:
    """Return VmHWM in the text of /proc/PID/status, in bytes; 0 for a process that has ended."""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


_LOG = f"/{RECORDS_FILE}\n".encode("ascii")


@dataclass(frozen=True)
class Footprint:
    """Proportional bytes of processes, without the sample log: now, and the sum of each process's peak."""

    now: int
    peak: int


def footprint(pids: Iterable[int], needed: Collection[int] = (), proc: Path = Path("/proc")) -> Footprint | None:
    """Return the memory of these processes. Call it while they rest: the files are read one after the other.

    Return None if it cannot be read (no permission, not Linux), or if one of the `needed` processes has ended. Other
    processes that have ended hold no memory.
    """
    now = peak = 0
    for pid in pids:
        try:
            found = _of_process(proc / str(pid))
        except (FileNotFoundError, ProcessLookupError):
            found = None
        except OSError:
            return None
        if found is None and (pid in needed or not proc.joinpath("self", "smaps_rollup").exists()):
            return None
        if found is not None:
            now, peak = now + found.now, peak + found.peak
    return Footprint(now, peak) if now else None


def _of_process(folder: Path) -> Footprint | None:
    """Return the memory of one process; None for a zombie. Raise OSError."""
    rollup = (folder / "smaps_rollup").read_bytes()
    resident, proportional = _bytes(rollup, b"\nRss:"), _bytes(rollup, b"\nPss:")
    if not resident:
        return None
    grown = max(0, high_water((folder / "status").read_text(encoding="ascii", errors="replace")) - resident)
    own = max(0, proportional - _of_log((folder / "smaps").read_bytes()))
    return Footprint(own, own + grown)


def _of_log(smaps: bytes) -> int:
    """Return the proportional bytes of the mappings of a sample log, in the text of /proc/PID/smaps."""
    found, at = 0, smaps.find(_LOG)
    while at >= 0:
        found += _bytes(smaps[at : at + 512], b"\nPss:")
        at = smaps.find(_LOG, at + 1)
    return found


def _bytes(text: bytes, name: bytes) -> int:
    """Return the first value of that name, in bytes; 0 without one."""
    at = text.find(name)
    return int(text[at + len(name) :].split(None, 1)[0]) * 1024 if at >= 0 else 0
