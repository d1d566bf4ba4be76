"""Measuring one trial from the parent process: what happened, what it cost, and its samples."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import psutil

from clientlab import strategies
from clientlab.measuring import memory, noise, usage
from clientlab.measuring.context import TrialContext
from clientlab.measuring.external_tool import ToolNote, read_note
from clientlab.measuring.memory import Footprint
from clientlab.measuring.noise import Disturbance
from clientlab.measuring.trial_handle import PATIENCE, TrialHandle
from clientlab.samples.log import ProcessNote, process_notes
from clientlab.samples.log_reader import FinishedCounter, Samples, read


@dataclass(frozen=True)
class Outcome:
    """Figures of the measured part of a trial, in seconds and bytes.

    `began` is on the monotonic clock. `processes` counts the processes that sent requests. `connections_in_all`:
    connections opened, those of a warm-up that stay open included. Memory at the end of the warm-up and at its peak:
    `rss` as sums of resident sets, `pss` with shared pages in proportion and without the sample log, which is None
    where the system does not count it.
    """

    began: float
    wall_seconds: float
    cpu_seconds: float
    idle_rss_bytes: int
    peak_rss_bytes: int
    connections_begun: int
    connections_opened: int
    connections_in_all: int
    processes: int
    idle_pss_bytes: int | None = None
    peak_pss_bytes: int | None = None
    disturbance: Disturbance | None = None


@dataclass(frozen=True)
class Measurement:
    """A finished trial. `tool`: what an external tool reported; None where the recorder timed the requests."""

    outcome: Outcome
    samples: Samples
    tool: ToolNote | None = None


def _nothing(*_arguments: object) -> None:
    """Default callback."""


def measure(
    context: TrialContext,
    *,
    on_start: Callable[[], None] = _nothing,
    on_end: Callable[[], None] = _nothing,
    on_progress: Callable[[int], None] = _nothing,
    patience: float = PATIENCE,
) -> Measurement:
    """Run one trial in a fresh interpreter and read its samples from `context.folder`.

    The trial waits while `on_start` runs, just before the measured part, and while `on_end` runs, just after it.
    `on_progress` gets the number of finished requests, every half second. `patience`: seconds beyond the workload's
    timeout after which a trial without progress counts as stalled.

    Raises TrialFailed when the strategy cannot do its workload. After any other exception, KeyboardInterrupt and
    those of the callbacks included, no process of the trial is left.
    """
    folder = Path(context.folder)
    counter = FinishedCounter(folder)
    stall_seconds = context.workload.timeout + patience

    def progress() -> int:
        finished = counter.count()
        on_progress(finished)
        return finished

    with TrialHandle(context) as process:
        process.event("ready", progress, stall_seconds)
        # An external tool reports nothing before its end, and enforces the workload's timeout itself.
        has_tool = bool(strategies.client_spec(context.strategy.client).program)
        rests = _Rests(process, folder)
        on_start()
        before = _Tree.of(process, folder)
        idle = _settle({process.pid, *(note.pid for note in before.notes)})
        rests.start()
        process.resume()
        process.event("sent", progress, math.inf if has_tool else stall_seconds)
        rests.sent()
        process.resume()
        done = process.event("done", progress, stall_seconds)
        rests.end()
        after = _Tree.of(process, folder)
        on_end()
        peak = done["peak_rss_bytes"] + sum(_peak(note) for note in after.notes if note.pid != process.pid)
        process.resume()
        process.wait()
    outcome = replace(_outcome(done, before, after, idle, peak), **rests.figures())
    tool = read_note(folder)
    if tool is not None:  # by its own clock: ours also held its start and the reading of its report
        outcome = replace(outcome, wall_seconds=tool.wall_seconds, cpu_seconds=tool.cpu_seconds)
    return Measurement(outcome, read(folder, outcome.began), tool)


class _Rests:
    """Memory and noise, read while the trial's process waits: warmed up, after its last response, and when it is done.

    Nothing is read while a request is in flight: reading smaps takes the lock of the process's memory map.
    """

    def __init__(self, process: TrialHandle, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._idle = memory.footprint(process.pids(), {process.pid})
        self._peak: Footprint | None = None

    def start(self) -> None:
        """The measured part begins next."""
        self._first_threads = noise.threads(self._process.pids())
        self._machine = noise.machine()

    def sent(self) -> None:
        """All requests have ended, and all processes that sent them should be alive."""
        pids = self._process.pids()
        self._last_threads = noise.threads(pids)
        self._peak = memory.footprint(pids, {self._process.pid, *(note.pid for note in process_notes(self._folder))})

    def end(self) -> None:
        """The measured part is over."""
        self._disturbance = noise.disturbance(self._machine, noise.machine(), self._first_threads, self._last_threads)

    def figures(self) -> dict[str, Any]:
        """Fields of the outcome."""
        idle = None if self._idle is None else self._idle.now
        peak = None if self._peak is None else max(self._peak.peak, idle or 0)
        return {"idle_pss_bytes": idle, "peak_pss_bytes": peak, "disturbance": self._disturbance}


@dataclass(frozen=True)
class _Tree:
    """A trial's processes at one moment: CPU seconds of the living descendants, and the notes of those that sent."""

    children_cpu: float
    notes: list[ProcessNote]

    @classmethod
    def of(cls, process: TrialHandle, folder: Path) -> Self:
        return cls(process.children_cpu(), process_notes(folder))

    def count(self, counter: str) -> int:
        """Sum of a counter over all processes."""
        return sum(getattr(note, counter) for note in self.notes)


def _outcome(done: dict[str, Any], before: _Tree, after: _Tree, idle: int, peak: int) -> Outcome:
    """The outcome from the figures of the event ``done``, and from the processes before and after."""
    return Outcome(
        began=done["began"],
        wall_seconds=done["wall_seconds"],
        cpu_seconds=max(0.0, done["cpu_seconds"] + after.children_cpu - before.children_cpu),
        idle_rss_bytes=idle,
        peak_rss_bytes=max(peak, idle),  # the kernel counts by threads: its peak may lack a page of the resident set
        connections_begun=after.count("connections") - before.count("connections"),
        connections_opened=after.count("opened") - before.count("opened"),
        connections_in_all=after.count("opened"),
        processes=max(1, len(after.notes)),
    )


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
    status = Path(f"/proc/{note.pid}/status")
    return usage.high_water(status.read_text(encoding="ascii")) if status.exists() else 0
