"""What disturbed a trial: counters of the kernel before and after it, and busy cores, whoever uses them.

They are read by the process that started the trial, while the trial waits: nothing is read inside the clock. All of
them are Linux'. A counter that cannot be read is None.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Self, TypeVar

import psutil
from pydantic import ConfigDict

from clientlab.bounded_numbers import Count, NotNegative, Positive
from clientlab.measuring.cgroups import cpu_pressure_file

_BUSY_TIMES = ("user", "nice", "system", "irq", "softirq", "steal")
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
        return cls(
            *(sum(getattr(core, name, 0.0) for core in times for name in names) for names in (_BUSY_TIMES, _IDLE))
        )


Number = TypeVar("Number", int, float)
_ROOT = Path("/")
_BUSY = (0, 1, 2)
"""Fields of the line "cpu" of /proc/stat (proc(5)): user, nice and system. User time holds that of guests.

Without irq and softirq: the trial's own packets cause them, and they are in no process's CPU time.
"""
_STEAL = 7


@dataclass(frozen=True)
class MachineReading:
    """Counters of the whole machine at one moment, in seconds; the clock's frequency in Hz.

    `cores`: busy time of the cores that this process may use. `busy`: CPU time of all processes. `steal`: time that the
    hypervisor gave to others. `pressure`: time in which some process waited for a CPU, on the machine and in the
    control group. `lab`: CPU time of this process.
    """

    at: float
    lab: float
    cores: CoreTimes
    busy: float | None
    steal: float | None
    pressure: float | None
    group_pressure: float | None
    frequency: float | None


@dataclass(frozen=True)
class ThreadReading:
    """Counters of one thread. `run_delay`: seconds in which it could run and waited for a CPU."""

    run_delay: float
    involuntary_switches: int


ThreadReadings = Mapping[int, ThreadReading]
"""Thread id → its counters."""


@dataclass(frozen=True)
class Disturbance:
    """How much the counters grew over a trial's measured part, `seconds` long. None: not readable.

    `machine_cpu_seconds`: of all processes but the lab's own that reads this. `run_delay_seconds` and
    `involuntary_switches`: of the trial's threads that are alive at its last response. `frequencies`: in Hz, before
    and after. `busy_share`: of the cores that the lab may use.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)  # a worker sends it to the lab

    seconds: Positive
    busy_share: NotNegative | None = None
    machine_cpu_seconds: NotNegative | None = None
    steal_seconds: NotNegative | None = None
    cpu_pressure_seconds: NotNegative | None = None
    group_pressure_seconds: NotNegative | None = None
    run_delay_seconds: NotNegative | None = None
    involuntary_switches: Count | None = None
    frequencies: tuple[NotNegative | None, NotNegative | None] = field(default=(None, None))


def machine(root: Path = _ROOT) -> MachineReading:
    """The counters of the machine now."""
    times = _cpu_times(root / "proc/stat")
    group = cpu_pressure_file(root)
    return MachineReading(
        at=time.monotonic(),
        lab=time.process_time(),
        cores=CoreTimes.now(),
        busy=None if times is None else sum(times[place] for place in _BUSY),
        steal=None if times is None or len(times) <= _STEAL else times[_STEAL],
        pressure=_pressure(root / "proc/pressure/cpu"),
        group_pressure=None if group is None else _pressure(group),
        frequency=_frequency(root / "sys/devices/system/cpu"),
    )


