"""What the parent reads of a trial's processes while they wait, and their outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import psutil

from clientlab.machine import usage
from clientlab.observing import noise
from clientlab.observing.noise import MachineReading, ThreadReadings
from clientlab.observing.process_handle import ProcessHandle, TrialProcesses
from clientlab.results.trial import Disturbance, Outcome
from clientlab.trial.context import Done
from clientlab.trial.sample_log import MAPPED_FILES, ProcessNote, process_notes

_Reading = TypeVar("_Reading")


class Rests:
    """Reads the trial's processes while they wait.

    They do when they are warmed up, around each slice or the measured part, and at the
    end. Nothing is read while a request is in flight: reading smaps takes the lock of
    the process's memory map.
    """

    def __init__(self, processes: TrialProcesses, folder: Path) -> None:
        self._processes = processes
        self._each = [_ProcessReadings(process, folder) for process in processes.each]
        self._machines: list[MachineReading] = []
        self._threads: list[ThreadReadings | None] = []

    def start(self) -> None:
        """Read before the measured part, or before a slice of it."""
        for process in self._each:
            process.start()
        self._threads.append(noise.read_threads(self._processes.pids()))
        self._machines.append(noise.read_machine())

    def sent(self, *, is_last: bool) -> None:
        """Read when all requests have ended, and the processes that sent them live."""
        for process in self._each:
            process.sent(is_last=is_last)
        self._threads.append(noise.read_threads(self._processes.pids()))

    def over(self) -> None:
        """Read after a slice, or after the measured part.

        Until the next one, the machine does something else.
        """
        self._machines.append(noise.read_machine())
        for process in self._each:
            process.over()

    def end(
        self, done: Sequence[Done], lock_waits: float | None
    ) -> tuple[list[Outcome], Disturbance]:
        """Return the outcome of each process, and the disturbance of all."""
        outcomes = [
            process.make_outcome(figures, lock_waits)
            for process, figures in zip(self._each, done, strict=True)
        ]
        machines = _pair_up(self._machines)
        threads = _pair_up(self._threads)
        return outcomes, noise.compute_disturbance(machines, threads)


def _pair_up(readings: Sequence[_Reading]) -> list[tuple[_Reading, _Reading]]:
    """Return the reading before each slice with the one after it."""
    before = readings[::2]
    after = readings[1::2]
    return list(zip(before, after, strict=True))


class _ProcessReadings:
    """Reads one process of the trial with its descendants.

    It sums up how much each counter grows over the slices.
    """

    def __init__(self, process: ProcessHandle, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._idle = usage.read_footprint(
            process.pids(), {process.pid}, left_out=MAPPED_FILES
        )
        self._peak: usage.Footprint | None = None
        self._notes = self._read_notes()
        self._settled_rss = 0
        for pid in self._find_senders():
            with contextlib.suppress(psutil.NoSuchProcess):  # then it holds no memory
                self._settled_rss += psutil.Process(pid).memory_info().rss
            # Linux counts the peak anew from now on (proc(5), clear_refs).
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
        self._opened_before: int | None = None
        self._begun = 0
        self._opened = 0
        self._children_cpu = 0.0
        self._started_cpu: dict[int, float] = {}
        self._used_cpu: dict[int, float] = {}
        """Process id → CPU seconds in all slices, of those alive at their ends."""

    def start(self) -> None:
        pids = self._process.pids()
        self._add_tree(-1, pids)
        if self._opened_before is None:
            self._opened_before = -self._opened  # `_add_tree` has subtracted them
        self._started_cpu = _read_cpu(pids)

    def sent(self, *, is_last: bool) -> None:
        pids = self._process.pids()
        for pid, seconds in _read_cpu(pids).items():
            used = max(0.0, seconds - self._started_cpu.get(pid, 0.0))
            self._used_cpu[pid] = self._used_cpu.get(pid, 0.0) + used
        if is_last:
            self._notes = self._read_notes()
            self._peak = usage.read_footprint(
                pids, self._find_senders(), left_out=MAPPED_FILES
            )

    def over(self) -> None:
        self._add_tree(1, self._process.pids())

    def make_outcome(self, done: Done, lock_waits: float | None) -> Outcome:
        notes = self._notes
        of_pool = [note for note in notes if note.pid != self._process.pid]
        # Each process of a pool has a steady part of its own.
        steady_cpu = None if of_pool else done.steady_cpu_seconds
        steady_requests = None if of_pool else done.steady_requests
        idle_pss = None if self._idle is None else self._idle.now
        peak_pss = None
        if self._peak is not None:
            peak_pss = max(self._peak.peak, idle_pss or 0)
        last_began = max([note.began for note in notes], default=0.0)
        startup = 0.0
        if len(notes) > 1:
            startup = max(0.0, last_began - done.began)
        opened_in_all = sum(note.opened for note in notes)
        opened_before = self._opened_before or 0
        callers = sum(note.callers for note in notes)
        return Outcome(
            began=done.began,
            wall_seconds=done.wall_seconds,
            slices=tuple(seconds for _, seconds in done.slices),
            extended=done.extended,
            gil=done.gil,
            lock_waits=lock_waits,
            cpu_seconds=max(0.0, done.cpu_seconds + self._children_cpu),
            steady_cpu_seconds=steady_cpu,
            steady_requests=steady_requests,
            fullest_cpu_seconds=max(self._used_cpu.values(), default=None),
            peak_rss_bytes=self._sum_peak_rss(done, of_pool),
            idle_pss_bytes=idle_pss,
            peak_pss_bytes=peak_pss,
            connections_begun=self._begun,
            connections_opened=self._opened,
            connections_in_all=opened_in_all,
            connections_reopened=opened_in_all - opened_before - self._opened,
            processes=max(1, len(notes)),
            callers=max(1, callers),
            import_seconds=done.import_seconds or None,
            startup_seconds=startup,
        )

    def _sum_peak_rss(self, done: Done, of_pool: Iterable[ProcessNote]) -> int:
        peak = done.peak_rss_bytes
        for note in of_pool:
            # It has ended meanwhile, or this is not Linux.
            with contextlib.suppress(OSError):
                peak += note.peak_rss_bytes or usage.peak_rss_of(note.pid)
        # The kernel's peak may miss a page of a thread.
        return max(peak, self._settled_rss)

    def _add_tree(self, sign: int, pids: Sequence[int]) -> None:
        """Add or subtract what the descendants and the notes count now.

        The difference is the growth.
        """
        self._notes = self._read_notes()
        children_cpu = sum(map(_read_cpu_with_ended, pids[1:]))
        begun = sum(note.connections for note in self._notes)
        opened = sum(note.opened for note in self._notes)
        self._children_cpu += sign * children_cpu
        self._begun += sign * begun
        self._opened += sign * opened

    def _read_notes(self) -> list[ProcessNote]:
        return [
            note
            for note in process_notes(self._folder)
            if note.shard == self._process.shard
        ]

    def _find_senders(self) -> set[int]:
        return {self._process.pid, *(note.pid for note in self._notes)}


def _read_cpu(pids: Iterable[int]) -> dict[int, float]:
    readings = {pid: usage.cpu_seconds_of(pid) for pid in pids}
    return {pid: used for pid, used in readings.items() if used is not None}


def _read_cpu_with_ended(pid: int) -> float:
    """Return the CPU seconds of a process and its ended children.

    Return 0 if it has ended: then its parent's include them.
    """
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    user, system, *of_ended = times[:4]
    own = usage.cpu_seconds_of(pid) or user + system
    return own + sum(of_ended)
