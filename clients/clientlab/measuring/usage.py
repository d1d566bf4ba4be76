"""What a trial cost: CPU seconds and peak memory of its process and of all its children.

A process knows its own figures and those of its children that have ended to the microsecond. Those of
children still alive are read from outside, by the process that started the trial.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

_STATUS = Path("/proc/self/status")


def cpu_seconds() -> float:
    """CPU time of this process and of its ended children, user and system."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_rss() -> int:
    """Largest resident set of this process so far, in bytes.

    Not `ru_maxrss` where it can be helped: on Linux a new program inherits its parent's.
    """
    if _STATUS.exists():
        return high_water(_STATUS.read_text(encoding="ascii"))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def high_water(status: str) -> int:
    """VmHWM of the text of /proc/PID/status, in bytes; 0 for a process that has ended."""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
