"""The plan of a run: the experiment, expanded once to its arms and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clientlab.errors import FieldError
from clientlab.experiments.claim_tables import planned_claims
from clientlab.experiments.expansion import expand, resolve, table_of
from clientlab.experiments.experiment import Experiment
from clientlab.results.conditions import FIRST_RATE
from clientlab.results.plan import Arm, Plan
from clientlab.upstreams import MOST, UPSTREAMS
from clientlab.validation import validated
from clientlab.workload.load import is_warm
from clientlab.workload.seeds import new_seed
from clientlab.workload.workload import Workload, pinned

_SHARED = (
    "name", "question", "source", "rounds", "slices", "budget", "find_max", "environments", "uncontrolled", "workers",
    "pin",
)  # fmt: skip
"""Fields of an experiment that its plan has as they are."""


def make_plan(
    experiment: Experiment,
    *,
    replaced: Mapping[str, str] | None = None,
    left_out: Mapping[str, str] | None = None,
    **circumstances: Any,
) -> Plan:
    """Return the plan of a run of the experiment. No strategy is loaded for it.

    `replaced`, `left_out` and `circumstances` are fields of `Plan` that the experiment does not decide. Raises
    FieldError for names that are missing or stand twice.
    """
    _check_names(experiment)
    experiment = _at_first_rate(experiment)
    replaced, left_out = replaced or {}, left_out or {}
    expanded = expand(experiment, replaced, left_out)
    arms = [arm for arm, _ in expanded]
    names = Counter(arm.name for arm in arms)
    if twice := next((arm for arm in arms if names[arm.name] > 1), None):
        raise FieldError(table_of(experiment, twice), f"arm {twice.name!r} is there twice")
    workloads = {arm.workload: _pinned(arm, workload) for arm, workload in expanded}
    used = {arm.strategy for arm in arms}
    return validated(
        Plan.model_validate,
        {
            **{field: getattr(experiment, field) for field in _SHARED},
            "seed": new_seed() if experiment.seed is None else experiment.seed,
            "arms": arms,
            "workloads": workloads,
            "baseline": experiment.baseline and resolve(experiment.baseline, arms, ("baseline",)),
            "claims": planned_claims(experiment.claims, arms, workloads),
            "command": f"clientlab run {experiment.name}",
            **circumstances,
            "replaced": {name: other for name, other in replaced.items() if other in used},
            "left_out": left_out,
        },
    )


def _pinned(arm: Arm, workload: Workload) -> Workload:
    """Return the workload with the digest of its recorded requests, and its kind of connections. Raises FieldError."""
    try:
        return replace(pinned(workload), connections="warm" if is_warm(workload) else "cold")
    except FieldError as error:
        raise error.within("workloads", arm.group or arm.workload) from error


def _check_names(experiment: Experiment) -> None:
    """Raise FieldError for a name that is twice in a list, or that no table or upstream has."""
    for field in ("strategies", "upstreams", "routes"):
        names = getattr(experiment, field)
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise FieldError([field], f"{twice!r} is given twice; name each once, and repeat trials with `rounds`")
    for name, arm in experiment.arms.items():
        for field, tables in (("workload", experiment.workloads), ("environment", experiment.environments)):
            wanted = getattr(arm, field)
            if wanted is not None and wanted not in tables:
                message = f"no {field} {wanted!r}; there are {', '.join(tables) or 'none'}"
                raise FieldError(["arms", name, field], message)
    for upstream, count in experiment.workers.items():
        if upstream not in UPSTREAMS:
            message = f"there is no such upstream; there are {', '.join(UPSTREAMS)}"
            raise FieldError(["workers", upstream], message)
        if not 1 <= count <= MOST["workers"]:
            raise FieldError(["workers", upstream], f"{count} workers; write 1 to {MOST['workers']}")
    if experiment.instead and experiment.environments:
        message = "the lab's own Python decides it, and arms run in environments; leave it out"
        raise FieldError(["instead"], message)


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
