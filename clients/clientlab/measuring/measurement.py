"""Measuring one trial from the parent process: what happened, what it cost, and its samples."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from pydantic import ConfigDict

from clientlab import strategies
from clientlab.bounded_numbers import Count, NotNegative, Positive
from clientlab.measuring import noise, usage
from clientlab.measuring.context import WARM_UP_FOLDER, Done, TrialContext
from clientlab.measuring.limits import Limits
from clientlab.measuring.lock_waits import LockWaits
from clientlab.measuring.noise import Disturbance, over_known
from clientlab.measuring.tool_trials import ToolNote, read_note
from clientlab.measuring.trial_handle import OWN, PATIENCE, Interpreter, TrialFailed
from clientlab.measuring.trial_processes import TrialProcesses
from clientlab.measuring.usage import Footprint
from clientlab.samples.log import ProcessNote, process_notes
from clientlab.samples.log_reader import FinishedCounter, Samples, read
from clientlab.workload.load import longest_pause

START_AHEAD = 0.05
"""Seconds before the start of a divided trial at which the machine's counters are read, and each process is told."""


@dataclass(frozen=True)
class Outcome:
    """Figures of the measured part of a trial, in seconds and bytes.

    `began` is on the monotonic clock. `processes` counts the processes that sent requests, and `callers` the clients
    that they made. `connections_in_all`: connections opened, those of a warm-up that stay open included. `gil`: whether
    the trial's process had a GIL at its end. Memory at the end of the warm-up and at its peak:
    `rss` as sums of resident sets, `pss` with shared pages in proportion and without the sample log, which is None
    where the system does not count it. `extended`: whether requests were begun after the workload's duration, because
    too few had begun; None without a duration. `fullest_cpu_seconds`: CPU time of the process that used most, until the
    last response; None where it is not readable. `startup_seconds`: until the last process that sent requests had
    begun; 0 if all had begun before. `lock_waits`: share of the client's threads that waited for a lock, of those that
    were looked at; None: none was.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)  # a worker sends it to the lab

    began: NotNegative
    wall_seconds: Positive
    cpu_seconds: NotNegative
    idle_rss_bytes: Count | None
    peak_rss_bytes: Count | None
    connections_begun: Count
    connections_opened: Count
    connections_in_all: Count
    processes: Count
    idle_pss_bytes: Count | None = None
    peak_pss_bytes: Count | None = None
    disturbance: Disturbance | None = None
    extended: bool | None = None
    callers: Count = 1
    gil: bool = True
    fullest_cpu_seconds: NotNegative | None = None
    startup_seconds: NotNegative = 0.0
    lock_waits: NotNegative | None = None


@dataclass(frozen=True)
class Measurement:
    """A finished trial. `tool`: what an external tool reported; None where the recorder timed the requests.

    `by_shard`: the outcome of each process of a divided trial, without the disturbance of the machine.
    """

    outcome: Outcome
    samples: Samples
    tool: ToolNote | None = None
    by_shard: tuple[Outcome, ...] = ()


def _nothing(*_arguments: object) -> None:
    """Default callback."""


def measure(  # noqa: PLR0913 - a trial's callbacks and limits
    context: TrialContext,
    *,
    interpreter: Interpreter = OWN,
    on_start: Callable[[], float | None] = _nothing,
    on_end: Callable[[], None] = _nothing,
    on_progress: Callable[[int], None] = _nothing,
    on_failures: Callable[[int], None] = _nothing,
    patience: float = PATIENCE,
    deadline: float = math.inf,
    cpus: Collection[int] = (),
) -> Measurement:
    """Run one trial in fresh processes of `interpreter`, one for each shard, and read its samples.

    The trial waits while `on_start` runs, just before the measured part, and while `on_end` runs, just after it.
    `on_start` may return the moment at which the measured part begins, in seconds of the monotonic clock; by default
    it begins at once, and all shards of a divided trial at one moment. `on_progress` gets the number of finished
    requests, every half second. Until the last of them has ended, `on_failures` gets the number of requests that failed
    since the last one that succeeded. `patience`: seconds beyond the workload's timeout after which a trial without
    progress counts as stalled, unless it has a `request_limit`. `deadline`: seconds from the start of its processes
    after which the trial has failed. `cpus`: the only ones that the trial's processes may use; without any, those of
    this process.

    Raises TrialFailed when the strategy cannot do its workload, or reaches one of its limits. After any exception,
    KeyboardInterrupt and those of the callbacks included, no process of the trial is left.
    """
    folder = Path(context.folder)
    with TrialProcesses(context, interpreter, cpus) as processes:
        limits = Limits(context, [process.pid for process in processes.each], patience)
        stall_seconds = longest_pause(context.workload) + max(context.workload.timeout + patience, limits.seconds)
        progress = _Progress(folder, on_progress, on_failures, deadline, limits.check)
        processes.event("ready", progress.look, stall_seconds)
        # An external tool reports nothing before its end, and enforces the workload's timeout itself.
        has_tool = bool(strategies.client_spec(context.strategy.client).program)
        rests = _Rests(processes, folder)
        waits = LockWaits(processes.pids if _has_threads(context) else list)
        start = on_start()
        rests.start()
        limits.begin("measured", counted=not has_tool)
        start = _together(context) if start is None else start
        waits.until = (time.perf_counter() if start is None else start) + (context.workload.duration or math.inf)
        processes.resume(start)
        processes.event("sent", _each(waits.look, progress.look), math.inf if has_tool else stall_seconds)
        rests.sent()
        limits.begin("end")
        processes.resume()
        done = [Done(**figures) for figures in processes.event("done", progress.finished, stall_seconds)]
        parts, disturbance = rests.end(done)
        on_end()
        processes.resume()
        processes.wait()
    parts = [replace(part, lock_waits=waits.share) for part in parts]
    return _measurement(folder, parts, disturbance)


def _has_threads(context: TrialContext) -> bool:
    """Whether each request in flight has a thread. Threads of a native library wait for work as they do for a lock."""
    client = strategies.client_spec(context.strategy.client)
    return strategies.executor_spec(context.strategy.executor).threads and not client.own_threads


def _each(first: Callable[[], None], then: Callable[[], int]) -> Callable[[], int]:
    """A function that calls both, and returns what the second returns."""

    def call() -> int:
        first()
        return then()

    return call


def _together(context: TrialContext) -> float | None:
    """When the shards of this machine begin, on the monotonic clock; None for a trial that is not divided."""
    return time.perf_counter() + START_AHEAD if context.shards > 1 else None


def _measurement(folder: Path, parts: list[Outcome], disturbance: Disturbance) -> Measurement:
    """What the processes left in the trial's folder, beside the outcome of each."""
    outcome = replace(parts[0] if len(parts) == 1 else summed(parts), disturbance=disturbance)
    tool = read_note(folder)
    if tool is not None:
        outcome = _of_tool(outcome, tool)
    by_shard = tuple(parts) if len(parts) > 1 else ()
    return Measurement(outcome, read(folder, outcome.began), tool, by_shard)


