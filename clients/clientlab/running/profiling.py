"""Profiles: after the rounds, each arm once more, under a sampling profiler. Its trials are in no figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from clientlab import strategies
from clientlab.analysis.attribution import Attribution, attributed, weighted, with_native_leaves
from clientlab.analysis.frame_origin import has_no_symbols, is_interpreter, is_libc, package_of, wait_of
from clientlab.analysis.stacks import Stack, StackRecording, read
from clientlab.measuring.context import CpuSampling
from clientlab.measuring.profiler import Profiler, ProfilerRefused, View, version
from clientlab.own_folder import OwnFolder
from clientlab.results.document import Run
from clientlab.results.part import shortened
from clientlab.results.plan import Arm, Plan
from clientlab.results.profile import MOST_FUNCTIONS, MOST_NODES, MOST_PACKAGES, FlameNode, Profile, ProfiledFunction
from clientlab.results.trial import Trial
from clientlab.running.due import DueTrial, planned_trial
from clientlab.running.trial_runner import TrialRunner

_WANTED_SAMPLES = 1_500
_LEAST_RATE, _MOST_RATE = 100, 250
"""Samples per second. A short trial is sampled more often."""

_SECONDS: dict[View, int] = {"timer": 0, "native": 20, "gil": 10, "waiting": 4}
"""How long a recorder looks at a trial at most: a trial of many threads is slow meanwhile."""

_TIMER_RATE = 1_000
"""Of a trial that samples itself. Its timer fires at the kernel's ticks only, often 250 a second. At that rate, it
would skip ticks at which a trial that waits in between has not used 4 ms since the one before."""

_ENOUGH_SAMPLES, _MOST_TIMED, _TIMED_SECONDS = 4_000, 4, 40.0
"""A trial that samples itself is repeated until there are so many samples, which give a share of one half a 95 % error
of 1.5 points. It is repeated until there were so many trials, or so many seconds of them."""

_FEW_SAMPLES = 400
_UNNAMED = 0.05
"""From this share of the samples on, a library without symbols is named in a note."""


def profiles_of(run: Run, runner: TrialRunner, whole: Plan, tell: Callable[[str], None]) -> Iterator[Profile]:
    """A profile of each arm, in their order. `whole`: the plan with the values that the run lacks."""
    try:
        profiler = version()
    except ProfilerRefused:  # the notes of each arm name it
        profiler = ""
    for arm in run.experiment.arms:
        profile = _ProfiledArm(run, runner, whole, arm, profiler).profile()
        tell(_line(profile))
        yield profile


def _line(profile: Profile) -> str:
    if profile.reason is not None:
        return f"profile of {profile.arm}: {profile.reason}"
    shares = [f"{name} {100 * share:.0f} %" for name, share in list(profile.packages.items())[:4]]
    return f"profile of {profile.arm}: {', '.join(shares)}"


class LookFailed(Exception):
    """The trial under the profiler failed, or what it recorded is lost; the reason."""


@dataclass(frozen=True)
class _Look:
    """A trial under a recorder, and what this saw. `kernel_share`, `failures`: as in `Profiler`.

    `trials`: how many the recording is of; `trial` is the first of them.
    """

    view: View
    rate: int
    trial: Trial
    recording: StackRecording
    kernel_share: float | None = None
    failures: int = 0
    trials: int = 1


_REFUSALS = (ProfilerRefused, LookFailed, ValueError)


@dataclass(frozen=True)
class _Looks:
    """All looks at an arm. Each is None where there is none, but one of `timer` and `native` is there."""

    timer: _Look | None = None
    native: _Look | None = None
    gil: _Look | None = None
    waiting: _Look | None = None

    @property
    def main(self) -> _Look:
        """The one that shares come from."""
        found = self.timer or self.native
        if found is None:
            raise ValueError("no recorder saw the trial")
        return found

    def attribution(self) -> Attribution:
        """Raises ValueError without a sample."""
        kernel_share = None if self.gil is None else self.gil.kernel_share
        if self.timer is None:
            return attributed(*weighted(self.main.recording.stacks, kernel_share))
        native = self.native.recording.stacks if self.native else Counter[Stack]()
        return attributed(with_native_leaves(self.timer.recording.stacks, native, kernel_share if native else None))


@dataclass(frozen=True)
class _ProfiledArm:
    """An arm that is to be profiled. `profiler`: name and version of py-spy; empty without it."""

    run: Run
    runner: TrialRunner
    whole: Plan
    arm: Arm
    profiler: str

    def profile(self) -> Profile:
        """The arm's profile, or the reason why it has none."""
        strategy = strategies.find(self.arm.strategy)
        client = strategies.client_spec(strategy.client)
        if client.program:
            return self._without(f"the program {client.program} sends its requests, which has no Python to look at")
        notes: list[str] = []
        try:
            looks = self._looks(notes)
            found = looks.attribution()
        except _REFUSALS as failure:
            return self._without(str(failure))
        if client.own_threads:
            notes.append("only threads of Python are seen: the library's own threads are not in the shares")
        if looks.native is not None:
            notes += _without_symbols(looks.native.recording.stacks)
        return self._assembled(found, looks, notes)

    def _without(self, reason: str) -> Profile:
        return Profile(arm=self.arm.name, profiler=self.profiler, reason=shortened(reason))

    def _looks(self, notes: list[str]) -> _Looks:
        """The trials under recorders. What py-spy cannot see is noted. Raises _REFUSALS where nothing is left."""
        executor = strategies.executor_spec(strategies.find(self.arm.strategy).executor)
        alone = not executor.threads and not self._has_children
        timer = self._timed() if alone else None
        try:
            native, gil = self._look("native"), self._optional("gil")
        except (ProfilerRefused, LookFailed) as refused:
            if timer is None:
                raise
            notes.append(f"no native frames: {shortened(refused)}. Work in C counts for the function that called it")
            return _Looks(timer)
        return _Looks(timer, native, gil, self._optional("waiting") if executor.threads else None)

    @property
    def _has_children(self) -> bool:
        return "processes" in strategies.executor_spec(strategies.find(self.arm.strategy).executor).name

    def _optional(self, view: View) -> _Look | None:
        """A look that a profile can do without."""
        try:
            return self._look(view)
        except _REFUSALS:
            return None

    def _rate(self) -> int:
        """Samples per second: so many that a trial as long as those of the rounds has enough of them."""
        walls = [trial.wall_seconds for trial in self.run.trials_of(self.arm.name) if trial.wall_seconds]
        return int(min(max(_WANTED_SAMPLES / median(walls), _LEAST_RATE), _MOST_RATE)) if walls else _LEAST_RATE

    def _timed(self) -> _Look:
        """Trials that sample themselves, by their CPU time. Raises LookFailed where one failed."""
        trials: list[Trial] = []
        with OwnFolder("profile") as own:
            sampling = CpuSampling(str(own.path / "timer"), _TIMER_RATE)
            while True:
                trials.append(self._trial(replace(self.runner, sampling=sampling), own.path))
                found = read(own.path.glob("timer-*.json"))  # of all so far: each has a process of its own
                seconds = sum(trial.wall_seconds or 0.0 for trial in trials)
                enough = found.stacks.total() >= _ENOUGH_SAMPLES or seconds >= _TIMED_SECONDS
                if enough or len(trials) == _MOST_TIMED:
                    return _Look("timer", _TIMER_RATE, trials[0], found, trials=len(trials))

    def _look(self, view: View) -> _Look:
        """One trial under py-spy. Raises ProfilerRefused, LookFailed where the trial failed, and ValueError."""
        rate = self._rate() if view == "native" else _LEAST_RATE
        with OwnFolder("profile") as own:
            profiler = Profiler(view, rate, _SECONDS[view], own.path, children=self._has_children)
            runner = replace(
                self.runner, on_processes=profiler.take, on_start=profiler.start, on_end=profiler.end
            )  # fmt: skip
            try:
                trial = self._trial(runner, own.path)
            finally:
                profiler.close()
            return _Look(view, rate, trial, read(profiler.files), profiler.kernel_share, profiler.failures)

    def _trial(self, runner: TrialRunner, folder: Path) -> Trial:
        """One more trial of the arm. Raises LookFailed."""
        return again(self.run, runner, self.whole, self.arm, folder)

    def _assembled(self, found: Attribution, looks: _Looks, notes: list[str]) -> Profile:
        if found.samples < _FEW_SAMPLES:
            notes.append(f"{found.samples} samples: shares are rough; a longer trial (-n, -d) has more")
        main, each = looks.main, (looks.timer, looks.native, looks.gil, looks.waiting)
        return Profile(
            arm=self.arm.name,
            profiler=self.profiler,
            views=[look.view for look in each if look is not None],
            trials=main.trials,
            samples_per_second=main.rate,
            samples=found.samples,
            requests_per_second=main.trial.requests_per_second,
            native_requests_per_second=looks.native.trial.requests_per_second if looks.native else None,
            **shares_of(found),
            kernel_share=None if looks.gil is None else looks.gil.kernel_share,
            gil_held=_held(looks.gil),
            gil_waiting=_threads_waiting(looks.waiting),
            notes=notes,
        )


