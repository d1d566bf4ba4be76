"""Cautions about trials: failed, with errors, with a GIL, too short, or far longer or shorter than the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from clientlab import strategies
from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.analysis.standings import typical_levels
from clientlab.analysis.typical import Floats
from clientlab.judging.ranking import finished_by_group
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.bottleneck import Bound
from clientlab.results.document import Caution, Run, failed_for_good
from clientlab.results.figures import cost_of
from clientlab.results.machine import is_free_threaded
from clientlab.results.trial import Trial


def finished(run: Run) -> list[Trial]:
    """The trials that are done."""
    return [trial for trial in run.trials if trial.status == "done"]


def by_arm(run: Run) -> dict[str, list[Trial]]:
    """Arm → its trials that are done."""
    found: dict[str, list[Trial]] = {}
    for trial in finished(run):
        found.setdefault(trial.arm, []).append(trial)
    return found


def arms_of(trials: Iterable[Trial]) -> list[str]:
    """The names of the trials' arms, each once."""
    return sorted({trial.arm for trial in trials})


def names_of(trials: Iterable[Trial]) -> str:
    """The names of the trials' arms, for a sentence."""
    return ", ".join(arms_of(trials))


def mostly(trials: Iterable[Trial], holds: Callable[[Trial], bool]) -> list[Trial]:
    """The trials of which something holds, of arms where it holds of at least half: fewer move no median."""
    every = list(trials)
    count = Counter(trial.arm for trial in every)
    found = [trial for trial in every if holds(trial)]
    there = Counter(trial.arm for trial in found)
    return [trial for trial in found if 2 * there[trial.arm] >= count[trial.arm]]


def commonest_verdict(trials: Iterable[Trial]) -> Bound | None:
    """The commonest bottleneck of the trials, the first of several. None if no trial has a verdict."""
    counts = Counter(trial.verdict for trial in trials if trial.verdict is not None)
    return counts.most_common(1)[0][0] if counts else None


def limited_by(run: Run, verdict: Bound) -> list[Trial]:
    """The trials with this verdict, of arms whose commonest verdict it is."""
    arms = by_arm(run).values()
    return [
        trial for trials in arms if commonest_verdict(trials) == verdict for trial in trials if trial.verdict == verdict
    ]


def failures(run: Run) -> Iterator[Caution]:
    """Trials without figures: those that the run lacks, and those that it measured once more."""
    failed = failed_for_good(run)
    if failed:
        yield Caution(
            kind="failed-trials",
            arms=arms_of(failed),
            text=f"{len(failed)} of {len(run.trials)} trials failed: {names_of(failed)}",
            advice=f"the first reason was: {failed[0].reason}",
        )
    again = [trial for trial in run.trials if trial.status != "done" and trial not in failed]
    if again:
        yield Caution(
            kind="measured-again",
            arms=arms_of(again),
            text=f"{len(again)} of {len(run.trials)} trials were lost and measured once more: {names_of(again)}",
            advice=f"the first reason was: {again[0].reason}",
        )


def errors(run: Run) -> Iterator[Caution]:
    """Trials with failed requests."""
    faulty = [trial for trial in finished(run) if trial.errors]
    if faulty:
        kinds = sorted({kind for trial in faulty for kind in trial.errors})
        yield Caution(
            kind="errors",
            arms=arms_of(faulty),
            text=f"requests failed ({', '.join(kinds)}) in trials of {names_of(faulty)}",
            advice="a strategy with errors did less work: look at its errors before its speed",
        )


def unverified(run: Run) -> Iterator[Caution]:
    """A user's own code that was measured against a server whose counters the lab cannot read."""
    own = [one for one in finished(run) if strategies.is_of_file(one.strategy) and one.upstream_use is None]
    if own:
        yield Caution(
            kind="unverified",
            arms=arms_of(own),
            text=f"nobody counted what the server received from {names_of(own)}",
            advice="this code may send other requests than the rest, or skip their bodies: compare it once with the "
            "lab's own upstream, without --url",
        )


def gil_on(run: Run) -> Iterator[Caution]:
    """Trials with a GIL in a Python that was built for free threading."""
    builds: dict[str | None, str | None] = {None: run.surroundings.python_build}
    builds |= {name: one.python_build for name, one in (run.surroundings.environments or {}).items()}
    locked = [trial for trial in finished(run) if trial.gil and is_free_threaded(builds.get(trial.environment))]
    if locked:
        yield Caution(
            kind="gil-on",
            arms=arms_of(locked),
            text=f"the Python is built for free threading, but the GIL was on in trials of {names_of(locked)}",
            advice="a library without support for free threading switched it on: look for a release of it that has it",
        )


