"""What disturbed a trial: counters of the kernel before and after it, and busy cores, whoever uses them.

The process that started the trial reads them while the trial waits: nothing is read inside the clock. All of them are
Linux's. A counter that cannot be read is None.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

Number = TypeVar("Number", int, float)
_USER, _NICE, _SYSTEM, _STEAL = 0, 1, 2, 7  # fields of the line "cpu" of /proc/stat (proc(5))


@dataclass(frozen=True)
class MachineReading:
    """Counters of the whole machine at one moment, in seconds.

    `busy`, `idle`: of the cores that this process may use, in steps of 10 ms; stolen time counts as busy. `processes`:
    CPU time of all processes, without irq and softirq, which the trial's own packets cause. `lab`: that of this
    process. `steal`: time that the hypervisor gave to others. `pressure`: time in which some process waited for a CPU.
    """

    at: float
    lab: float
    busy: float
    idle: float
    processes: float | None
    steal: float | None
    pressure: float | None


ThreadReadings = Mapping[int, float]
"""Thread id → seconds in which it could run and waited for a CPU."""


@dataclass(frozen=True)
class Disturbance:
    """How much the counters grew over a trial's measured part, `seconds` long. None: not readable.

    `machine_cpu_seconds`: of all processes but the lab's own that reads this. `run_delay_seconds`: of the trial's
    threads that are alive at its last response. `busy_share`: of the cores that the lab may use.
    """

    seconds: float
    busy_share: float | None = None
    machine_cpu_seconds: float | None = None
    steal_seconds: float | None = None
    cpu_pressure_seconds: float | None = None
    run_delay_seconds: float | None = None


def machine(root: Path = Path("/")) -> MachineReading:
    """Read the counters of the machine now."""
    cores = psutil.cpu_times(percpu=True)
    if hasattr(os, "sched_getaffinity"):
        cores = [cores[core] for core in os.sched_getaffinity(0) if core < len(cores)] or cores
    busy, idle = (
        sum(getattr(core, name, 0.0) for core in cores for name in names)
        for names in (("user", "nice", "system", "irq", "softirq", "steal"), ("idle", "iowait"))
    )
    times = _cpu_times(root / "proc/stat")
    return MachineReading(
        at=time.monotonic(),
        lab=time.process_time(),
        busy=busy,
        idle=idle,
        processes=None if times is None else sum(times[field] for field in (_USER, _NICE, _SYSTEM)),
        steal=None if times is None or len(times) <= _STEAL else times[_STEAL],
        pressure=_pressure(root / "proc/pressure/cpu"),
    )


def threads(pids: Iterable[int], root: Path = Path("/")) -> ThreadReadings | None:
    """Read the counters of all threads of these processes. Return None if not one can be read."""
    found: dict[int, float] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or the system has no such folder
            for task in (root / f"proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError, LookupError, ValueError):  # this thread has ended
                    found[int(task.name)] = int((task / "schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    return found or None


def disturbance(
    readings: Sequence[tuple[MachineReading, MachineReading]],
    threads: Sequence[tuple[ThreadReadings | None, ThreadReadings | None]],
) -> Disturbance:
    """Return the growth of all counters, which are read before and after each slice, or the measured part."""

    def growth(counter: str) -> float | None:
        """Some kernels let the time of an idle CPU's hypervisor fall a little: that is no growth."""
        pairs = [(getattr(before, counter), getattr(after, counter)) for before, after in readings]
        return None if any(None in pair for pair in pairs) else sum(max(0.0, after - before) for before, after in pairs)

    delays = [
        None if before is None or after is None
        else sum(now - before.get(name, 0.0) for name, now in after.items())  # a new thread began at zero
        for before, after in threads
    ]  # fmt: skip
    delay, cpu, own = over_known(sum, delays), growth("processes"), growth("lab") or 0.0
    busy, idle = (sum(getattr(after, name) - getattr(before, name) for before, after in readings)
                  for name in ("busy", "idle"))  # fmt: skip
    return Disturbance(
        seconds=sum(after.at - before.at for before, after in readings),
        busy_share=busy / (busy + idle) if busy + idle > 0 else None,
        machine_cpu_seconds=None if cpu is None else max(0.0, cpu - own),
        steal_seconds=growth("steal"),
        cpu_pressure_seconds=growth("pressure"),
        run_delay_seconds=None if delay is None else max(0.0, delay),
    )


def most_disturbed(found: Sequence[Disturbance | None]) -> Disturbance | None:
    """Return the most that each counter grew on any of several machines; None if it is unknown on one.

    What threads waited adds up. The CPU time of all processes is unknown: machines may be one and the same.
    """
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return Disturbance(
        seconds=max(one.seconds for one in known),
        busy_share=over_known(max, (one.busy_share for one in known)),
        steal_seconds=over_known(max, (one.steal_seconds for one in known)),
        cpu_pressure_seconds=over_known(max, (one.cpu_pressure_seconds for one in known)),
        run_delay_seconds=over_known(sum, (one.run_delay_seconds for one in known)),
    )


def over_known(of: Callable[[list[Number]], Number], values: Iterable[Number | None]) -> Number | None:
    """Return one figure of several values; None if one of them is unknown."""
    every = list(values)
    known = [value for value in every if value is not None]
    return of(known) if known and len(known) == len(every) else None


def _cpu_times(path: Path) -> list[float] | None:
    """Read the seconds of all CPUs together, by kind."""
    try:
        words = path.read_text(encoding="ascii").partition("\n")[0].split()
    except OSError:
        return None
    return [int(word) / os.sysconf("SC_CLK_TCK") for word in words[1:]] if words[:1] == ["cpu"] else None


def _pressure(path: Path) -> float | None:
    """Read the seconds in which some task was stalled: ``some avg10=0.00 ... total=MICROSECONDS``."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:  # no such file, or pressure is switched off
        return None
    totals = [line.rpartition("total=")[2] for line in lines if line.startswith("some ")]
    return int(totals[0]) / 1e6 if totals and totals[0].isdigit() else None
