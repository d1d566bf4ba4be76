"""Memory profiles: after the rounds, each arm once more, with each allocation recorded. The trial is in no figure."""

from __future__ import annotations

import importlib.metadata
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from clientlab import child_processes, strategies, units
from clientlab.analysis.attribution import attributed
from clientlab.analysis.memory_records import Allocations, MemoryRecording, recording_of
from clientlab.errors import LabError
from clientlab.measuring.trial_handle import OWN, Interpreter
from clientlab.own_folder import OwnFolder
from clientlab.results.document import Environment, Run
from clientlab.results.figures import BY_KEY
from clientlab.results.part import shortened
from clientlab.results.plan import Arm, Plan
from clientlab.results.profile import MOST_ALLOCATING, MOST_PACKAGES, Allocated, AllocatingFunction, Memory, Profile
from clientlab.results.trial import Trial
from clientlab.running.profiling import LookFailed, again, shares_of
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.load import expected_requests
from clientlab.workload.workload import Workload

_PROFILER = "memray"
_INSTALL = "install memray (`pip install 'clientlab[profile]'`)"
_READER = "clientlab.measuring.memory_reader"

_MOST_REQUESTS, _LEAST_EACH = 2_000, 4
"""Requests of a trial, or so many for each in flight: the record grows with each allocation."""

_PATIENCE = 600.0
"""Seconds for reading the records of a trial."""

_Held = Mapping[str, Environment]
"""Name of an environment → what it holds."""


def check_memray(plan: Plan, held: _Held) -> None:
    """Raises LabError if no arm of the plan can have a memory profile because memray is not installed for it."""
    lacking = [_lacking(arm.environment, held) for arm in plan.arms]
    if lacking and None not in lacking:
        raise LabError(f"--profile memory: {lacking[0]}")


def memory_profiles_of(run: Run, runner: TrialRunner, whole: Plan, tell: Callable[[str], None]) -> Iterator[Profile]:
    """A memory profile of each arm, in their order. `whole`: the plan with the values that the run lacks."""
    for arm in run.experiment.arms:
        profile = _of_arm(run, runner, whole, arm)
        tell(f"memory profile of {arm.name}: {profile.reason or _line(profile)}")
        yield profile


def _line(profile: Profile) -> str:
    memory = profile.memory
    assert memory is not None  # noqa: S101 - the document's own check, for mypy
    shares = [f"{name} {100 * share:.0f} %" for name, share in list(profile.packages.items())[:4]]
    return f"peak {units.memory(memory.peak_bytes)}: {', '.join(shares)}"


def _of_arm(run: Run, runner: TrialRunner, whole: Plan, arm: Arm) -> Profile:
    """The arm's profile, or the reason why it has none."""
    held = run.surroundings.environments or {}
    profiler = " ".join(filter(None, (_PROFILER, _version(arm.environment, held))))
    found: Profile | str
    try:
        found = _refusal(arm, held) or _profiled(_RecordedTrial.of(run, runner, whole, arm), arm, profiler)
    except (LookFailed, ValueError) as failure:
        found = str(failure)
    if isinstance(found, str):
        return Profile(arm=arm.name, kind="memory", profiler=profiler, reason=shortened(found))
    return found


def _refusal(arm: Arm, held: _Held) -> str | None:
    """Why the arm cannot have a memory profile; None if it may have one."""
    strategy = strategies.find(arm.strategy)
    if program := strategies.client_spec(strategy.client).program:
        return f"the program {program} sends its requests, which has no Python to look at"
    if "processes" in strategies.executor_spec(strategy.executor).name:
        return "its requests are sent by processes of their own, whose allocations are not recorded"
    return _lacking(arm.environment, held)


def _lacking(environment: str | None, held: _Held) -> str | None:
    """What to do where memray is not installed; None where it is."""
    if _version(environment, held) is not None:
        return None
    if environment is None:
        return f"memray is not installed; {_INSTALL}"
    folder = held[environment].folder
    return (
        f"memray is not installed in environment {environment!r}; install it there "
        f"(`uv pip install --python {folder} memray`), or add memray to its requirements"
    )


def _version(environment: str | None, held: _Held) -> str | None:
    """The version of memray; None where it is not installed."""
    if environment is not None:
        return held[environment].packages.get(_PROFILER) if environment in held else None
    try:
        return importlib.metadata.version(_PROFILER)
    except importlib.metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True)