def short_trials(run: Run) -> Iterator[Caution]:
    """Trials too short for the scheduler."""
    short = [t for t in finished(run) if t.wall_seconds is not None and t.wall_seconds < SHORT_SECONDS]
    if short:
        yield Caution(
            kind="short-trials",
            arms=arms_of(short),
            text=f"trials of {names_of(short)} took less than {SHORT_SECONDS:g} s",
            advice="one delay of the scheduler is a large part of such a trial: raise -n",
        )


def memory_unknown(run: Run) -> Iterator[Caution]:
    """Trials whose resident memory is known, and not how much of it their processes share."""
    unknown = [trial for trial in finished(run) if trial.peak_pss_bytes is None and trial.peak_rss_bytes is not None]
    if unknown:
        yield Caution(
            kind="memory-unknown",
            arms=arms_of(unknown),
            figures=["memory", "above_idle"],
            text=f"the memory of {names_of(unknown)} is not known without the pages that processes share",
            advice="the CSV has the peak RSS, in which a shared page counts in each process; memory needs Linux, the "
            "permission to read /proc/PID/smaps_rollup, and processes that live until the last response",
        )


FAR = 5.0
"""Robust standard deviations of a group's trials from which on a trial is outlying."""
LEAST = 1.25
"""A trial that took less than this many times as long as expected (or as short) is not outlying."""
LEAST_OF_FEW = 2.0
"""The same where so few trials do not show their usual spread."""

_FEW = 6
_SHOWN = 6
_NORMAL = 1.4826  # a normal distribution's standard deviation over its median distance from the median


@dataclass(frozen=True)
class OutlyingTrial:
    """`times`: the trial's seconds per request over those expected of its arm in its round."""

    trial: Trial
    times: float


def outlying_trials(run: Run) -> list[OutlyingTrial]:
    """The outlying trials of a run, the farthest first. A group needs three rounds."""
    found = [one for trials in finished_by_group(run).values() for one in _of_group(trials)]
    return sorted(found, key=lambda one: -abs(np.log(one.times)))


_WHAT = {False: "trials took much longer or shorter", True: "trials had a much longer or shorter p99, or wall time,"}
"""Whether trials of open loads are among them → how they differ."""


def outlying_caution(run: Run) -> Iterator[Caution]:
    """One caution that names the outlying trials."""
    found = outlying_trials(run)
    if found:
        shown = [f"{one.trial.arm} in round {one.trial.round} ({one.times:.2g} times)" for one in found[:_SHOWN]]
        more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        yield Caution(
            kind="outlying-trials",
            arms=arms_of(one.trial for one in found),
            text=f"{_WHAT[any(one.trial.open_load for one in found)]} than other rounds of their arms: "
            f"{', '.join([*shown, *more])}",
            advice="ratios are medians over rounds, so one such trial moves them little; "
            "find out what else ran, or measure more rounds",
        )


def _of_group(trials: list[tuple[str, Trial]]) -> Iterator[OutlyingTrial]:
    by_arm: dict[str, dict[int, Trial]] = {}
    for name, trial in trials:
        by_arm.setdefault(name, {})[trial.round] = trial
    rounds = sorted({trial.round for _, trial in trials})
    if len(rounds) < FEWEST_ROUNDS:
        return
    costs = [{number: cost_of(trial) for number, trial in arm.items()} for arm in by_arm.values()]
    logs = np.log([[arm.get(number, np.nan) for number in rounds] for arm in costs], dtype=np.float64)
    away = _residuals(logs - typical_levels(costs)[:, None])
    usual = _NORMAL * float(np.nanmedian(np.abs(away)))
    degrees = np.count_nonzero(~np.isnan(away)) - len(by_arm)
    limit = max(FAR * usual, np.log(LEAST if degrees >= _FEW else LEAST_OF_FEW))
    for arm, row in zip(by_arm.values(), away, strict=True):
        for number, distance in zip(rounds, row.tolist(), strict=True):
            if abs(distance) > limit:
                yield OutlyingTrial(arm[number], float(np.exp(distance)))


def _residuals(deviations: Floats) -> Floats:
    """Deviations (arm, round) from the arms' levels, without what a round did to most of three arms or more."""
    if len(deviations) < 3:
        return deviations - np.nanmedian(deviations, axis=1, keepdims=True)
    return deviations - np.nanmedian(deviations, axis=0, keepdims=True)
