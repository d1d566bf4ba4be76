"""Memory and open files of a trial's processes, read again and again while they send: what grows shows in a long trial.

A reading takes some microseconds of the kernel and does not stop the processes. However long a trial is, it has no
more than `MOST_READINGS`: when there are so many, every second one goes, and the next ones come half as often.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

from clientlab.measuring.limits import private_memory

MOST_READINGS = 120


@dataclass(frozen=True)
class SoakReading:
    """One moment. `at`: measured seconds, the pauses between slices left out.

    `memory_bytes`: of all processes of the trial, without what files back, so without the sample log. `open_files`:
    file descriptors, sockets included; None where they are not readable.
    """

    at: float
    memory_bytes: int
    open_files: int | None


class SoakReadings:
    """The readings of one trial. Call `begin` and `end` around each measured part, and `look` often in between."""

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self._pids = pids
        self._spacing = 0.0
        self._measured = 0.0
        self._began = time.monotonic()
        self._found: list[SoakReading] = []

    @property
    def readings(self) -> tuple[SoakReading, ...]:
        return tuple(self._found)

    def begin(self) -> None:
        """A measured part begins: the trial's only one, or a slice."""
        self._began = time.monotonic()

    def end(self) -> None:
        """It is over. Until the next one, no time passes."""
        self._measured += time.monotonic() - self._began

    def look(self) -> None:
        """Read the processes, unless they were read a moment ago."""
        at = self._measured + time.monotonic() - self._began
        if self._found and at - self._found[-1].at < self._spacing:
            return
        pids = list(self._pids())
        self._found.append(SoakReading(at, sum(map(private_memory, pids)), _open_files(pids)))
        if len(self._found) >= MOST_READINGS:
            del self._found[1::2]
            self._spacing = self._found[-1].at / len(self._found)


def _open_files(pids: Iterable[int]) -> int | None:
    """File descriptors of the processes. One that has ended has none. None where a process may not be looked at."""
    found = 0
    for pid in pids:
        try:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                found += psutil.Process(pid).num_fds()
        except psutil.AccessDenied:
            return None
    return found
