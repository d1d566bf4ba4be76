"""What disturbed a trial: the kernel's counters, and threads that waited for a lock.

The parent process reads the counters while the trial waits. All of them are specific
to Linux. A counter that cannot be read is None.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import psutil

from clientlab.results.trial import Disturbance

Number = TypeVar("Number", int, float)
# Fields of the line "cpu" of /proc/stat (proc(5))
_USER_NICE_SYSTEM = slice(3)
_STEAL = 7
# Of the cores that this process may use; stolen time counts as busy.
_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
_IDLE = ("idle", "iowait")

# Threads per look of `LockWaits`; each takes about 10 µs of the lab's own process.
_MOST_AT_ONCE = 64

MachineReading = Mapping[str, float | None]
"""Counters in seconds, as `read_machine` describes them."""

ThreadReadings = Mapping[int, float]
"""Thread id → seconds in which it could run and waited for a CPU."""


def read_machine(root: Path = Path("/")) -> MachineReading:
    """Read the counters of the machine now.

    `busy`, `idle`: of the cores that this process may use, in steps of 10 ms; stolen
    time counts as busy. `processes`: CPU time of all processes, without irq and
    softirq, which the trial's own packets cause. `lab`: CPU time of this process.
    `steal`: time that the hypervisor gave to others. `pressure`: time in which some
    process waited for a CPU.
    """
    cores = psutil.cpu_times(percpu=True)
    if hasattr(os, "sched_getaffinity"):
        usable = os.sched_getaffinity(0)
        cores = [times for core, times in enumerate(cores) if core in usable] or cores
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    words = _find_line(root / "proc/stat", "cpu ").split()[1:]
    times = [int(word) / ticks_per_second for word in words]
    processes = None
    if times:
        processes = sum(times[_USER_NICE_SYSTEM])
    steal = None
    if len(times) > _STEAL:
        steal = times[_STEAL]
    line = _find_line(root / "proc/pressure/cpu", "some ")
    microseconds = line.rpartition("total=")[2]
    pressure = None
    if microseconds.isdigit():
        pressure = int(microseconds) / 1e6

    def sum_over_cores(kinds: Iterable[str]) -> float:
        return sum(getattr(core, kind, 0.0) for core, kind in product(cores, kinds))

    return {
        "at": time.monotonic(),
        "lab": time.process_time(),
        "processes": processes,
        "steal": steal,
        "pressure": pressure,
        "busy": sum_over_cores(_BUSY),
        "idle": sum_over_cores(_IDLE),
    }


def _find_line(path: Path, beginning: str) -> str:
    """Return the first line of a file with this beginning.

    Return an empty text if there is no such line or file.
    """
    with contextlib.suppress(OSError):
        for line in path.read_text("ascii").splitlines():
            if line.startswith(beginning):
                return line
    return ""


def _list_threads(proc: Path, pids: Iterable[int]) -> Iterator[Path]:
    """Yield the folder of each thread of these processes."""
    for pid in pids:
        # The process may have ended, or the system has no such folder.
        with contextlib.suppress(OSError):
            yield from (proc / f"{pid}/task").iterdir()


def read_threads(pids: Iterable[int], root: Path = Path("/")) -> ThreadReadings | None:
    """Read the counters of all threads of these processes.

    Return None if none can be read.
    """
    delays = {}
    for thread in _list_threads(root / "proc", pids):
        # The thread may have ended.
        with contextlib.suppress(OSError, LookupError, ValueError):
            statistics = (thread / "schedstat").read_text("ascii")
            nanoseconds = statistics.split()[1]
            delays[int(thread.name)] = int(nanoseconds) / 1e9
    return delays or None


def compute_disturbance(
    readings: Sequence[tuple[MachineReading, MachineReading]],
    threads: Sequence[tuple[ThreadReadings | None, ThreadReadings | None]],
) -> Disturbance:
    """Return the growth of all counters.

    Both arguments have pairs, read before and after each slice.
    """

    def sum_growth(counter: str) -> float | None:
        growths = []
        for before, after in readings:
            growth = _subtract(after[counter], before[counter])
            growths.append(growth)
        return over_known(sum, growths)

    delays = [_sum_delays(before, after) for before, after in threads]
    delay = over_known(sum, delays)
    if delay is not None:
        delay = max(0.0, delay)
    busy = sum_growth("busy") or 0.0
    idle = sum_growth("idle") or 0.0
    busy_share = None
    if busy + idle > 0:
        busy_share = busy / (busy + idle)
    return Disturbance(
        seconds=sum_growth("at") or 0.0,
        busy_share=busy_share,
        machine_cpu_seconds=_subtract(sum_growth("processes"), sum_growth("lab")),
        steal_seconds=sum_growth("steal"),
        cpu_pressure_seconds=sum_growth("pressure"),
        run_delay_seconds=delay,
    )


def _subtract(after: float | None, before: float | None) -> float | None:
    """Return the growth, or 0: the stolen time of an idle CPU may fall a little."""
    if after is None or before is None:
        return None
    return max(0.0, after - before)


def _sum_delays(
    before: ThreadReadings | None, after: ThreadReadings | None
) -> float | None:
    """Return how much the counters of all threads grew; a new one began at zero."""
    if before is None or after is None:
        return None
    return sum(delay - before.get(thread, 0.0) for thread, delay in after.items())


def merge_disturbances(parts: Sequence[Disturbance | None]) -> Disturbance | None:
    """Return the largest growth of each counter on any of several machines.

    Return None if it is unknown for one. The waits of threads add up. The CPU time of
    all processes is unknown, because two machines may be the same.
    """
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    names = ("seconds", "busy_share", "steal_seconds", "cpu_pressure_seconds")
    largest = {name: over_parts(max, known, name) for name in names}
    run_delay = over_parts(sum, known, "run_delay_seconds")
    return Disturbance(**largest, run_delay_seconds=run_delay)


def over_parts(
    combine: Callable[[list[Any]], Any], parts: Iterable[object], name: str
) -> Any:
    """Combine an attribute of all parts. Return None if it is None for one of them."""
    values = [getattr(part, name) for part in parts]
    return over_known(combine, values)


def over_known(
    combine: Callable[[list[Number]], Number], values: Sequence[Number | None]
) -> Number | None:
    """Combine the values. Return None if there are none, or if one is unknown."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return combine(known)