def again(run: Run, runner: TrialRunner, whole: Plan, arm: Arm, folder: Path) -> Trial:
    """One more trial of an arm behind the rounds, with draws of its own. Raises LookFailed.

    `whole`: the plan with the values that the run lacks. `folder`: for the files of the trial.
    """
    due = DueTrial(max((trial.round for trial in run.trials), default=0) + 1, arm.name)
    planned, workload = planned_trial(run, due, run.measured, whole)
    found = replace(runner, keep_samples=False)(planned, workload, folder / "trials", _nothing)
    if found.status != "done":
        raise LookFailed(f"its trial {found.status}: {found.reason}")
    return found


def shares_of(found: Attribution) -> dict[str, Any]:
    """The fields of a profile that are shares: of packages, of functions, and of the nodes of its flame graph."""
    return {
        "attributed": _share(found.attributed),
        "packages": {name: _share(share) for name, share in list(found.packages.items())[:MOST_PACKAGES]},
        "functions": [
            ProfiledFunction(name=one.name, package=one.package, own=_share(one.own), total=_share(one.total))
            for one in found.functions[:MOST_FUNCTIONS]
        ],
        "flame": [
            FlameNode(parent=one.parent, function=one.function, share=_share(one.share))
            for one in found.nodes[:MOST_NODES]
        ],
    }


