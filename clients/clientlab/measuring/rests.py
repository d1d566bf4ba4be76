"""What is read of a trial's processes while they wait, and the outcome that follows from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import psutil

from clientlab.measuring import noise, usage
from clientlab.measuring.context import Done
from clientlab.measuring.noise import Disturbance, MachineReading, ThreadReadings
from clientlab.measuring.outcome import Outcome
from clientlab.measuring.trial_handle import TrialProcesses
from clientlab.samples.log import ProcessNote, process_notes


@dataclass(frozen=True)
class _Tree:
    """A process of the trial at one moment: CPU seconds of its living descendants, and notes of those that sent."""

    pid: int
    children_cpu: float
    notes: list[ProcessNote]

    def count(self, counter: str) -> int:
        """Return the sum of a counter over the process and its descendants."""
        return sum(getattr(note, counter) for note in self.notes)


@dataclass(frozen=True)
class _Running:
    """Counters while the trial's processes run. `cpu`: of each process of the trial, process id → CPU seconds."""

    cpu: list[dict[int, float]]
    threads: ThreadReadings | None


@dataclass
class _Slice:
    """What was read around a slice, or around the whole measured part: before it, when all was sent, and after it."""

    trees: list[list[_Tree]]
    running: list[_Running]
    machines: list[MachineReading]


class Rests:
    """Reads the trial's processes while they wait: warmed up, around each slice or the measured part, and at the end.

    Nothing is read while a request is in flight: reading smaps takes the lock of the process's memory map.
    """

    def __init__(self, processes: TrialProcesses, folder: Path) -> None:
        self._processes = processes
        self._folder = folder
        self._idle = [usage.footprint(process.pids(), {process.pid}) for process in processes.each]
        trees = self._trees([[process.pid] for process in processes.each])
        self._settled = [_settle({tree.pid, *(note.pid for note in tree.notes)}) for tree in trees]
        self._slices: list[_Slice] = []

    def start(self) -> None:
        """Read before the measured part, or before a slice of it."""
        pids = [process.pids() for process in self._processes.each]
        self._slices.append(_Slice([self._trees(pids)], [_running(pids)], [noise.machine()]))

    def sent(self) -> None:
        """Read when all requests have ended, and all processes that sent them should still be alive."""
        self._slices[-1].running.append(_running([process.pids() for process in self._processes.each]))

    def last_sent(self) -> None:
        """Read the same after the last slice, and the memory."""
        self.sent()
        self._peak = [
            usage.footprint(process.pids(), {process.pid, *(note.pid for note in _notes(self._folder, process.shard))})
            for process in self._processes.each
        ]

    def over(self) -> None:
        """Read after a slice, or after the measured part: until the next one, the machine does something else."""
        self._slices[-1].machines.append(noise.machine())
        self._slices[-1].trees.append(self._trees([process.pids() for process in self._processes.each]))

    def end(self, done: Sequence[Done]) -> tuple[list[Outcome], Disturbance]:
        """Return the outcome of each process, and the disturbance of all."""
        machines = [(one.machines[0], one.machines[1]) for one in self._slices]
        threads = [(one.running[0].threads, one.running[1].threads) for one in self._slices]
        return [self._outcome(shard, one) for shard, one in enumerate(done)], noise.disturbance(machines, threads)

    def _outcome(self, shard: int, done: Done) -> Outcome:
        """Return the outcome of one process, with the processes that it started."""
        trees = [(one.trees[0][shard], one.trees[1][shard]) for one in self._slices]
        before, after = trees[0][0], trees[-1][1]

        def grown(counter: str) -> int:
            return sum(last.count(counter) - first.count(counter) for first, last in trees)

        used: dict[int, float] = {}
        for one in self._slices:
            start, sent = one.running
            for pid, seconds in sent.cpu[shard].items():
                used[pid] = used.get(pid, 0.0) + seconds - start.cpu[shard].get(pid, 0.0)
        children_cpu = sum(last.children_cpu - first.children_cpu for first, last in trees)
        idle, peak, settled = self._idle[shard], self._peak[shard], self._settled[shard]
        idle_bytes = None if idle is None else idle.now
        opened, own_peak = grown("opened"), done.peak_rss_bytes
        own_peak += sum(_peak_rss(note) for note in after.notes if note.pid != after.pid)
        startup = [note.began - done.began for note in after.notes] if len(after.notes) > 1 else []
        return Outcome(
            began=done.began,
            wall_seconds=done.wall_seconds,
            cpu_seconds=max(0.0, done.cpu_seconds + children_cpu),
            idle_rss_bytes=settled,
            peak_rss_bytes=max(own_peak, settled),  # the kernel counts by threads: its peak may lack a page
            connections_begun=grown("connections"),
            connections_opened=opened,
            connections_reopened=after.count("opened") - before.count("opened") - opened,
            connections_in_all=after.count("opened"),
            processes=max(1, len(after.notes)),
            idle_pss_bytes=idle_bytes,
            peak_pss_bytes=None if peak is None else max(peak.peak, idle_bytes or 0),
            extended=done.extended,
            callers=max(1, after.count("callers")),
            gil=done.gil,
            fullest_cpu_seconds=max([0.0, *used.values()]) if used else None,
            slices=tuple(seconds for _, seconds in done.slices),
            startup_seconds=max([0.0, *startup]),
        )

    def _trees(self, pids: Sequence[Sequence[int]]) -> list[_Tree]:
        """Return each process with its descendants. `pids`: their ids, for each process of the trial."""
        return [
            _Tree(one.pid, sum(map(_cpu_with_ended, descendants)), _notes(self._folder, one.shard))
            for one, (_, *descendants) in zip(self._processes.each, pids, strict=True)
        ]


def _notes(folder: Path, shard: int) -> list[ProcessNote]:
    return [note for note in process_notes(folder) if note.shard == shard]


def _running(pids: Sequence[Sequence[int]]) -> _Running:
    cpu = [{pid: used for pid in each if (used := usage.cpu_seconds_of(pid)) is not None} for each in pids]
    return _Running(cpu, noise.threads(chain.from_iterable(pids)))


def _cpu_with_ended(pid: int) -> float:
    """Return the CPU seconds of a process and of its own children that have ended; 0 if it has ended itself.

    Then the figure of the process that waited for it includes it.
    """
    try:
        own, system, *reaped = psutil.Process(pid).cpu_times()[:4]
    except psutil.NoSuchProcess:
        return 0.0
    return (usage.cpu_seconds_of(pid) or own + system) + sum(reaped)


def _settle(pids: Iterable[int]) -> int:
    """Return the resident bytes of the processes, and let the kernel count their peak anew from this moment.

    Only Linux can reset a peak (proc(5), clear_refs). Otherwise the peak includes the warm-up.
    """
    resident = 0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):  # a process that has ended holds no memory
            resident += psutil.Process(pid).memory_info().rss
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return resident


def _peak_rss(note: ProcessNote) -> int:
    """Return the peak memory of a pool's process in bytes: from its own note, or from the kernel while it is alive."""
    if note.peak_rss_bytes:
        return note.peak_rss_bytes
    with contextlib.suppress(OSError):  # it has ended meanwhile, or this is not Linux
        return usage.high_water(Path(f"/proc/{note.pid}/status").read_text(encoding="ascii"))
    return 0
