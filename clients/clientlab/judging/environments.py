"""Arms that differ in their environment only, beside each other: paired by round, as arms of one run are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clientlab.analysis.precision import confidence_of
from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.judging.claims import by_round
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY, cost_of, ranked_by
from clientlab.results.plan import Arm

_FIGURES = 2


@dataclass(frozen=True)
class Contrast:
    """An arm, and the same arm in the first environment that has it: how many times as much the arm takes.

    `time`: of the figure that arms are ranked by, `figure`; `cpu`: of CPU time per request; None if no round has both.
    The intervals of all contrasts of a run hold together. Trials with errors do not count.
    """

    arm: Arm
    base: Arm
    figure: Figure
    time: Ratio | None
    cpu: Ratio | None


def contrasts(run: Run) -> list[Contrast]:
    """Every such pair of the run, in the experiment's order; none without environments."""
    found = pairs_of(run.experiment.arms)
    # Bonferroni: the error is divided among all ratios.
    level = 1 - (1 - confidence_of(run.experiment.precision)) / max(1, _FIGURES * len(found))
    return [
        Contrast(
            arm,
            base,
            ranked_by(open_load=any(trial.open_load is not None for trial in run.trials if trial.arm == arm.name)),
            None if _is_bound(run, arm, base) else paired_ratio(_times(run, arm), _times(run, base), level),
            paired_ratio(by_round(run, arm.name, BY_KEY["cpu"]), by_round(run, base.name, BY_KEY["cpu"]), level),
        )
        for arm, base in found
    ]


def pairs_of(arms: Iterable[Arm]) -> list[tuple[Arm, Arm]]:
    """Each arm with the same arm in the first environment that has it."""
    families: dict[tuple[str, str, str, str], list[Arm]] = {}
    for arm in arms:
        if arm.environment is not None:
            families.setdefault((arm.strategy, arm.upstream, arm.route, arm.workload), []).append(arm)
    return [(arm, family[0]) for family in families.values() for arm in family[1:]]


def _is_bound(run: Run, *arms: Arm) -> bool:
    """Whether a p99 is only a lower bound in a round of these arms: the rounds without failures would mislead."""
    names = {arm.name for arm in arms}
    trials = [trial for trial in run.trials if trial.arm in names and trial.status == "done" and trial.open_load]
    return ranked_by(open_load=True).has_bounds(trials)


def _times(run: Run, arm: Arm) -> dict[int, float]:
    """Round → seconds of the figure that the arm is ranked by."""
    return {
        trial.round: cost_of(trial)
        for trial in run.trials
        if trial.arm == arm.name and trial.status == "done" and not trial.errors
    }
