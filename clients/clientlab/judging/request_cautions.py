"""Cautions about the requests of trials: those that failed, too few, and unlike numbers of them in flight."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import units
from clientlab.analysis.summary import QUANTILES
from clientlab.judging.ranking import finished_by_group
from clientlab.results.document import Caution, Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial

_PERCENTILES = tuple(BY_KEY[key] for key in QUANTILES)
_WAITING = ": where they wait for the upstream's delay, the ratio between unlike ones is mostly the ratio of c"
_FEWEST_REQUESTS = 100
ABOUT_PERCENTILES = ("percentiles-of-failures", "few-requests")
"""Kinds of cautions that doubt percentiles only."""

"""With fewer, the nearest rank of the 99th percentile is the last."""


def percentiles_of_failures(run: Run) -> Iterator[Caution]:
    """Percentiles that fall on failed requests, by arm: the least of them, over the rounds."""
    found = {name: text for name, trials in _by_arm(run).items() if (text := _bound_of(trials))}
    if found:
        yield Caution(
            kind="percentiles-of-failures",
            arms=sorted(found),
            text=f"percentiles fall on failed requests: {'; '.join(f'{arm}, {found[arm]}' for arm in sorted(found))}",
            advice="a failed request would have taken at least as long as it did: "
            'read "≥" as "not known, and no less", and mend the errors before you compare',
        )


def _bound_of(trials: list[Trial]) -> str | None:
    """``3 % failed, p99 ≥ 300 ms``: the lowest percentile that is only a lower bound. None without one."""
    bounded = next((figure for figure in _PERCENTILES if figure.has_bounds(trials)), None)
    if bounded is None:
        return None
    worst = [trial for trial in trials if bounded.has_bounds([trial])]
    failed = sum(sum(trial.errors.values()) for trial in worst) / sum(trial.requests for trial in worst)
    where = "" if len(worst) == len(trials) else f" in {len(worst)} of {len(trials)} rounds"
    shown = bounded.text(bounded.over_rounds(worst), at_least=True)
    return f"{units.share(failed)} failed{where}, {bounded.key} {shown}"


def few_requests(run: Run) -> Iterator[Caution]:
    """Trials whose p99 is their maximum."""
    few = [trial for trial in _finished(run) if trial.requests < _FEWEST_REQUESTS and trial.latency_seconds]
    arms = sorted({trial.arm for trial in few})
    if arms:
        yield Caution(
            kind="few-requests",
            arms=arms,
            text=f"trials of {', '.join(arms)} made fewer than {_FEWEST_REQUESTS} requests: "
            "their p99 is the longest request",
            advice="one slow request decides such a p99: raise -n",
        )


def unlike_concurrency(run: Run) -> Iterator[Caution]:
    """Arms of one table with unlike requests in flight, unless the experiment varies them on purpose, by an axis."""
    places = {arm.name: arm.axes.values() for arm in run.experiment.arms}
    mixed: list[tuple[str, Trial]] = []
    for trials in finished_by_group(run).values():
        group = [(name, trial) for name, trial in trials if trial.concurrency not in places.get(trial.arm, ())]
        if len({trial.concurrency for _, trial in group}) > 1:
            mixed += group
    if mixed:
        found: dict[int, set[str]] = {}
        for name, trial in mixed:
            found.setdefault(trial.concurrency, set()).add(name)
        waiting = any(trial.verdict == "latency-bound" for _, trial in mixed)
        yield Caution(
            kind="unlike-concurrency",
            arms=sorted({trial.arm for _, trial in mixed}),
            text="arms have unlike numbers of requests in flight: "
            + "; ".join(f"c={count} for {', '.join(sorted(found[count]))}" for count in sorted(found, reverse=True)),
            advice=f"compare arms of equal c{_WAITING if waiting else ''}",
        )


def _by_arm(run: Run) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in _finished(run):
        found.setdefault(trial.arm, []).append(trial)
    return found


def _finished(run: Run) -> list[Trial]:
    return [trial for trial in run.trials if trial.status == "done"]
