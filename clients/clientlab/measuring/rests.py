"""What is read of a trial's processes while they wait, and the outcome that follows from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import psutil

from clientlab.measuring import noise, usage
from clientlab.measuring.context import Done
from clientlab.measuring.noise import Disturbance, MachineReading, ThreadReadings
from clientlab.measuring.outcome import Outcome
from clientlab.measuring.trial_processes import TrialProcesses
from clientlab.measuring.usage import Footprint
from clientlab.samples.log import ProcessNote, process_notes


class Rests:
    """What is read while the trial's processes wait: warmed up, around each slice or the measured part, and at the end.

    Nothing is read while a request is in flight: reading smaps takes the lock of the process's memory map.
    """

    def __init__(self, processes: TrialProcesses, folder: Path) -> None:
        self._processes = processes
        self._folder = folder
        self._idle = [usage.footprint(process.pids(), {process.pid}) for process in processes.each]
        trees = _trees(processes, [[process.pid] for process in processes.each], folder)
        self._settled = [_settle({tree.pid, *(note.pid for note in tree.notes)}) for tree in trees]
        self._before: list[_Reading] = []
        self._sent: list[_Running] = []
        self._after: list[tuple[MachineReading, list[_Tree]]] = []

    def start(self) -> None:
        """The measured part begins next, or a slice of it."""
        pids = [process.pids() for process in self._processes.each]
        trees = _trees(self._processes, pids, self._folder)
        self._before.append(_Reading(trees, _running(pids), noise.machine()))

    def sent(self) -> None:
        """All requests of it have ended, and all processes that sent them should be alive."""
        self._sent.append(_running([process.pids() for process in self._processes.each]))

    def last_sent(self) -> None:
        """The same of the last slice: the memory is read, too."""
        self.sent()
        self._peak = [
            usage.footprint(process.pids(), {process.pid, *(note.pid for note in _notes(self._folder, process.shard))})
            for process in self._processes.each
        ]

    def over(self) -> None:
        """The slice is over, or the measured part: until the next one, the machine does something else."""
        machine, pids = noise.machine(), [process.pids() for process in self._processes.each]
        self._after.append((machine, _trees(self._processes, pids, self._folder)))

    def end(self, done: Sequence[Done]) -> tuple[list[Outcome], Disturbance]:
        """The outcome of each process, and the disturbance of all."""
        found = noise.disturbance(
            [(before.machine, after) for before, (after, _) in zip(self._before, self._after, strict=True)],
            [(before.running.threads, sent.threads) for before, sent in zip(self._before, self._sent, strict=True)],
        )
        outcomes = []
        for index, memories in enumerate(zip(self._settled, self._idle, self._peak, strict=True)):
            trees = [
                (before.trees[index], after[index])
                for before, (_, after) in zip(self._before, self._after, strict=True)
            ]
            fullest = _fullest(
                (before.running.cpu[index], sent.cpu[index])
                for before, sent in zip(self._before, self._sent, strict=True)
            )
            outcomes.append(replace(_outcome(done[index], trees, memories), fullest_cpu_seconds=fullest))
        return outcomes, found


@dataclass(frozen=True)
class _Running:
    """Counters of the trial's threads, and process id → CPU seconds for each of its processes and their children."""

    threads: ThreadReadings | None
    cpu: list[dict[int, float]]


def _running(pids: Sequence[Sequence[int]]) -> _Running:
    """`pids`: of each process of the trial, it and its living descendants."""
    cpu = [{pid: used for pid in each if (used := usage.cpu_seconds_of(pid)) is not None} for each in pids]
    return _Running(noise.threads(chain.from_iterable(pids)), cpu)


def _fullest(readings: Iterable[tuple[dict[int, float], dict[int, float]]]) -> float | None:
    """CPU seconds of the process that used most, over all slices; None where none is readable."""
    grown: dict[int, float] = {}
    for before, after in readings:
        for pid, seconds in after.items():
            grown[pid] = grown.get(pid, 0.0) + seconds - before.get(pid, 0.0)
    return max(0.0, *grown.values()) if grown else None


