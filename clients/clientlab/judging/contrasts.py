"""Figures by round and cautions of arms, and arms that differ in one thing only: environment, link or route."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from clientlab.analysis.precision import confidence_of
from clientlab.analysis.ratios import Ratio
from clientlab.analysis.simultaneous import paired_ratios
from clientlab.judging.cautions import cautions_of
from clientlab.judging.ranking import levels_of
from clientlab.results.document import Caution, Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY, cost_of, of_claim, ranked_by, ranking_of
from clientlab.results.plan import Arm, AxisValue, Claim
from clientlab.results.trial import Trial


def by_round(run: Run, arm: str, figure: Figure) -> dict[int, float]:
    """Round → figure of an arm, without trials that had errors: they did less work. Some figures state just that."""
    return {
        trial.round: value
        for trial in run.trials_of(arm)
        if figure.despite_errors or not trial.errors
        for value in figure.values([trial])
        if value > 0
    }


def arms_of_claim(claim: Claim) -> frozenset[str]:
    """The names of the arms that a claim is about."""
    return frozenset(name for name in (claim.a, claim.b, claim.c, claim.d, *claim.arms) if name is not None)


class ClaimEvidence:
    """The trials of a run, as claims need them. A run file may have hundreds of claims about the same trials."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.arms: dict[str, Arm] = {arm.name: arm for arm in run.experiment.arms}
        self.done = cache(self._done)
        self.failed_rounds = cache(self._failed_rounds)
        self.has_bounds = cache(self._has_bounds)
        self._series = cache(self._by_round)
        self._cautions = cache(self._cautions_of)

    def series(self, arm: str, figure: str) -> dict[int, float]:
        """Round → the figure that claims call so, of an arm, without trials that had errors."""
        return self._series(arm, of_claim(figure).key)

    def cautions(self, claim: Claim) -> list[str]:
        """The kinds of the cautions that the trials of the claim's arms give rise to, whatever other arms there are.

        A caution that doubts certain figures concerns only the claims that compare one of them.
        """
        key = of_claim(claim.figure).key
        found = self._cautions(arms_of_claim(claim))
        return [one.kind for one in found if one.arms and (not one.figures or key in one.figures)]

    def sweep(self, claim: Claim) -> dict[AxisValue, str]:
        """Value of the axis → arm, of a claim about a sweep; empty for all others."""
        names = frozenset(claim.arms)
        return {next(iter(arm.axes.values())): name for name, arm in self.arms.items() if name in names}

    def _done(self, arm: str) -> list[Trial]:
        return [trial for trial in self.run.trials_of(arm) if trial.status == "done"]

    def _failed_rounds(self, arm: str) -> int:
        return sum(bool(trial.errors) for trial in self.done(arm))

    def _has_bounds(self, arm: str, figure: str) -> bool:
        return of_claim(figure).has_bounds(self.done(arm))

    def _by_round(self, arm: str, figure: str) -> dict[int, float]:
        return by_round(self.run, arm, of_claim(figure))

    def _cautions_of(self, names: frozenset[str]) -> list[Caution]:
        run = self.run
        arms = [arm for arm in run.experiment.arms if arm.name in names]
        # Listing the unavailable arms for each claim would take long.
        plan = run.experiment.model_copy(update={"arms": arms, "unavailable_arms": {}})
        trials = sorted((trial for name in names for trial in run.trials_of(name)), key=lambda trial: trial.order)
        return cautions_of(run.model_copy(update={"trials": trials, "experiment": plan}))


_FIGURES = 2

ArmPair = tuple[Arm, Arm]
"""An arm, and the first arm of the experiment that differs from it in one thing only."""


@dataclass(frozen=True)
class Contrast:
    """An arm, and the same arm in the first environment, behind the first link, or on the first route.

    How many times as much it takes.

    `time`: of the figure that arms are ranked by, `figure`; `cpu`: of CPU time per request; None if no round has both.
    The intervals of the contrasts that are computed together hold together. Trials with errors do not count.
    """

    arm: Arm
    base: Arm
    figure: Figure
    time: Ratio | None
    cpu: Ratio | None