class _RecordedTrial:
    """A trial with its allocations. `processes`: those that recorded. `shortened`: a note if it had fewer requests."""

    trial: Trial
    recording: MemoryRecording
    processes: int
    shortened: str | None

    @classmethod
    def of(cls, run: Run, runner: TrialRunner, whole: Plan, arm: Arm) -> _RecordedTrial:
        """Measure it. Raises LookFailed, and ValueError for records that cannot be read."""
        usual = whole.workloads[arm.workload]
        rate = BY_KEY["throughput"].over_rounds(run.trials_of(arm.name))
        in_flight = strategies.find(arm.strategy).in_flight(usual.concurrency, expected_requests(usual))
        workload, note = _short(usual, rate, in_flight)
        plan = whole.model_copy(update={"workloads": {**whole.workloads, arm.workload: workload}})
        with OwnFolder("profile") as own:
            recording = replace(runner, memory=str(own.path / "memory"))
            trial = again(run, recording, plan, arm, own.path)
            files = sorted(own.path.glob("memory-*.bin"))
            python = OWN if arm.environment is None else runner.interpreters[arm.environment]
            return cls(trial, _read(files, python), len(files), note)


def _short(workload: Workload, rate: float | None, in_flight: int) -> tuple[Workload, str | None]:
    """The workload with as many requests as can be recorded, and a note where these are fewer than its own.

    `rate`: requests per second of the rounds. A load in stages, and one whose rate decides its requests, stay whole.
    """
    most = max(_MOST_REQUESTS, _LEAST_EACH * in_flight)
    if workload.stages is not None or (workload.requests is not None and workload.duration is not None):
        return workload, None
    if workload.requests is not None and workload.requests > most:
        note = f"its trial had {most:,} of {workload.requests:,} requests"
        return replace(workload, requests=most), f"{note}: each allocation is recorded"
    if workload.duration is not None and rate is not None and workload.duration * rate > most:
        seconds = most / rate
        note = f"its trial took {units.time(seconds)} of {units.time(workload.duration)}"
        return replace(workload, duration=seconds), f"{note}: each allocation is recorded"
    return workload, None


def _read(files: Collection[Path], python: Interpreter) -> MemoryRecording:
    """What the trial recorded, read by the Python that recorded it: versions of memray read their own files only.

    Raises LookFailed, and ValueError.
    """
    if not files:
        raise LookFailed("its trial recorded nothing")
    command = python.command(_READER, *map(str, files))
    try:
        ended = child_processes.answer(command, b"", python.variables(), _PATIENCE)
    except subprocess.TimeoutExpired:
        raise LookFailed(f"its records were not read within {_PATIENCE:g} s; profile fewer requests (-n, -d)") from None
    except OSError as error:
        raise LookFailed(f"its records were not read: {error.strerror}") from error
    if ended.returncode:
        last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise LookFailed(f"its records were not read: {last or f'exit code {ended.returncode}'}")
    return recording_of(ended.stdout)


def _profiled(recorded: _RecordedTrial, arm: Arm, profiler: str) -> Profile:
    """Raises ValueError where nothing was held at the peak."""
    recording, trial = recorded.recording, recorded.trial
    if not any(recording.peak.values()):
        raise ValueError("its trial held no memory of its own")
    found = attributed({stack: float(size) for stack, size in recording.peak.items()})
    notes = [] if recorded.shortened is None else [recorded.shortened]
    if strategies.client_spec(strategies.find(arm.strategy).client).own_threads:
        notes.append("what the library's own threads allocate has no Python function, and counts for no package")
    if recorded.processes > 1:
        notes.append(f"{recorded.processes} processes: their peaks are added, whenever each of them was")
    functions = list(recording.by_function().items())[:MOST_ALLOCATING]
    memory = Memory(
        requests=trial.requests or 0,
        processes=recorded.processes,
        peak_bytes=sum(recording.peak.values()),
        allocated=_allocated(recording.whole),
        packages={name: _allocated(one) for name, one in list(recording.by_package().items())[:MOST_PACKAGES]},
        functions=[
            AllocatingFunction(name=name, package=package, bytes=one.bytes, allocations=one.count)
            for (name, package), one in functions
        ],
    )
    return Profile(
        arm=arm.name, kind="memory", profiler=profiler, requests_per_second=trial.requests_per_second, memory=memory,
        notes=notes, **shares_of(found),
    )  # fmt: skip


def _allocated(found: Allocations) -> Allocated:
    return Allocated(bytes=found.bytes, allocations=found.count)
