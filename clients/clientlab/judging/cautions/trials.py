"""Cautions about trials: failed, with errors, with a GIL, too short, or far longer or shorter than the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from clientlab import strategies, units
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.bottleneck import Bound
from clientlab.results.document import Caution, Run, failed_for_good
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
    """Trials without figures."""
    failed = failed_for_good(run)
    if failed:
        yield Caution(
            kind="failed-trials",
            arms=arms_of(failed),
            text=f"{len(failed)} of {len(run.trials)} trials failed: {names_of(failed)}",
            advice=f"the first reason was: {failed[0].reason}",
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


_TIMES, _SECONDS = 2.0, 1.0
"""A trial is overlong from so many times its duration on, if it also took so many seconds more than that."""


def overlong(run: Run) -> Iterator[Caution]:
    """Trials that took far longer than their duration, with the bottleneck."""
    found: dict[str, str] = {}
    for arm, trials in by_arm(run).items():
        late = [trial for trial in trials if _is_overlong(run, trial)]
        if late:
            worst = max(late, key=_taken)
            found[arm] = f"{arm} {units.time(_taken(worst))} instead of {_duration(run, worst):g} s ({_reason(worst)})"
    if found:
        yield Caution(
            kind="overlong",
            arms=sorted(found),
            text=f"trials took much longer than their duration: {'; '.join(found.values())}",
            advice="a service with as many requests in flight is late too: lower -c, or change the part that is named; "
            "where single requests take that long, raise -d",
        )


def _is_overlong(run: Run, trial: Trial) -> bool:
    """Whether a trial of a closed load took far longer than its duration. An open load falls behind its schedule.

    Where a few slow requests alone prolonged it, it has a long tail.
    """
    asked = _duration(run, trial)
    late = bool(asked) and trial.open_load is None and _taken(trial) >= max(_TIMES * asked, asked + _SECONDS)
    return late and not _is_prolonged_by_few(trial)


def _is_prolonged_by_few(trial: Trial) -> bool:
    """Whether 99 of 100 requests took less than half of the tail."""
    return trial.latency_seconds is not None and trial.latency_seconds.p99 < (trial.tail_seconds or 0.0) / 2


def _duration(run: Run, trial: Trial) -> float:
    """Seconds; 0 for a number of requests."""
    return run.experiment.workloads[trial.workload].duration or 0.0


def _taken(trial: Trial) -> float:
    return trial.wall_seconds or 0.0


def _reason(trial: Trial) -> str:
    if expired := trial.errors.get("timeout", 0):
        return f"{expired:,} of {trial.requests:,} requests ended at their time limit"
    return f"bottleneck: {trial.verdict}"
