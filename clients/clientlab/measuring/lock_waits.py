"""How many threads of a trial wait for a lock: the kernel's wait channel of each, looked at a few times (proc(5)).

A thread that waits for a lock of Python or of a library sleeps in futex(2). One that waits for a socket, or that
sleeps, does not. Counts of context switches show no such difference: a thread that sleeps leaves its core as often.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_PROC = Path("/proc")
_MOST_AT_ONCE = 64
"""Threads of one look. Each takes some 10 µs of the lab's own process."""


class LockWaits:
    """Looks at the threads of processes. `pids`: a function that returns the ids of all of them.

    `until`: a moment of `time.perf_counter` after which no look counts. Threads that have no more requests to send wait
    for work then, and that is a lock, too.
    """

    def __init__(self, pids: Callable[[], Iterable[int]], proc: Path = _PROC) -> None:
        self._pids = pids
        self._proc = proc
        self.until = math.inf
        self._looked = self._locked = self._sleeping = 0

    def look(self) -> None:
        """Look at the threads now, at every n-th of many. Main threads wait for the others, and do not count."""
        if time.perf_counter() >= self.until:
            return
        threads = [task for pid in self._pids() for task in self._threads(pid)]
        for task in threads[:: -(-len(threads) // _MOST_AT_ONCE) or 1]:
            with contextlib.suppress(OSError):  # it has ended, or the system has no such file
                channel = (task / "wchan").read_text(encoding="ascii")
                self._looked += 1
                self._sleeping += channel not in {"", "0"}
                self._locked += channel.startswith("futex")

    @property
    def share(self) -> float | None:
        """Threads that waited for a lock, of all that were looked at.

        None without a look, and where the kernel shows no wait channel: all threads seem to run there.
        """
        return self._locked / self._looked if self._sleeping else None

    def _threads(self, pid: int) -> list[Path]:
        try:
            return [task for task in (self._proc / f"{pid}/task").iterdir() if task.name != str(pid)]
        except OSError:  # it has ended, or the system has no such folder
            return []
