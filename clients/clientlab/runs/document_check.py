"""What a run document's schema can't say: its parts fit each other, so that reports need not ask.

Each raises ValueError in words that name the part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clientlab.runs.document import Arm, AskedClaim, Settings, Trial

FEWEST_IN_SWEEP = 3
"""Arms of which one can be between the others."""


def check_trial(trial: Trial) -> None:
    """A finished trial has a wall time, and a request that succeeded."""
    if trial.status != "done":
        return
    if trial.wall_seconds is None or trial.wall_seconds <= 0:
        raise ValueError(f"a trial that is done took some time, and not wall_seconds {trial.wall_seconds}")
    errors = sum(trial.errors.values())
    if errors >= trial.requests:
        raise ValueError(f"a trial that is done has a request that succeeded: {errors} errors of {trial.requests}")


def check_settings(settings: Settings) -> None:
    """Arms do workloads that are there, and claims name what they are made of."""
    _check_workloads("arm", ((arm.name, arm.workload) for arm in settings.arms), settings.workloads)
    arms = {arm.name: arm for arm in settings.arms}
    for claim in settings.claims:
        _check_claim(claim, arms)


def check_trials(settings: Settings, trials: Iterable[Trial]) -> None:
    """Trials do workloads that are there."""
    _check_workloads("trial of", ((trial.arm, trial.workload) for trial in trials), settings.workloads)


def _check_workloads(what: str, asked: Iterable[tuple[str, str]], there: Collection[str]) -> None:
    for name, workload in asked:
        if workload not in there:
            raise ValueError(f"{what} {name!r}: there is no workload {workload!r}")


def _check_claim(claim: AskedClaim, arms: Mapping[str, Arm]) -> None:
    of_sweep = claim.kind == "optimum"
    sides = 0 if of_sweep else 4 if claim.kind == "narrower" else 2
    named = [name is not None for name in (claim.a, claim.b, claim.c, claim.d)]
    if named != [True] * sides + [False] * (4 - sides) or of_sweep != bool(claim.arms):
        raise ValueError(f"claim {claim.name!r}: it does not name what a claim of kind {claim.kind!r} is made of")
    if of_sweep and len(claim.arms) < FEWEST_IN_SWEEP:
        raise ValueError(f"claim {claim.name!r}: a sweep has {FEWEST_IN_SWEEP} arms or more, and not {claim.arms}")
    for name in claim.arms:
        if name not in arms or not arms[name].axes:
            raise ValueError(f"claim {claim.name!r}: there is no arm {name!r} with a place on an axis")