@dataclass(frozen=True)
class _Reading:
    """Before the measured part, or a slice of it."""

    trees: list[_Tree]
    running: _Running
    machine: MachineReading


@dataclass(frozen=True)
class _Tree:
    """A trial's process at one moment: CPU seconds of its living descendants, and the notes of those that sent."""

    pid: int
    children_cpu: float
    notes: list[ProcessNote]

    def count(self, counter: str) -> int:
        """Sum of a counter over the process and its descendants."""
        return sum(getattr(note, counter) for note in self.notes)


def _trees(processes: TrialProcesses, pids: Sequence[Sequence[int]], folder: Path) -> list[_Tree]:
    """`pids`: of each process of the trial, it and its living descendants."""
    return [
        _Tree(one.pid, sum(map(_cpu_with_ended, descendants)), _notes(folder, one.shard))
        for one, (_, *descendants) in zip(processes.each, pids, strict=True)
    ]


def _cpu_with_ended(pid: int) -> float:
    """CPU seconds so far of a process and of its own children that have ended; 0 if it has ended itself.

    Then the figure of the process that waited for it includes it.
    """
    try:
        own, system, *reaped = psutil.Process(pid).cpu_times()[:4]
    except psutil.NoSuchProcess:
        return 0.0
    return (usage.cpu_seconds_of(pid) or own + system) + sum(reaped)


def _notes(folder: Path, shard: int) -> list[ProcessNote]:
    return [note for note in process_notes(folder) if note.shard == shard]


def _outcome(
    done: Done, trees: Sequence[tuple[_Tree, _Tree]], memories: tuple[int, Footprint | None, Footprint | None]
) -> Outcome:
    """The outcome of one process, with the processes that it has started.

    `trees`: before and after each slice. `memories`: resident bytes after the warm-up, the memory then, and that at the
    end.
    """
    (first, _), (_, after) = trees[0], trees[-1]
    settled, idle, last = memories
    opened = _grown(trees, "opened")
    own = done.peak_rss_bytes + sum(_peak(note) for note in after.notes if note.pid != after.pid)
    idle_bytes = None if idle is None else idle.now
    return Outcome(
        began=done.began,
        wall_seconds=done.wall_seconds,
        cpu_seconds=max(
            0.0, done.cpu_seconds + sum(after.children_cpu - before.children_cpu for before, after in trees)
        ),
        idle_rss_bytes=settled,
        peak_rss_bytes=max(own, settled),  # the kernel counts by threads: its peak may lack a page of the resident set
        connections_begun=_grown(trees, "connections"),
        connections_opened=opened,
        connections_reopened=after.count("opened") - first.count("opened") - opened,
        connections_in_all=after.count("opened"),
        processes=max(1, len(after.notes)),
        idle_pss_bytes=idle_bytes,
        peak_pss_bytes=None if last is None else max(last.peak, idle_bytes or 0),
        extended=done.extended,
        callers=max(1, after.count("callers")),
        gil=done.gil,
        slices=tuple(seconds for _, seconds in done.slices),
        startup_seconds=max(0.0, *(note.began - done.began for note in after.notes)) if len(after.notes) > 1 else 0.0,
    )


def _grown(trees: Sequence[tuple[_Tree, _Tree]], counter: str) -> int:
    return sum(after.count(counter) - before.count(counter) for before, after in trees)


def _settle(pids: Iterable[int]) -> int:
    """Resident bytes of the processes now. Their peak memory is counted anew from this moment.

    Only Linux can reset a peak (proc(5), clear_refs). Without that, or without the permission, the peak includes the
    warm-up.
    """
    resident = 0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):  # a process that has ended holds no memory
            resident += psutil.Process(pid).memory_info().rss
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return resident


def _peak(note: ProcessNote) -> int:
    """Peak memory of a pool process in bytes: from its own note, or from the kernel while it is alive."""
    if note.peak_rss_bytes:
        return note.peak_rss_bytes
    with contextlib.suppress(OSError):  # it has ended meanwhile, or this is not Linux
        return usage.high_water(Path(f"/proc/{note.pid}/status").read_text(encoding="ascii"))
    return 0