def summed(parts: Sequence[Outcome]) -> Outcome:
    """The outcome of several processes or machines, from the first start to the last end, without disturbance."""
    first = min(one.began for one in parts)
    extended = [one.extended for one in parts]
    return Outcome(
        began=first,
        # The difference first: beside seconds since 1970, a short time would be rounded to nothing.
        wall_seconds=max(one.began - first + one.wall_seconds for one in parts),
        cpu_seconds=sum(one.cpu_seconds for one in parts),
        idle_rss_bytes=over_known(sum, (one.idle_rss_bytes for one in parts)),
        peak_rss_bytes=over_known(sum, (one.peak_rss_bytes for one in parts)),
        connections_begun=sum(one.connections_begun for one in parts),
        connections_opened=sum(one.connections_opened for one in parts),
        connections_in_all=sum(one.connections_in_all for one in parts),
        processes=sum(one.processes for one in parts),
        idle_pss_bytes=over_known(sum, (one.idle_pss_bytes for one in parts)),
        peak_pss_bytes=over_known(sum, (one.peak_pss_bytes for one in parts)),
        extended=None if None in extended else any(extended),
        callers=sum(one.callers for one in parts),
        gil=all(one.gil for one in parts),
        fullest_cpu_seconds=over_known(max, (one.fullest_cpu_seconds for one in parts)),
        startup_seconds=max(one.began - first + one.startup_seconds for one in parts),
        lock_waits=over_known(max, (one.lock_waits for one in parts)),
    )