def _held(look: _Look | None) -> float | None:
    """Share of the time in which a thread holds the GIL."""
    if look is None or not look.trial.wall_seconds:
        return None
    looks = look.rate * min(look.trial.wall_seconds, _SECONDS[look.view]) - look.failures
    return _share(look.recording.stacks.total() / looks) if looks >= 1 else None


def _threads_waiting(look: _Look | None) -> float | None:
    """Threads that wait for the GIL, in the mean. Idle threads were seen too, so the fullest one was in each look."""
    if look is None or not look.recording.busiest:
        return None
    waiting = sum(count for stack, count in look.recording.stacks.items() if wait_of(stack) == "gil")
    return waiting / look.recording.busiest


def _without_symbols(stacks: Counter[Stack]) -> Iterator[str]:
    """A note for each library whose functions have no names, if it took a share worth a note."""
    unnamed: Counter[str] = Counter()
    for stack, count in stacks.items():
        leaf = stack[-1] if stack else None
        if leaf is None or leaf.is_python or is_libc(leaf) or is_interpreter(leaf):
            continue
        if has_no_symbols(leaf) and (package := package_of(leaf)) is not None:
            unnamed[package] += count
    for package, count in unnamed.items():
        if count >= _UNNAMED * stacks.total():
            yield f"{package} has no symbols: its functions have no names here"


def _share(value: float) -> float:
    """A share between 0 and 1, to six digits: run files need no more."""
    return round(min(max(value, 0.0), 1.0), 6)


def _nothing(_finished: int) -> None:
    """The trial's progress is not shown."""
