"""What disturbed a trial: the kernel's counters before and after it, and threads that
waited for a lock.

The parent process reads the counters while the trial waits. All of them are Linux's;
None: it cannot be read.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil

from clientlab.trial.result import Disturbance

Number = TypeVar("Number", int, float)
_USER, _NICE, _SYSTEM, _STEAL = (
    0,
    1,
    2,
    7,
)  # fields of the line "cpu" of /proc/stat (proc(5))

# Threads per look of `LockWaits`; each takes about 10 µs of the lab's own process.
_MOST_AT_ONCE = 64

MachineReading = Mapping[
    str, float | None
]  # counters in seconds, as `read_machine` describes them
ThreadReadings = Mapping[
    int, float
]  # thread id → seconds in which it could run and waited for a CPU


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
        cores = [
            cores[core] for core in os.sched_getaffinity(0) if core < len(cores)
        ] or cores
    kinds = {
        "busy": ("user", "nice", "system", "irq", "softirq", "steal"),
        "idle": ("idle", "iowait"),
    }
    words = _find_line(root / "proc/stat", "cpu ").split()[1:]
    times = [int(word) / os.sysconf("SC_CLK_TCK") for word in words]
    total = _find_line(root / "proc/pressure/cpu", "some ").rpartition("total=")[
        2
    ]  # microseconds
    return {
        "at": time.monotonic(),
        "lab": time.process_time(),
        "processes": sum(times[field] for field in (_USER, _NICE, _SYSTEM))
        if times
        else None,
        "steal": times[_STEAL] if len(times) > _STEAL else None,
        "pressure": int(total) / 1e6 if total.isdigit() else None,
        **{
            kind: sum(
                getattr(core, name, 0.0) for core in cores for name in kinds[kind]
            )
            for kind in kinds
        },
    }


def _find_line(path: Path, beginning: str) -> str:
    """Return the first line of a file that begins like this; "" if there is none, or no
    such file.
    """
    with contextlib.suppress(OSError):
        return next(
            (
                line
                for line in path.read_text("ascii").splitlines()
                if line.startswith(beginning)
            ),
            "",
        )
    return ""


def read_threads(pids: Iterable[int], root: Path = Path("/")) -> ThreadReadings | None:
    """Read the counters of all threads of these processes.

    Return None if none can be read.
    """
    found: dict[int, float] = {}
    for pid in pids:
        with contextlib.suppress(
            OSError
        ):  # it has ended, or the system has no such folder
            for task in (root / f"proc/{pid}/task").iterdir():
                with contextlib.suppress(
                    OSError, LookupError, ValueError
                ):  # this thread has ended
                    found[int(task.name)] = (
                        int((task / "schedstat").read_text(encoding="ascii").split()[1])
                        / 1e9
                    )
    return found or None


def compute_disturbance(
    readings: Sequence[tuple[MachineReading, MachineReading]],
    threads: Sequence[tuple[ThreadReadings | None, ThreadReadings | None]],
) -> Disturbance:
    """Return the growth of all counters.

    Both arguments have pairs, read before and after each slice.
    """

    def growth(counter: str) -> float | None:
        pairs = ((before[counter], after[counter]) for before, after in readings)
        # On some kernels the stolen time of an idle CPU falls a little.
        return over_known(
            sum, (None if a is None or b is None else max(0.0, b - a) for a, b in pairs)
        )

    delay = over_known(
        sum,
        (
            None
            if before is None or after is None
            else sum(
                now - before.get(thread, 0.0) for thread, now in after.items()
            )  # a new thread began at zero
            for before, after in threads
        ),
    )
    cpu, busy, idle = growth("processes"), growth("busy") or 0.0, growth("idle") or 0.0
    return Disturbance(
        seconds=growth("at") or 0.0,
        busy_share=busy / (busy + idle) if busy + idle > 0 else None,
        machine_cpu_seconds=None
        if cpu is None
        else max(0.0, cpu - (growth("lab") or 0.0)),
        steal_seconds=growth("steal"),
        cpu_pressure_seconds=growth("pressure"),
        run_delay_seconds=None if delay is None else max(0.0, delay),
    )


def merge_disturbances(found: Sequence[Disturbance | None]) -> Disturbance | None:
    """Return the largest growth of each counter on any of several machines; None if it
    is unknown for one.

    The waits of threads add up. The CPU time of all processes is unknown, because two
    machines may be the same.
    """
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    names = ("seconds", "busy_share", "steal_seconds", "cpu_pressure_seconds")
    largest: dict[str, Any] = {
        name: over_known(max, (getattr(one, name) for one in known)) for name in names
    }
    return Disturbance(
        **largest,
        run_delay_seconds=over_known(sum, (one.run_delay_seconds for one in known)),
    )


def over_known(
    of: Callable[[list[Number]], Number], values: Iterable[Number | None]
) -> Number | None:
    """Return `of` all values; None if there are none, or one of them is unknown."""
    every = list(values)
    known = [value for value in every if value is not None]
    return of(known) if known and len(known) == len(every) else None


class LockWaits:
    """Finds out how many threads of a trial wait for a lock, by looking a few times at
    their wait channels (proc(5)).

    A thread that waits for a lock of Python or of a library sleeps in futex(2). One
    that waits for a socket, or sleeps, does not. `pids` returns the processes. `until`:
    a moment of `time.perf_counter` after which no look counts, because threads without
    more requests to send wait for work, which is a lock, too.
    """

    def __init__(
        self, pids: Callable[[], Iterable[int]], proc: Path = Path("/proc")
    ) -> None:
        self._pids = pids
        self._proc = proc
        self.until = math.inf
        self._looked = self._locked = self._sleeping = 0

    def look(self) -> None:
        """Look at all threads now, or at every n-th.

        Main threads do not count: they wait for the others.
        """
        if time.perf_counter() >= self.until:
            return
        threads: list[Path] = []
        for pid in self._pids():
            with contextlib.suppress(
                OSError
            ):  # it has ended, or the system has no such folder
                threads += (
                    task
                    for task in (self._proc / f"{pid}/task").iterdir()
                    if task.name != str(pid)
                )
        for task in threads[:: -(-len(threads) // _MOST_AT_ONCE) or 1]:
            with contextlib.suppress(OSError):
                channel = (task / "wchan").read_text(encoding="ascii")
                self._looked += 1
                self._sleeping += channel not in {"", "0"}
                self._locked += channel.startswith("futex")

    @property
    def share(self) -> float | None:
        """Share of the examined threads that waited for a lock; None if no thread was
        seen to wait for anything.

        Then none was examined, or the kernel shows no wait channel.
        """
        return self._locked / self._looked if self._sleeping else None
