"""Figures by round and cautions of arms, and arms that differ in one thing only: environment, link or route."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from clientlab.analysis.precision import confidence_of
from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.analysis.simultaneous import paired_ratios
from clientlab.analysis.standings import Comparisons
from clientlab.judging.cautions import cautions_of
from clientlab.judging.ranking import ArmKey, arm_key, compared_by, ranked, shortfall
from clientlab.results.document import Caution, Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY, cost_of, of_claim, ranked_by
from clientlab.results.plan import Arm, AxisValue, Claim
from clientlab.results.trial import Trial


def by_round(run: Run, arm: str, figure: Figure) -> dict[int, float]:
    """Round → figure of an arm, without trials that had errors: they did less work."""
    return {
        trial.round: value
        for trial in run.trials_of(arm)
        if not trial.errors
        for value in figure.values([trial])
        if value > 0
    }


def arms_of_claim(claim: Claim) -> frozenset[str]:
    """The names of the arms that a claim is about."""
    return frozenset(name for name in (claim.a, claim.b, claim.c, claim.d, *claim.arms) if name is not None)


class ClaimEvidence:
    """The trials of a run, as claims need them. What all claims about a figure need is computed once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.arms: dict[str, Arm] = {arm.name: arm for arm in run.experiment.arms}
        self._compared = cache(lambda key, confidence: compared_by(run, BY_KEY[key], confidence))
        self._cautions = cache(self._cautions_of)

    def done(self, arm: str) -> list[Trial]:
        """Return the finished trials of an arm."""
        return [trial for trial in self.run.trials_of(arm) if trial.status == "done"]

    def shortfall(self, arm: str) -> str | None:
        """Return why an arm is not compared; None if it is."""
        return shortfall(self.run.trials_of(arm))

    def series(self, arm: str, figure: str) -> dict[int, float]:
        """Round → the figure that claims call so, of an arm, without trials that had errors.

        Empty for an arm that fell short of its concurrency.
        """
        return {} if self.shortfall(arm) else by_round(self.run, arm, of_claim(figure))

    def ratio(self, claim: Claim, confidence: float) -> Ratio | None:
        """The ratio of b to a (see `pair_ratio`)."""
        figure = of_claim(claim.figure)
        pair = self.arms[claim.b or ""], self.arms[claim.a or ""]
        return pair_ratio(self.run, figure, pair, confidence, self._compared(figure.key, confidence))

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

    def _cautions_of(self, names: frozenset[str]) -> list[Caution]:
        run = self.run
        arms = [arm for arm in run.experiment.arms if arm.name in names]
        # Listing the unavailable arms for each claim would take long.
        plan = run.experiment.model_copy(update={"arms": arms, "unavailable_arms": {}})
        trials = sorted((trial for name in names for trial in run.trials_of(name)), key=lambda trial: trial.order)
        return cautions_of(run.model_copy(update={"trials": trials, "experiment": plan}))


_FIGURES = 2

ArmPair = tuple[Arm, Arm]
"""An arm, and the arm that it is compared with."""


def pair_ratio(
    run: Run,
    figure: Figure,
    pair: ArmPair,
    confidence: float | None = None,
    compared: Mapping[ArmKey, Comparisons] | None = None,
) -> Ratio | None:
    """Return the ratio of a figure of two arms: that of the tables if they are ranked together, else one of their own.

    Return None if either has no round without errors, or fell short of its concurrency. `compared`: what `compared_by`
    returns, if it is known.
    """
    these, those = (by_round(run, arm.name, figure) for arm in pair)
    if not these or not those or any(shortfall(run.trials_of(arm.name)) for arm in pair):
        return None
    its, that = map(arm_key, pair)
    found = compared_by(run, figure, confidence) if compared is None else compared
    if its != that and its in found and found[its] is found.get(that):
        return found[its].ratio(its[1], that[1])
    return paired_ratio(these, those, confidence or confidence_of(run.experiment.precision))


@dataclass(frozen=True)
class Contrast:
    """An arm, and the same arm in the first environment, behind the first link, or on the first route.

    How many times as much it takes.

    `time`: of the figure that arms are ranked by, `figure`; `cpu`: of CPU time per request; None if no round has both.
    Two arms that are ranked together have the ratio of their ranking, so a sentence repeats what the table shows. The
    intervals of all others hold together. Trials with errors do not count.
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
    if not found:
        return []
    wanted = confidence or confidence_of(run.experiment.precision)
    cpu = BY_KEY["cpu"]
    ranking = {(group, one.name): one.compared for group, rows in ranked(run, confidence).items() for one in rows}
    arms = {arm.name: arm for pair in found for arm in pair}
    short = {name for name in arms if shortfall(run.trials_of(name))}
    times = {name: {} if name in short or _is_bound(run, arm) else _times(run, arm) for name, arm in arms.items()}
    used = {name: {} if name in short else by_round(run, name, cpu) for name in arms}
    # The error of what is compared here is divided among both figures (Bonferroni).
    level = 1 - (1 - wanted) / (_FIGURES if cpu_too else 1)
    of_time = _ratios(found, times, ranking, level)
    of_cpu = _ratios(found, used, compared_by(run, cpu, confidence), level) if cpu_too else [None] * len(found)
    figures = [
        ranked_by(open_load=any(trial.open_load is not None for trial in run.trials_of(arm.name))) for arm, _ in found
    ]
    return [
        Contrast(arm, base, figure, time, cpu_ratio)
        for (arm, base), figure, time, cpu_ratio in zip(found, figures, of_time, of_cpu, strict=True)
    ]


def _ratios(
    found: Sequence[ArmPair],
    series: Mapping[str, Mapping[int, float]],
    together: Mapping[ArmKey, Comparisons],
    confidence: float,
) -> list[Ratio | None]:
    """The ratio of each pair: that of their table if they are ranked together, else one of the pair's own.

    `series`: arm → round → figure, without trials that had errors.
    """
    ratios: dict[int, Ratio | None] = {}
    for index, (arm, base) in enumerate(found):
        its, that = arm_key(arm), arm_key(base)
        if its != that and its in together and together[its] is together.get(that):
            both = series[arm.name] and series[base.name]
            ratios[index] = together[its].ratio(its[1], that[1]) if both else None
    apart = [index for index in range(len(found)) if index not in ratios]
    own = paired_ratios([(series[found[index][0].name], series[found[index][1].name]) for index in apart], confidence)
    ratios |= dict(zip(apart, own, strict=True))
    return [ratios[index] for index in range(len(found))]


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


def _is_bound(run: Run, arm: Arm) -> bool:
    """Whether a p99 of an arm is only a lower bound in a round: the rounds without failures would mislead."""
    trials = [trial for trial in run.trials_of(arm.name) if trial.status == "done" and trial.open_load]
    return ranked_by(open_load=True).has_bounds(trials)


def _times(run: Run, arm: Arm) -> dict[int, float]:
    """Round → seconds of the figure that the arm is ranked by."""
    return {
        trial.round: cost_of(trial) for trial in run.trials_of(arm.name) if trial.status == "done" and not trial.errors
    }
