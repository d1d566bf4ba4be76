"""Arms that differ in their environment only, or in their link only, beside each other: paired by round."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from clientlab.analysis.precision import confidence_of
from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.judging.evidence import by_round
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY, cost_of, ranked_by
from clientlab.results.plan import Arm

_FIGURES = 2

ArmPair = tuple[Arm, Arm]
"""An arm, and the first arm of the experiment that differs from it in one thing only."""


@dataclass(frozen=True)
class Contrast:
    """An arm, and the same arm in the first environment or behind the first link: how many times as much it takes.

    `time`: of the figure that arms are ranked by, `figure`; `cpu`: of CPU time per request; None if no round has both.
    The intervals of the contrasts that are computed together hold together. Trials with errors do not count.
    """

    arm: Arm
    base: Arm
    figure: Figure
    time: Ratio | None
    cpu: Ratio | None


def contrasts(run: Run, found: Sequence[ArmPair]) -> list[Contrast]:
    """The contrasts of these pairs of the run's arms, in their order."""
    # Bonferroni: the error is divided among all ratios.
    level = 1 - (1 - confidence_of(run.experiment.precision)) / max(1, _FIGURES * len(found))
    return [
        Contrast(
            arm,
            base,
            ranked_by(open_load=any(trial.open_load is not None for trial in run.trials_of(arm.name))),
            None if _is_bound(run, arm, base) else paired_ratio(_times(run, arm), _times(run, base), level),
            paired_ratio(by_round(run, arm.name, BY_KEY["cpu"]), by_round(run, base.name, BY_KEY["cpu"]), level),
        )
        for arm, base in found
    ]


def environment_pairs(arms: Iterable[Arm]) -> list[ArmPair]:
    """Each arm with the same arm in the first environment that has it."""
    return _pairs((arm for arm in arms if arm.environment is not None), lambda arm: arm.link)


def link_pairs(arms: Iterable[Arm]) -> list[ArmPair]:
    """Each arm with the same arm behind the first link that has it, or without a link if that comes first."""
    found = _pairs(arms, lambda arm: arm.environment)
    return [(arm, first) for arm, first in found if arm.link != first.link]


def _pairs(arms: Iterable[Arm], kept: Callable[[Arm], Hashable]) -> list[ArmPair]:
    """Each arm with the first one that has its strategy, way and workload, and what is `kept`."""
    families: dict[Hashable, list[Arm]] = {}
    for arm in arms:
        families.setdefault((arm.strategy, arm.upstream, arm.route, arm.workload, kept(arm)), []).append(arm)
    return [(arm, family[0]) for family in families.values() for arm in family[1:]]


def _is_bound(run: Run, *arms: Arm) -> bool:
    """Whether a p99 is only a lower bound in a round of these arms: the rounds without failures would mislead."""
    own = (trial for arm in arms for trial in run.trials_of(arm.name))
    trials = [trial for trial in own if trial.status == "done" and trial.open_load]
    return ranked_by(open_load=True).has_bounds(trials)


def _times(run: Run, arm: Arm) -> dict[int, float]:
    """Round → seconds of the figure that the arm is ranked by."""
    return {
        trial.round: cost_of(trial) for trial in run.trials_of(arm.name) if trial.status == "done" and not trial.errors
    }