class LockWaits:
    """Counts the threads of a trial that wait for a lock, by their wait channels.

    A thread that waits for a lock of Python or of a library sleeps in futex(2). One
    that waits for a socket, or sleeps, does not (proc(5)).

    `pids` returns the processes. `until`: a moment of `time.perf_counter` after which
    no look counts, because threads without more requests to send wait for work, which
    is a lock, too.
    """

    def __init__(
        self, pids: Callable[[], Iterable[int]], proc: Path = Path("/proc")
    ) -> None:
        self._pids = pids
        self._proc = proc
        self.until = math.inf
        self._looked = 0
        self._locked = 0
        self._sleeping = 0

    def look(self) -> None:
        """Look at all threads now, or at every n-th.

        Main threads do not count: they wait for the others.
        """
        if time.perf_counter() >= self.until:
            return
        pids = list(self._pids())
        main_threads = set(map(str, pids))
        threads = [
            thread
            for thread in _list_threads(self._proc, pids)
            if thread.name not in main_threads
        ]
        step = math.ceil(len(threads) / _MOST_AT_ONCE) or 1
        for thread in threads[::step]:
            with contextlib.suppress(OSError):
                channel = (thread / "wchan").read_text(encoding="ascii")
                self._looked += 1
                if channel not in {"", "0"}:
                    self._sleeping += 1
                if channel.startswith("futex"):
                    self._locked += 1

    @property
    def share(self) -> float | None:
        """Share of the examined threads that waited for a lock.

        None: no thread was seen to wait for anything. Then none was examined, or the
        kernel shows no wait channel.
        """
        if not self._sleeping:
            return None
        return self._locked / self._looked