def contrasts(
    run: Run, found: Sequence[ArmPair], confidence: float | None = None, *, cpu_too: bool = True
) -> list[Contrast]:
    """The contrasts of these pairs of the run's arms, in their order. `confidence`: None for the run's own.

    `cpu_too`: also of the CPU time.
    """
    # The error is divided among both figures (Bonferroni).
    level = 1 - (1 - (confidence or confidence_of(run.experiment.precision))) / (_FIGURES if cpu_too else 1)
    cpu = BY_KEY["cpu"]
    times = [({}, {}) if _is_bound(run, *pair) else (_times(run, pair[0]), _times(run, pair[1])) for pair in found]
    used = [
        (by_round(run, arm.name, cpu), by_round(run, base.name, cpu)) if cpu_too else ({}, {}) for arm, base in found
    ]
    figures = [ranked_by(ranking_of(run.trials_of(arm.name))) for arm, _ in found]
    levels = levels_of(run) if found else {}
    used_levels = {name: value for name in levels if (value := cpu.over_rounds(run.trials_of(name)))}
    return [
        Contrast(arm, base, figure, _as_shown(levels, arm, base, time), _as_shown(used_levels, arm, base, cpu_ratio))
        for (arm, base), figure, time, cpu_ratio in zip(
            found, figures, paired_ratios(times, level), paired_ratios(used, level), strict=True
        )
    ]


def _as_shown(shown: Mapping[str, float], arm: Arm, base: Arm, ratio: Ratio | None) -> Ratio | None:
    """The ratio at the figures that reports show of both; as it is where an arm had errors."""
    if ratio is None or not {arm.name, base.name} <= shown.keys():
        return ratio
    return ratio.with_value(shown[arm.name] / shown[base.name])


def route_contrasts(run: Run, confidence: float | None = None) -> list[Contrast]:
    """What another route costs in time. The client's CPU time does not depend on what is behind it."""
    return contrasts(run, route_pairs(run.experiment.arms), confidence, cpu_too=False)


def environment_pairs(arms: Iterable[Arm]) -> list[ArmPair]:
    """Each arm with the same arm in the first environment that has it."""
    return _pairs((arm for arm in arms if arm.environment is not None), lambda arm: arm.link)


def link_pairs(arms: Iterable[Arm]) -> list[ArmPair]:
    """Each arm with the same arm behind the first link that has it, or without a link if that comes first."""
    found = _pairs(arms, lambda arm: arm.environment)
    return [(arm, first) for arm, first in found if arm.link != first.link]


def route_pairs(arms: Iterable[Arm]) -> list[ArmPair]:
    """Each arm with the same arm on the first route that has it."""
    families: dict[Hashable, list[Arm]] = {}
    for arm in arms:
        kept = (arm.strategy, arm.upstream, arm.workload, arm.environment, str(arm.link))
        families.setdefault(kept, []).append(arm)
    return [(arm, family[0]) for family in families.values() for arm in family[1:]]


def _pairs(arms: Iterable[Arm], kept: Callable[[Arm], Hashable]) -> list[ArmPair]:
    """Each arm with the first one that has its strategy, way and workload, and what is `kept`."""
    families: dict[Hashable, list[Arm]] = {}
    for arm in arms:
        families.setdefault((arm.strategy, arm.upstream, arm.route, arm.workload, kept(arm)), []).append(arm)
    return [(arm, family[0]) for family in families.values() for arm in family[1:]]


def _is_bound(run: Run, *arms: Arm) -> bool:
    """Whether a p99 is only a lower bound in a round of these arms: the rounds without failures would mislead."""
    own = (trial for arm in arms for trial in run.trials_of(arm.name))
    return any(trial.status == "done" and ranked_by(ranking_of([trial])).has_bounds([trial]) for trial in own)


def _times(run: Run, arm: Arm) -> dict[int, float]:
    """Round → seconds of the figure that the arm is ranked by."""
    return {
        trial.round: cost_of(trial) for trial in run.trials_of(arm.name) if trial.status == "done" and not trial.errors
    }
