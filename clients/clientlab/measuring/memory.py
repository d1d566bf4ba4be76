"""Memory of a trial's processes, in which pages that processes share are counted in proportion (PSS).

The sum of resident sets counts a page that forked processes share once for each of them: 10 processes of 32 MiB seem
to take 320 MiB. Linux counts such a page as 1/n in each of n processes (proc(5), smaps_rollup: Pss).

The kernel keeps a peak of the resident set, and none of Pss. So the peak of a process is its peak resident set, less
what its shared pages are counted too much for: VmHWM - (Rss - Pss). All three are read at one moment when the trial
pauses its clock, and no request is in flight. No sampling finds a peak that lasts some milliseconds; the kernel does.

The sample log is mapped into the processes and is no memory of the client, so its pages are subtracted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from clientlab.measuring.usage import high_water
from clientlab.samples.log import RECORDS_FILE

_PROC = Path("/proc")
_PAUSE = 1000
"""Reading may take 0.1 % of the time."""
_LOG = f"/{RECORDS_FILE}\n".encode("ascii")


@dataclass(frozen=True)
class Footprint:
    """Proportional bytes of processes, without the sample log: now, and the sum of each process's peak."""

    now: int
    peak: int


def footprint(pids: Iterable[int], needed: Collection[int] = (), proc: Path = _PROC) -> Footprint | None:
    """The memory of these processes. Call it while they rest: the files are read one after the other.

    None where it cannot be read (no permission, not Linux), or where one of the `needed` processes has ended. Other
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


class LiveMemory:
    """The memory of running processes, for the live metrics. It is read so seldom that the processes do not notice.

    Reading costs CPU time, and meanwhile the process can't map or unmap memory. A reading that took t seconds is
    followed by none for `_PAUSE` x t seconds.
    """

    def __init__(self) -> None:
        self.bytes: int | None = None
        self._next = -math.inf

    def read(self, pids: Iterable[int]) -> None:
        """Read the processes' memory into `bytes`, unless it was read a moment ago or cannot be read."""
        began = time.monotonic()
        if began < self._next:
            return
        found = footprint(pids)
        if found is not None:
            self.bytes = found.now
        now = time.monotonic()
        self._next = now + _PAUSE * (now - began)


def _of_process(folder: Path) -> Footprint | None:
    """The memory of one process; None for a zombie. Raises OSError."""
    rollup = (folder / "smaps_rollup").read_bytes()
    resident, proportional = _bytes(rollup, b"\nRss:"), _bytes(rollup, b"\nPss:")
    if not resident:
        return None
    grown = max(0, high_water((folder / "status").read_text(encoding="ascii", errors="replace")) - resident)
    own = max(0, proportional - _of_log((folder / "smaps").read_bytes()))
    return Footprint(own, own + grown)


def _of_log(smaps: bytes) -> int:
    """Proportional bytes of the mappings of a sample log, in the text of /proc/PID/smaps."""
    found, at = 0, smaps.find(_LOG)
    while at >= 0:
        found += _bytes(smaps[at : at + 512], b"\nPss:")
        at = smaps.find(_LOG, at + 1)
    return found


def _bytes(text: bytes, name: bytes) -> int:
    """The first value of that name, which is in KiB; 0 without one."""
    at = text.find(name)
    return int(text[at + len(name) :].split(None, 1)[0]) * 1024 if at >= 0 else 0
