"""What a trial cost: CPU seconds and peak memory of its process and of all its children.

A process knows its own figures and those of its children that have ended to the microsecond. Those of
children still alive are read from outside, by the process that started the trial.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from pathlib import Path

_STATUS = Path("/proc/self/status")
_kept: dict[int, int] = {}  # process id, which a fork changes, and descriptor


def cpu_seconds() -> float:
    """CPU time of this process and of its ended children, user and system."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_rss() -> int:
    """Largest resident set of this process so far, in bytes.

    Not `ru_maxrss` where it can be helped: on Linux a new program inherits its parent's.
    """
    keep_status_open()
    if os.getpid() in _kept:
        return high_water(os.pread(_kept[os.getpid()], 1 << 16, 0).decode("ascii"))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def keep_status_open() -> None:
    """Open what `peak_rss` reads, for a process that may have no descriptor left when it is asked."""
    if os.getpid() not in _kept and _STATUS.exists():
        _kept[os.getpid()] = os.open(_STATUS, os.O_RDONLY)


def raise_descriptor_limit() -> None:
    """Let this process, and those that it starts, have as many files and sockets open as the system permits."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):  # macOS calls it unlimited and takes less
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def high_water(status: str) -> int:
    """VmHWM of the text of /proc/PID/status, in bytes; 0 for a process that has ended."""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
