"""CPU time of a worker, and the CPU cores that it may use."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

import psutil

_SCHED = 2  # CPUCLOCK_SCHED of Linux: nanoseconds that a process has run
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, user and system, without its children. Raises psutil.NoSuchProcess.

    Linux has a clock for each process, in nanoseconds (clock_getcpuclockid(3)). psutil reads steps of 10 ms.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # it has ended, or the kernel refuses: psutil tells which
            return time.clock_gettime(~pid << 3 | _SCHED)
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def usable_cores() -> float:
    """Cores that this process may use: by its affinity, and by the quota of its control group (version 2)."""
    allowed = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    quota, period = _quota()
    return min(allowed, quota / period) if quota > 0 < period else allowed


def _quota() -> tuple[float, float]:
    """CPU time and period of the control group's quota, in equal units; 0 or less where there is none."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text(encoding="ascii").split()
        return (0.0 if quota == "max" else float(quota)), float(period)
    return 0.0, 0.0
