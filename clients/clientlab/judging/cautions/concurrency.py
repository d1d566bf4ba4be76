"""Cautions about requests in flight: unlike numbers of them, and more than there are requests."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab.judging.cautions.doubted import arms_of, finished, names_of
from clientlab.judging.ranking import finished_by_group
from clientlab.results.document import Caution, Run
from clientlab.results.trial import Trial

_WAITING = ": where they wait for the upstream's delay, the ratio between unlike ones is mostly the ratio of c"


def unlike_concurrency(run: Run) -> Iterator[Caution]:
    """Arms of one table with unlike requests in flight, unless the experiment varies them on purpose, by an axis.

    Behind a search for capacities, arms are compared at equal rates whatever they have in flight.
    """
    if run.experiment.find_max is not None:
        return
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
            arms=arms_of(trial for _, trial in mixed),
            text="arms have unlike numbers of requests in flight: "
            + "; ".join(f"c={count} for {', '.join(sorted(found[count]))}" for count in sorted(found, reverse=True)),
            advice=f"compare arms of equal c{_WAITING if waiting else ''}",
        )


def fewer_requests_than_concurrency(run: Run) -> Iterator[Caution]:
    """Trials that never had as many requests in flight as they were to have."""
    starved = [trial for trial in finished(run) if trial.requests < trial.concurrency]
    if starved:
        yield Caution(
            kind="fewer-requests-than-concurrency",
            arms=arms_of(starved),
            text=f"trials of {names_of(starved)} had fewer requests than their concurrency",
            advice="the concurrency was never reached: raise -n or lower -c",
        )