def threads(pids: Iterable[int], root: Path = _ROOT) -> ThreadReadings | None:
    """The counters of all threads of these processes. None where not one can be read."""
    found: dict[int, ThreadReading] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or the system has no such folder
            for task in (root / f"proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError, LookupError, ValueError):  # this thread has ended
                    found[int(task.name)] = _thread(task)
    return found or None


def disturbance(
    readings: Sequence[tuple[MachineReading, MachineReading]],
    threads: Sequence[tuple[ThreadReadings | None, ThreadReadings | None]],
) -> Disturbance:
    """The growth of all counters, which are read before and after each slice, or the measured part."""
    grown = [_of_threads(before, after) for before, after in threads]
    delay = over_known(sum, (None if one is None else one.run_delay for one in grown))
    switches = over_known(sum, (None if one is None else one.involuntary_switches for one in grown))

    def grown_by(counter: str) -> float | None:
        return over_known(
            sum, (_growth(getattr(before, counter), getattr(after, counter)) for before, after in readings)
        )

    cpu = grown_by("busy")
    own = sum(after.lab - before.lab for before, after in readings)
    return Disturbance(
        seconds=sum(after.at - before.at for before, after in readings),
        busy_share=_busy_share([(before.cores, after.cores) for before, after in readings]),
        machine_cpu_seconds=None if cpu is None else max(0.0, cpu - own),
        steal_seconds=grown_by("steal"),
        cpu_pressure_seconds=grown_by("pressure"),
        group_pressure_seconds=grown_by("group_pressure"),
        run_delay_seconds=None if delay is None else max(0.0, delay),
        involuntary_switches=None if switches is None else max(0, switches),
        frequencies=(readings[0][0].frequency, readings[-1][1].frequency),
    )


def _of_threads(before: ThreadReadings | None, after: ThreadReadings | None) -> ThreadReading | None:
    """The growth of the counters of all threads. One that is new began at zero."""
    if before is None or after is None:
        return None
    grown = [(before.get(name, ThreadReading(0.0, 0)), now) for name, now in after.items()]
    return ThreadReading(
        sum(now.run_delay - then.run_delay for then, now in grown),
        sum(now.involuntary_switches - then.involuntary_switches for then, now in grown),
    )


def _busy_share(readings: Sequence[tuple[CoreTimes, CoreTimes]]) -> float | None:
    """Busy share of the cores over all slices. Their counters grow in steps of 10 ms: that of one slice is coarse."""
    busy = sum(after.busy - before.busy for before, after in readings)
    idle = sum(after.idle - before.idle for before, after in readings)
    return busy / (busy + idle) if busy + idle > 0 else None


def most_disturbed(found: Sequence[Disturbance | None]) -> Disturbance | None:
    """Of several machines the one that was disturbed most; what threads waited adds up. None where one is unknown.

    The CPU time of all processes is unknown: machines may be one and the same.
    """
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return Disturbance(
        seconds=max(one.seconds for one in known),
        busy_share=over_known(max, (one.busy_share for one in known)),
        steal_seconds=over_known(max, (one.steal_seconds for one in known)),
        cpu_pressure_seconds=over_known(max, (one.cpu_pressure_seconds for one in known)),
        group_pressure_seconds=over_known(max, (one.group_pressure_seconds for one in known)),
        run_delay_seconds=over_known(sum, (one.run_delay_seconds for one in known)),
        involuntary_switches=over_known(sum, (one.involuntary_switches for one in known)),
        frequencies=(
            over_known(max, (one.frequencies[0] for one in known)),
            over_known(min, (one.frequencies[1] for one in known)),
        ),
    )


def over_known(of: Callable[[list[Number]], Number], values: Iterable[Number | None]) -> Number | None:
    """One figure of several values; None where one of them is unknown."""
    every = list(values)
    known = [value for value in every if value is not None]
    return of(known) if known and len(known) == len(every) else None


def _growth(before: float | None, after: float | None) -> float | None:
    """Some kernels let the time of an idle CPU's hypervisor fall a little: that is no growth."""
    return None if before is None or after is None else max(0.0, after - before)


def _cpu_times(path: Path) -> list[float] | None:
    """Seconds of all CPUs together, by kind."""
    try:
        words = path.read_text(encoding="ascii").partition("\n")[0].split()
    except OSError:
        return None
    return [int(word) / os.sysconf("SC_CLK_TCK") for word in words[1:]] if words[:1] == ["cpu"] else None


def _pressure(path: Path) -> float | None:
    """Seconds in which some task was stalled: ``some avg10=0.00 ... total=MICROSECONDS``."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:  # no such file, or pressure is switched off
        return None
    totals = [line.rpartition("total=")[2] for line in lines if line.startswith("some ")]
    return int(totals[0]) / 1e6 if totals and totals[0].isdigit() else None


def _thread(task: Path) -> ThreadReading:
    """Raises OSError, LookupError or ValueError."""
    delay = int((task / "schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    status = (task / "status").read_text(encoding="ascii", errors="replace")
    return ThreadReading(delay, int(status.rpartition("nonvoluntary_ctxt_switches:")[2].split()[0]))


def _frequency(cpus: Path) -> float | None:
    """Mean over the cores, in Hz."""
    found = []
    for path in cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text(encoding="ascii")) * 1000)
    return mean(found) if found else None
