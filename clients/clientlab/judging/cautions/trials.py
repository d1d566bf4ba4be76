"""Cautions about trials: failed, with errors, with a GIL, too short, or far longer or shorter than the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from clientlab import strategies
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
