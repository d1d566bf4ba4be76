"""Busy time of the cores that the lab may use, whoever uses them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

import psutil

_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
_IDLE = ("idle", "iowait")


@dataclass(frozen=True)
class CoreTimes:
    """Seconds since the machine's start, summed over its cores, in steps of 10 ms. Stolen time counts as busy."""

    busy: float
    idle: float

    @classmethod
    def now(cls) -> Self:
        """The cores of this process's affinity, or all cores where the system has none."""
        times = psutil.cpu_times(percpu=True)
        if hasattr(os, "sched_getaffinity"):
            times = [times[core] for core in os.sched_getaffinity(0) if core < len(times)] or times
        return cls(*(sum(getattr(core, name, 0.0) for core in times for name in names) for names in (_BUSY, _IDLE)))

    def share_since(self, before: CoreTimes) -> float | None:
        """Busy share of these cores since an earlier reading; None if no time has passed."""
        used, unused = self.busy - before.busy, self.idle - before.idle
        return used / (used + unused) if used + unused > 0 else None