def _of_tool(outcome: Outcome, tool: ToolNote) -> Outcome:
    """The outcome by the tool's own clock: ours also held its start and the reading of its report.

    The memory is that of the trial's process, and not of the tool, so it is unknown.
    """
    return replace(
        outcome,
        wall_seconds=tool.wall_seconds,
        cpu_seconds=tool.cpu_seconds,
        fullest_cpu_seconds=None,
        idle_rss_bytes=None,
        peak_rss_bytes=None,
        idle_pss_bytes=None,
        peak_pss_bytes=None,
    )


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
    """What is read while the trial's processes wait: warmed up, after their last response, and when they are done.

    Nothing is read while a request is in flight: reading smaps takes the lock of the process's memory map.
    """

    def __init__(self, processes: TrialProcesses, folder: Path) -> None:
        self._processes = processes
        self._folder = folder
        self._idle = [usage.footprint(process.pids(), {process.pid}) for process in processes.each]

    def start(self) -> None:
        """The measured part begins next."""
        self._before = _trees(self._processes, self._folder)
        self._settled = [_settle({tree.pid, *(note.pid for note in tree.notes)}) for tree in self._before]
        self._cpu = self._processes.cpu_by_process()
        self._first_threads = noise.threads(self._processes.pids())
        self._machine = noise.machine()

    def sent(self) -> None:
        """All requests have ended, and all processes that sent them should be alive."""
        self._last_threads = noise.threads(self._processes.pids())
        self._fullest = [
            max((seconds - before.get(pid, 0.0) for pid, seconds in now.items()), default=None)
            for before, now in zip(self._cpu, self._processes.cpu_by_process(), strict=True)
        ]
        self._peak = [
            usage.footprint(process.pids(), {process.pid, *(note.pid for note in _notes(self._folder, process.shard))})
            for process in self._processes.each
        ]

    def end(self, done: Sequence[Done]) -> tuple[list[Outcome], Disturbance]:
        """The measured part is over: the outcome of each process, and the disturbance of all."""
        found = noise.disturbance(self._machine, noise.machine(), self._first_threads, self._last_threads)
        trees = zip(self._before, _trees(self._processes, self._folder), strict=True)
        memories = zip(self._settled, self._idle, self._peak, strict=True)
        outcomes = [_outcome(*parts) for parts in zip(done, trees, memories, strict=True)]
        return [
            replace(one, fullest_cpu_seconds=None if most is None else max(0.0, most))
            for one, most in zip(outcomes, self._fullest, strict=True)
        ], found


@dataclass(frozen=True)
class _Tree:
    """A trial's process at one moment: CPU seconds of its living descendants, and the notes of those that sent."""

    pid: int
    children_cpu: float
    notes: list[ProcessNote]

    def count(self, counter: str) -> int:
        """Sum of a counter over the process and its descendants."""
        return sum(getattr(note, counter) for note in self.notes)


def _trees(processes: TrialProcesses, folder: Path) -> list[_Tree]:
    return [_Tree(one.pid, one.children_cpu(), _notes(folder, one.shard)) for one in processes.each]


def _notes(folder: Path, shard: int) -> list[ProcessNote]:
    return [note for note in process_notes(folder) if note.shard == shard]


def _outcome(
    done: Done, trees: tuple[_Tree, _Tree], memories: tuple[int, Footprint | None, Footprint | None]
) -> Outcome:
    """The outcome of one process, with the processes that it has started.

    `trees`: before and after. `memories`: resident bytes after the warm-up, the memory then, and that at the end.
    """
    (before, after), (settled, idle, last) = trees, memories
    own = done.peak_rss_bytes + sum(_peak(note) for note in after.notes if note.pid != after.pid)
    idle_bytes = None if idle is None else idle.now
    return Outcome(
        began=done.began,
        wall_seconds=done.wall_seconds,
        cpu_seconds=max(0.0, done.cpu_seconds + after.children_cpu - before.children_cpu),
        idle_rss_bytes=settled,
        peak_rss_bytes=max(own, settled),  # the kernel counts by threads: its peak may lack a page of the resident set
        connections_begun=after.count("connections") - before.count("connections"),
        connections_opened=after.count("opened") - before.count("opened"),
        connections_in_all=after.count("opened"),
        processes=max(1, len(after.notes)),
        idle_pss_bytes=idle_bytes,
        peak_pss_bytes=None if last is None else max(last.peak, idle_bytes or 0),
        extended=done.extended,
        callers=max(1, after.count("callers")),
        gil=done.gil,
        startup_seconds=max(0.0, *(note.began - done.began for note in after.notes)) if len(after.notes) > 1 else 0.0,
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
