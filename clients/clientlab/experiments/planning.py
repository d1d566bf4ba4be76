"""The plan of a run: the experiment, expanded once to its arms and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, Unpack

from clientlab.errors import FieldError
from clientlab.experiments.claim_tables import planned_claims
from clientlab.experiments.expansion import expand, resolve, table_of
from clientlab.experiments.experiment import Experiment
from clientlab.experiments.refusals import checked
from clientlab.results.conditions import FIRST_RATE
from clientlab.results.plan import Arm, Plan
from clientlab.upstreams import MOST, UPSTREAMS
from clientlab.workload.load import is_warm
from clientlab.workload.seeds import new_seed
from clientlab.workload.workload import Workload, pinned


class Circumstances(TypedDict, total=False):
    """What a plan holds besides its experiment; the fields of `Plan` describe it."""

    command: str
    shortened: list[str]
    changed: list[str]
    replaced: dict[str, str]
    left_out: dict[str, str]
    precision: float | None
    time_budget: float | None


def make_plan(experiment: Experiment, **circumstances: Unpack[Circumstances]) -> Plan:
    """The plan of a run of the experiment. No strategy is loaded for it.

    Raises FieldError for names that are missing or stand twice.
    """
    _check_lists(experiment)
    experiment = _at_first_rate(experiment)
    _check_workers(experiment.workers)
    if experiment.instead and experiment.environments:
        raise FieldError(("instead",), "the lab's own Python decides it, and arms run in environments; leave it out")
    replaced = circumstances.get("replaced", {})
    expanded = expand(experiment, replaced, circumstances.get("left_out", {}))
    _check_twice(experiment, expanded)
    arms = [arm for arm, _ in expanded]
    workloads = {arm.workload: _pinned(arm, workload) for arm, workload in expanded}
    used = {arm.strategy for arm in arms}
    return checked(
        Plan.model_validate,
        {
            **experiment.model_dump(
                include={"name", "question", "rounds", "slices", "budget", "uncontrolled", "workers", "pin"}
            ),
            "seed": new_seed() if experiment.seed is None else experiment.seed,
            "source": experiment.source,
            "find_max": experiment.find_max,
            "environments": experiment.environments,
            "arms": arms,
            "workloads": workloads,
            "baseline": experiment.baseline and resolve(experiment.baseline, arms, ("baseline",)),
            "claims": planned_claims(experiment.claims, arms, workloads),
            "command": f"clientlab run {experiment.name}",
            **circumstances,
            "replaced": {name: other for name, other in replaced.items() if other in used},
        },
    )


def _pinned(arm: Arm, workload: Workload) -> Workload:
    """The workload without what a trial would look up: the digest of its recorded requests, and its connections.

    Raises FieldError for a file that cannot be sent.
    """
    try:
        return replace(pinned(workload), connections="warm" if is_warm(workload) else "cold")
    except FieldError as error:
        raise error.within("workloads", arm.group or arm.workload) from error


def _check_lists(experiment: Experiment) -> None:
    """No name stands twice in a list, and every workload and environment of an arm is there."""
    for field, one in (("strategies", "strategy"), ("upstreams", "upstream"), ("routes", "route")):
        names = getattr(experiment, field)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise FieldError(
                (field,), f"{one} {twice!r} is given twice; name each once, and repeat trials with `rounds`"
            )
    for name, arm in experiment.arms.items():
        if arm.workload is not None and arm.workload not in experiment.workloads:
            known = ", ".join(experiment.workloads)
            raise FieldError(("arms", name, "workload"), f"no workload {arm.workload!r}; there are {known}")
        if arm.environment is not None and arm.environment not in experiment.environments:
            known = ", ".join(experiment.environments) or "none"
            raise FieldError(
                ("arms", name, "environment"), f"no environment {arm.environment!r}; [environments] has {known}"
            )


def _check_workers(workers: Mapping[str, int]) -> None:
    for upstream, count in workers.items():
        if upstream not in UPSTREAMS:
            raise FieldError(("workers", upstream), f"there is no such upstream; there are {', '.join(UPSTREAMS)}")
        if not 1 <= count <= MOST["workers"]:
            raise FieldError(("workers", upstream), f"{count} workers; write 1 to {MOST['workers']}")


def _check_twice(experiment: Experiment, expanded: Sequence[tuple[Arm, Workload]]) -> None:
    """No two arms have one name, and no two measure the same."""
    by_name: dict[str, Arm] = {}
    by_work: dict[str, Arm] = {}
    for arm, workload in expanded:
        if arm.name in by_name:
            raise FieldError(table_of(experiment, arm), f"arm {arm.name!r} is there twice")
        work = repr((arm.strategy, arm.environment, workload, arm.upstream, arm.route, arm.link))
        if work in by_work:
            raise FieldError(
                table_of(experiment, arm),
                f"arms {by_work[work].name!r} and {arm.name!r} are the same; name one, and repeat it with `rounds`",
            )
        by_name[arm.name] = by_work[work] = arm


def _at_first_rate(experiment: Experiment) -> Experiment:
    """Return the experiment with workloads at the rate that its search tries first; without a search, as it is.

    A request that is later than the length of a trial is dropped, unless the workload has a limit of its own. Raises
    FieldError for a workload that has a load of its own, or no duration.
    """
    if experiment.find_max is None:
        return experiment
    tables = {}
    for name, table in experiment.workloads.items():
        first = table.first
        for field in ("rate", "stages", "requests"):
            if getattr(first, field) is not None or field in table.axes:
                message = "the search for the highest rate chooses it; leave it out"
                raise FieldError(("workloads", name, field), message, also=["find_max"])
        if first.duration is None:
            raise FieldError(("workloads", name, "duration"), "a search needs the length of its trials; write one")
        searched = replace(first, rate=FIRST_RATE, max_late=first.max_late or first.duration)
        tables[name] = table.model_copy(update={"first": searched})
    return experiment.changed(workloads=tables)
