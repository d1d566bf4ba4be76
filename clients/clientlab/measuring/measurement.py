"""Measuring one trial from the parent process: what happened, what it cost, and its samples."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import psutil

from clientlab import strategies
from clientlab.measuring import memory, noise, usage
from clientlab.measuring.context import WARM_UP_FOLDER, TrialContext
from clientlab.measuring.external_tool import ToolNote, read_note
from clientlab.measuring.interpreter import OWN, Interpreter
from clientlab.measuring.limits import Limits
from clientlab.measuring.memory import Footprint
from clientlab.measuring.noise import Disturbance
from clientlab.measuring.trial_handle import PATIENCE, TrialFailed, TrialHandle
from clientlab.samples.log import ProcessNote, process_notes
from clientlab.samples.log_reader import FinishedCounter, Samples, read
from clientlab.workload.load import longest_pause


@dataclass(frozen=True)
class Outcome:
    """Figures of the measured part of a trial, in seconds and bytes.

    `began` is on the monotonic clock. `processes` counts the processes that sent requests, and `callers` the clients
    that they made. `connections_in_all`: connections opened, those of a warm-up that stay open included. `gil`: whether
    the trial's process had a GIL at its end. Memory at the end of the warm-up and at its peak:
    `rss` as sums of resident sets, `pss` with shared pages in proportion and without the sample log, which is None
    where the system does not count it. `extended`: whether requests were begun after the workload's duration, because
    too few had begun; None without a duration.
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
    extended: bool | None = None
    callers: int = 1
    gil: bool = True


@dataclass(frozen=True)
class Measurement:
    """A finished trial. `tool`: what an external tool reported; None where the recorder timed the requests."""

    outcome: Outcome
    samples: Samples
    tool: ToolNote | None = None


def _nothing(*_arguments: object) -> None:
    """Default callback."""


def measure(  # noqa: PLR0913 - a trial's callbacks and limits
    context: TrialContext,
    *,
    interpreter: Interpreter = OWN,
    on_start: Callable[[], None] = _nothing,
    on_resume: Callable[[], None] = _nothing,
    on_end: Callable[[], None] = _nothing,
    on_progress: Callable[[int], None] = _nothing,
    on_failures: Callable[[int], None] = _nothing,
    patience: float = PATIENCE,
    deadline: float = math.inf,
    cpus: Collection[int] = (),
) -> Measurement:
    """Run one trial in a fresh process of `interpreter` and read its samples from `context.folder`.

    The trial waits while `on_start` runs, just before the measured part, and while `on_end` runs, just after it.
    `on_resume` is called in the moment before the measured part begins, when everything else has been read.
    `on_progress` gets the number of finished requests, every half second. Until the last of them has ended,
    `on_failures` gets the number of requests that failed since the last one that succeeded. `patience`: seconds beyond
    the workload's timeout after which a trial without progress counts as stalled, unless it has a `request_limit`.
    `deadline`: seconds from the start of its process after which the trial has failed. `cpus`: the only ones that the
    trial's processes may use; without any, those of this process.

    Raises TrialFailed when the strategy cannot do its workload, or reaches one of its limits. After any exception,
    KeyboardInterrupt and those of the callbacks included, no process of the trial is left.
    """
    folder = Path(context.folder)
    with TrialHandle(context, interpreter, cpus) as process:
        limits = Limits(context, process.pid, patience)
        stall_seconds = longest_pause(context.workload) + max(context.workload.timeout + patience, limits.seconds)
        progress = _Progress(folder, on_progress, on_failures, deadline, limits.check)
        process.event("ready", progress.look, stall_seconds)
        # An external tool reports nothing before its end, and enforces the workload's timeout itself.
        has_tool = bool(strategies.client_spec(context.strategy.client).program)
        rests = _Rests(process, folder)
        on_start()
        before = _Tree.of(process, folder)
        idle = _settle({process.pid, *(note.pid for note in before.notes)})
        rests.start()
        limits.begin("measured", counted=not has_tool)
        on_resume()
        process.resume()
        process.event("sent", progress.look, math.inf if has_tool else stall_seconds)
        rests.sent()
        limits.begin("end")
        process.resume()
        done = process.event("done", progress.finished, stall_seconds)
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


class _Progress:
    """How far the requests of a trial are, as its sample logs show it: that of the trial, and that of its warm-up."""

    def __init__(
        self, folder: Path, on_progress: Callable[[int], None], on_failures: Callable[[int], None], deadline: float,
        check: Callable[[int, int], None] = _nothing,
    ) -> None:  # fmt: skip
        self._counter = FinishedCounter(folder)
        self._warm_up = FinishedCounter(folder / WARM_UP_FOLDER)
        self._on_progress = on_progress
        self._on_failures = on_failures
        self._deadline = deadline
        self._check = check
        self._began = time.monotonic()
        self._before = (0, 0)
        self._in_a_row = 0

    def finished(self) -> int:
        """Number of finished requests, those of the warm-up included. Raises TrialFailed after the deadline."""
        finished, warmed_up = self._counter.count(), self._warm_up.count()
        self._check(finished, warmed_up)
        if time.monotonic() - self._began > self._deadline:
            raise TrialFailed(
                f"not done within its deadline of {self._deadline:,g} s, with {finished:,} requests finished; "
                "choose another with --deadline, or `deadline` in the workload's table"
            )
        self._on_progress(finished)
        return finished + warmed_up

    def look(self) -> int:
        """The same, and `on_failures` is called. A success in the last half second ends a row of failures."""
        finished = self.finished()
        failed = self._counter.failed + self._warm_up.failed
        fresh, fresh_failed = finished - self._before[0], failed - self._before[1]
        self._in_a_row = self._in_a_row + fresh_failed if fresh == fresh_failed else 0
        self._before = finished, failed
        self._on_failures(self._in_a_row)
        return finished


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
        extended=done["extended"],
        callers=max(1, after.count("callers")),
        gil=done["gil"],
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
    with contextlib.suppress(OSError):  # it has ended meanwhile, or this is not Linux
        return usage.high_water(Path(f"/proc/{note.pid}/status").read_text(encoding="ascii"))
    return 0
