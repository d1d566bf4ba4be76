"""How many threads of a trial wait for a lock: the kernel's wait channel of each, looked at a few times (proc(5)).

A thread that waits for a lock of Python or of a library sleeps in futex(2). One that waits for a socket, or sleeps,
does not. Counts of context switches show no such difference.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_MOST_AT_ONCE = 64
"""Threads per look. Each takes some 10 µs of the lab's own process."""


class LockWaits:
    """Looks at the threads of the processes that `pids` returns.

    `until`: a moment of `time.perf_counter` after which no look counts. Threads without more requests to send wait for
    work then, which is a lock, too.
    """

    def __init__(self, pids: Callable[[], Iterable[int]], proc: Path = Path("/proc")) -> None:
        self._pids = pids
        self._proc = proc
        self.until = math.inf
        self._looked = self._locked = self._sleeping = 0

    def look(self) -> None:
        """Look at the threads now, at every n-th of many. Main threads wait for the others, and do not count."""
        if time.perf_counter() >= self.until:
            return
        threads: list[Path] = []
        for pid in self._pids():
            with contextlib.suppress(OSError):  # it has ended, or the system has no such folder
                threads += (task for task in (self._proc / f"{pid}/task").iterdir() if task.name != str(pid))
        for task in threads[:: -(-len(threads) // _MOST_AT_ONCE) or 1]:
            with contextlib.suppress(OSError):
                channel = (task / "wchan").read_text(encoding="ascii")
                self._looked += 1
                self._sleeping += channel not in {"", "0"}
                self._locked += channel.startswith("futex")

    @property
    def share(self) -> float | None:
        """Share of the threads looked at that waited for a lock; None without a look.

        Also None if the kernel shows no wait channel: all threads seem to run then.
        """
        return self._locked / self._looked if self._sleeping else None
