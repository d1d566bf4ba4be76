"""Ratios of arms that differ in one thing only: environment, link or route."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clientlab.analysis.decisions import confidence_of
from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.analysis.simultaneous import Comparisons, paired_ratios
from clientlab.judging.ranking import ArmKey, arm_key, compared_by, is_least, ranked, shortfall
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY, cost_of, ranked_by
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial

ArmPair = tuple[Arm, Arm]
"""An arm, and the arm that it is compared with."""


@dataclass(frozen=True)
class Contrast:
    """How many times as much an arm takes as `base`: the same arm in another environment, link or route.

    `time`: of the figure that arms are ranked by, `figure`; `cpu`: of CPU time per request; None if no round has both.
    Two arms that are ranked together have the ratio of their ranking, so a sentence repeats what the table shows. The
    intervals of all others hold together. Trials with errors do not count.
    """

    arm: Arm
    base: Arm
    figure: Figure
    time: Ratio | None
    cpu: Ratio | None


def clean_rounds(run: Run, arm: str, value_of: Callable[[Trial], float | None]) -> dict[int, float]:
    """Return round → positive figure of an arm, without trials that had errors: they did less work.

    Empty for an arm that fell short of its concurrency.
    """
    trials = run.trials_of(arm)
    if shortfall(trials):
        return {}
    clean = [trial for trial in trials if trial.status == "done" and not trial.errors]
    return {trial.round: float(value) for trial in clean if (value := value_of(trial)) is not None and value > 0}


def pair_ratio(
    run: Run,
    figure: Figure,
    pair: ArmPair,
    confidence: float | None = None,
    compared: Mapping[ArmKey, Comparisons] | None = None,
) -> Ratio | None:
    """Return the ratio of a figure of two arms: that of the tables if they are ranked together, else one of their own.

    None if either has no round without errors, or fell short of its concurrency. `compared`: what `compared_by`
    returns, if it is known.
    """
    these, those = (clean_rounds(run, arm.name, figure.of) for arm in pair)
    if not these or not those:
        return None
    found = _together(compared_by(run, figure, confidence) if compared is None else compared, pair)
    if found is not None:
        return found.ratio(arm_key(pair[0])[1], arm_key(pair[1])[1])
    return paired_ratio(these, those, confidence or confidence_of(run.experiment.precision))


def contrasts(
    run: Run, pairs: Sequence[ArmPair], confidence: float | None = None, *, cpu_too: bool = True
) -> list[Contrast]:
    """Return the contrasts of these pairs of arms, in their order. `confidence`: None for the run's own."""
    if not pairs:
        return []
    cpu = BY_KEY["cpu"]
    ranking = {(group, one.name): one.compared for group, rows in ranked(run, confidence).items() for one in rows}
    arms = {arm.name for pair in pairs for arm in pair}
    # Rounds without failures would mislead if a p99 of another round is only a lower bound.
    times = {name: {} if any(map(is_least, run.trials_of(name))) else clean_rounds(run, name, cost_of) for name in arms}
    # The permitted error is divided between both figures (Bonferroni).
    level = 1 - (1 - (confidence or confidence_of(run.experiment.precision))) / (2 if cpu_too else 1)
    of_time = _pair_ratios(pairs, times, ranking, level)
    of_cpu: list[Ratio | None] = [None] * len(pairs)
    if cpu_too:
        used = {name: clean_rounds(run, name, cpu.of) for name in arms}
        of_cpu = _pair_ratios(pairs, used, compared_by(run, cpu, confidence), level)
    figures = [ranked_by(open_load=any(trial.open_load for trial in run.trials_of(arm.name))) for arm, _ in pairs]
    return [
        Contrast(*pair, figure, time, cpu_ratio)
        for pair, figure, time, cpu_ratio in zip(pairs, figures, of_time, of_cpu, strict=True)
    ]


def _pair_ratios(
    pairs: Sequence[ArmPair],
    series: Mapping[str, Mapping[int, float]],
    compared: Mapping[ArmKey, Comparisons],
    confidence: float,
) -> list[Ratio | None]:
    """Return the ratio of each pair: that of their table if they are ranked together, else one of the pair's own."""
    ratios: dict[int, Ratio | None] = {}
    for index, (arm, base) in enumerate(pairs):
        if found := _together(compared, (arm, base)):
            both = series[arm.name] and series[base.name]
            ratios[index] = found.ratio(arm_key(arm)[1], arm_key(base)[1]) if both else None
    apart = [index for index in range(len(pairs)) if index not in ratios]
    own = paired_ratios([(series[pairs[index][0].name], series[pairs[index][1].name]) for index in apart], confidence)
    ratios |= dict(zip(apart, own, strict=True))
    return [ratios[index] for index in range(len(pairs))]


def _together(compared: Mapping[ArmKey, Comparisons], pair: ArmPair) -> Comparisons | None:
    """Return the comparisons of both arms if they are ranked together."""
    one, other = map(arm_key, pair)
    found = compared.get(one)
    return found if one != other and found is compared.get(other) else None


def route_contrasts(run: Run, confidence: float | None = None) -> list[Contrast]:
    """Return what another route costs in time. The client's CPU time does not depend on what is behind it."""
    return contrasts(run, route_pairs(run.experiment.arms), confidence, cpu_too=False)


def environment_pairs(arms: Iterable[Arm]) -> list[ArmPair]:
    """Return each arm with the same arm in the first environment that has it."""
    return _pairs(
        (arm for arm in arms if arm.environment),
        lambda arm: (arm.strategy, arm.upstream, arm.route, arm.workload, arm.link),
    )


def link_pairs(arms: Iterable[Arm]) -> list[ArmPair]:
    """Return each arm with the same arm behind the first link that has it, or without a link if that comes first."""
    found = _pairs(arms, lambda arm: (arm.strategy, arm.upstream, arm.route, arm.workload, arm.environment))
    return [(arm, first) for arm, first in found if arm.link != first.link]


def route_pairs(arms: Iterable[Arm]) -> list[ArmPair]:
    """Return each arm with the same arm on the first route that has it."""
    return _pairs(arms, lambda arm: (arm.strategy, arm.upstream, arm.workload, arm.environment, str(arm.link)))


def _pairs(arms: Iterable[Arm], in_common: Callable[[Arm], Hashable]) -> list[ArmPair]:
    """Return each arm with the first one that has the same in common."""
    families: dict[Hashable, list[Arm]] = {}
    for arm in arms:
        families.setdefault(in_common(arm), []).append(arm)
    return [(arm, family[0]) for family in families.values() for arm in family[1:]]
