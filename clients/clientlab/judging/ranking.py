"""Comparisons within a run: the ranking of its arms, and pairs that differ in one part.

Arms are ranked against those with the same workload, upstream, route and link, and with
the same load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import median
from typing import Literal, NamedTuple

from clientlab.judging.bodies import find_unlike_bodies
from clientlab.judging.steadiness import find_unsteadiness
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, Figure, cost_of, ranked_by
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial
from clientlab.statistics.decisions import confidence_of
from clientlab.statistics.ratios import (
    FEWEST_ROUNDS,
    Estimate,
    Ratio,
    Series,
    divide_error,
    exponentiate,
    paired_difference,
    paired_ratio,
)
from clientlab.statistics.simultaneous import Comparisons, compare_arms, paired_ratios
from clientlab.workload.load import expected_schedule
from clientlab.workload.values import Stages


class GroupKey(NamedTuple):
    """What the arms of a group have in common."""

    workload: str
    """Its name in the experiment, also if a sweep turns it into several."""

    upstream: str
    route: str

    link: str | None = None
    """As text; None without one."""

    @property
    def title(self) -> str:
        """The group in a heading."""
        parts = [self.workload, f"{self.upstream} upstream", self.route]
        if self.link is not None:
            parts.append(f"link of {self.link}")
        return " · ".join(parts)


ArmKey = tuple[GroupKey, str]  # the group of an arm, and its name in the group
ArmPair = tuple[Arm, Arm]  # an arm, and the arm that it is compared with
ValueOf = Callable[[Trial], float | None]


class OfferedLoad(NamedTuple):
    """The load of arms that are compared."""

    concurrency: int | None
    """None if it does not distinguish them."""

    rate: float | None = None
    """Of an open load."""

    stages: Stages | None = None


@dataclass(frozen=True)
class Standing:
    """An arm in its group, beside the other arms of its class: those with its load."""

    name: str

    level: float
    """Typical seconds: the median of the reference times the ratio.

    The median of each arm alone would contradict the ratios, which are paired by round.
    """

    ratio: Ratio | None
    """Its ratio to the reference.

    None if no round has both arms, or if the figure of one is only a lower bound.
    """

    to_baseline: Ratio | None
    """The same to the baseline; None also without one."""

    reference: str
    """The fastest arm of its class."""

    compared: Comparisons
    """All ratios of the class."""

    fell_short: bool = False
    """A trial never reached its concurrency, or the arm is `unlike` the others.

    Then it is last and has no ratio.
    """

    unlike: str | None = None
    """Why it is: it received other bytes."""

    bounded: bool = False
    """In some round, its figure is only a lower bound."""

    @property
    def fastest(self) -> bool:
        """Whether the other arms of its class are compared with it."""
        return self.name == self.reference and not self.fell_short and not self.bounded


def rank_arms(
    run: Run, confidence: float | None = None
) -> dict[GroupKey, list[Standing]]:
    """Return the arms of each group that have finished trials, fastest first.

    Arms are ranked by `figures.ranked_by`. The class with the fastest arm comes first.
    Classes are ranked apart: if arms wait for the server, 32 requests in flight are up
    to 32 times as fast as one, whatever the clients do. `confidence`: that all
    intervals of the run hold together; None for the run's own.
    """
    classes = _classes(run)
    level = _divide_among(classes, run, confidence)
    key = baseline_of(run)
    baseline = next((arm for arm in chain(*classes) if arm.key == key), None)
    sizes = Counter(arm.group for arm in chain(*classes))
    standings: dict[GroupKey, list[Standing]] = {group: [] for group in sizes}
    for arms in sorted(classes, key=_fastest):
        group = arms[0].group
        alone = divide_error(level, sizes[group] - 1)
        standings[group] += _rank_class(arms, baseline, level, alone)
    return standings


@dataclass
class _Ranked:
    """An arm with finished trials, and what ranks it."""

    group: GroupKey
    name: str
    trials: Sequence[Trial]

    unlike: str | None = None
    """Why it did not do the work of the other arms of its class."""

    @property
    def key(self) -> ArmKey:
        return self.group, self.name

    @cached_property
    def is_short(self) -> bool:
        return bool(self.unlike or shortfall(self.trials))

    @cached_property
    def is_bounded(self) -> bool:
        return any(map(is_least, self.trials))

    @property
    def is_known(self) -> bool:
        return not self.is_short and not self.is_bounded

    @property
    def has_errors(self) -> bool:
        return any(trial.has_spoiling_errors for trial in self.trials)

    @cached_property
    def median(self) -> float:
        return median(map(cost_of, self.trials))

    @cached_property
    def costs(self) -> dict[int, float]:
        return by_round(self.trials, cost_of)


def _classes(run: Run) -> list[list[_Ranked]]:
    """Return the arms that have finished trials, by group and load."""
    classes: dict[tuple[GroupKey, OfferedLoad], list[_Ranked]] = {}
    for group, trials_by_name in finished_by_group(run).items():
        for name, trials in trials_by_name.items():
            key = (group, load_of(run, trials[0]))
            arm = _Ranked(group, name, trials)
            classes.setdefault(key, []).append(arm)
    for arms in classes.values():
        whole = {arm.name: arm.trials for arm in arms if not shortfall(arm.trials)}
        unlike = find_unlike_bodies(whole)
        for arm in arms:
            arm.unlike = unlike.get(arm.name)
    return list(classes.values())


def _divide_among(
    classes: Sequence[Sequence[_Ranked]],
    run: Run,
    confidence: float | None,
) -> float:
    """Return the confidence of the intervals of each class.

    Those of all classes hold together: classes of several arms divide the permitted
    error among them.
    """
    several = [arms for arms in classes if len(arms) > 1]
    level = confidence or confidence_of(run.experiment.precision)
    return divide_error(level, len(several))


def _fastest(arms: Sequence[_Ranked]) -> tuple[bool, float]:
    return min((arm.is_short, arm.median) for arm in arms)


def _rank_class(
    arms: Sequence[_Ranked],
    baseline: _Ranked | None,
    confidence: float,
    alone: float,
) -> list[Standing]:
    """Return the arms of a class, fastest first.

    The reference is ranked and has no errors, if there is such an arm: an arm that
    fails fast is no fair standard. `alone`: the confidence of ratios to a baseline of
    another class of the group.
    """
    costs = {arm.name: arm.costs for arm in arms}
    known = [arm.name for arm in arms if arm.is_known]
    compared = compare_arms(costs, confidence, known)
    levels = compared.levels

    def place(arm: _Ranked) -> tuple[bool, bool, float]:
        # Arms without a ratio come last, because nobody knows how far behind they are.
        return arm.is_short, arm.is_bounded, levels[arm.name]

    arms = sorted(arms, key=place)
    sound = [arm for arm in arms if not arm.is_short and not arm.has_errors]
    [reference, *_] = sound or arms
    standings = []
    for arm in arms:
        level = arm.median
        if not arm.is_short:
            ratio = exponentiate(levels[arm.name] - levels[reference.name])
            level = reference.median * ratio
        standing = Standing(
            arm.name,
            level,
            compared.ratio(arm.name, reference.name),
            _ratio_to_baseline(arm, baseline, compared, alone),
            reference.name,
            compared,
            arm.is_short,
            arm.unlike,
            arm.is_bounded,
        )
        standings.append(standing)
    return standings


def _ratio_to_baseline(
    arm: _Ranked, baseline: _Ranked | None, compared: Comparisons, confidence: float
) -> Ratio | None:
    """Return the ratio of an arm to the baseline of its group.

    `compared`: the class of the arm. `confidence`: if the baseline is in another class.
    """
    if baseline is None or baseline.group != arm.group:
        return None
    if baseline.name in compared.series:
        return compared.ratio(arm.name, baseline.name)
    if arm.is_known and baseline.is_known:
        return paired_ratio(arm.costs, baseline.costs, confidence)
    return None


def compare_by(
    run: Run,
    figure: Figure,
    confidence: float | None = None,
) -> dict[ArmKey, Comparisons]:
    """Return the comparisons of each arm within its class, by any figure.

    An arm has no ratios if its figure is only a lower bound in some round, or if it
    fell short of its concurrency.
    """
    classes = _classes(run)
    level = _divide_among(classes, run, confidence)
    comparisons: dict[ArmKey, Comparisons] = {}
    for arms in classes:
        series = {}
        known = []
        for arm in arms:
            values = by_round(arm.trials, figure.of)
            if not values:
                continue
            series[arm.name] = values
            if not arm.is_short and not figure.has_bounds(arm.trials):
                known.append(arm.name)
        if known:
            compared = compare_arms(series, level, known)
            comparisons |= {(arms[0].group, name): compared for name in series}
    return comparisons


def unlike_arms(run: Run) -> dict[str, str]:
    """Return why arms did not do the work of those that they are ranked with.

    The keys are their full names.
    """
    reasons = {arm.key: arm.unlike for arm in chain(*_classes(run))}
    named = {}
    for arm in run.experiment.arms:
        reason = reasons.get(arm_key(arm))
        if reason is not None:
            named[arm.name] = reason
    return named


def by_round(trials: Sequence[Trial], value_of: ValueOf) -> dict[int, float]:
    """Return the positive figures by round.

    Rounds with failed requests count only if the arm has no others.
    """
    clean = [trial for trial in trials if not trial.has_spoiling_errors]
    values = {}
    for trial in clean or trials:
        value = value_of(trial)
        if value is not None and value > 0:
            values[trial.planned.round] = value
    return values


def clean_rounds(
    run: Run,
    arm: str,
    value_of: ValueOf,
) -> dict[int, float]:
    """Return an arm's positive figures by round, without trials with errors.

    Empty if it cannot be ranked.
    """
    trials = run.finished_trials_of(arm)
    if shortfall(trials) or arm in unlike_arms(run):
        return {}
    clean = [trial for trial in trials if not trial.has_spoiling_errors]
    return by_round(clean, value_of)


@dataclass(frozen=True)
class Contrast:
    """How many times as much an arm takes as `base`.

    That one differs in its environment, server, link or route only. Arms that are
    ranked together have the ratio that the table shows; the intervals of all others
    hold together.
    """

    arm: Arm
    base: Arm

    figure: Figure
    """The figure that ranks arms."""

    time: Ratio | None
    """Its ratio; None if no round has both."""

    cpu: Ratio | None
    """The ratio of CPU time per request."""


_LATENCIES = (BY_KEY["p50"], BY_KEY["p99"], BY_KEY["first_event_p50"])
"""Figures that reports compare in seconds."""


def latency_differences(
    run: Run, pairs: Sequence[ArmPair]
) -> dict[tuple[str, str], dict[str, Estimate]]:
    """Return the differences of the latencies of each pair, in seconds.

    The keys are the names of both arms, and the key of the figure. All intervals hold
    together (Bonferroni). Latencies are left out if a round has a lower bound only.
    """
    trials: list[Trial] = []
    for arm, _ in pairs:
        trials += run.trials_of(arm.name)
    known = [figure for figure in _LATENCIES if figure.values(trials)]
    level = confidence_of(run.experiment.precision)
    confidence = divide_error(level, len(pairs) * len(known))
    differences: dict[tuple[str, str], dict[str, Estimate]] = {}
    for arm, base in pairs:
        by_key = {}
        for figure in known:
            difference = pair_difference(run, figure, (arm, base), confidence)
            if difference is not None:
                by_key[figure.key] = difference
        differences[arm.name, base.name] = by_key
    return differences


def fewest_rounds(figure: Figure) -> int:
    """Return how many rounds the interval of a difference needs.

    A p99 of few rounds varies too much.
    """
    return 5 if figure.key == "p99" else FEWEST_ROUNDS


def pair_difference(
    run: Run,
    figure: Figure,
    pair: ArmPair,
    confidence: float,
) -> Estimate | None:
    """Return how much more an arm has of a figure than the other, in its unit.

    Return None if a round has a lower bound only, or if no round has both without
    errors.
    """
    for arm in pair:
        if figure.has_bounds(run.trials_of(arm.name)):
            return None
    these, those = (clean_rounds(run, arm.name, figure.of) for arm in pair)
    return paired_difference(these, those, confidence, fewest_rounds(figure))


Part = Literal["environment", "server", "link", "route"]
VERSIONS: tuple[Part, ...] = ("environment", "server")
"""The parts of an arm whose versions a run compares with the first one.

Arms without a name for one are left out.
"""
PARTS: tuple[Part, ...] = (*VERSIONS, "link", "route")


def pairs_by(part: Part, arms: Iterable[Arm]) -> list[ArmPair]:
    """Return each arm with the first one that differs in this part only."""
    families: dict[Hashable, list[Arm]] = {}
    for arm in arms:
        if part in VERSIONS and not getattr(arm, part):
            continue
        values = [getattr(arm, other) for other in PARTS if other != part]
        family = (arm.strategy, arm.upstream, arm.shared_workload, *values)
        families.setdefault(family, []).append(arm)
    pairs = []
    for first, *others in families.values():
        pairs += [
            (arm, first) for arm in others if part != "link" or arm.link != first.link
        ]
    return pairs


def version_pairs(arms: Sequence[Arm]) -> list[ArmPair]:
    """Return each arm with the same arm in another environment or on another server.

    That is the first one that has it.
    """
    return [*pairs_by("environment", arms), *pairs_by("server", arms)]


def contrasts_by(
    part: Part,
    run: Run,
    confidence: float | None = None,
) -> list[Contrast]:
    """Contrast the pairs of `pairs_by`.

    Servers and routes do not change the CPU time of the client.
    """
    pairs = pairs_by(part, run.experiment.arms)
    return contrasts(run, pairs, confidence, cpu_too=part in {"environment", "link"})


def contrasts(
    run: Run,
    pairs: Sequence[ArmPair],
    confidence: float | None = None,
    *,
    cpu_too: bool = True,
) -> list[Contrast]:
    """Contrast the two arms of each pair. `confidence`: None for the run's own."""
    if not pairs:
        return []
    # The permitted error is divided between both figures (Bonferroni).
    level = confidence or confidence_of(run.experiment.precision)
    level = divide_error(level, 2 if cpu_too else 1)
    by_time = {}
    for group, standings in rank_arms(run, confidence).items():
        for standing in standings:
            by_time[group, standing.name] = standing.compared
    names = {arm.name for arm in chain(*pairs)}
    times = {}
    for name in names:
        # Rounds without failures would mislead if the p99 of another round is only a
        # lower bound.
        is_bounded = any(map(is_least, run.trials_of(name)))
        times[name] = {} if is_bounded else clean_rounds(run, name, cost_of)
    time_ratios = _pair_ratios(pairs, times, by_time, level)
    cpu_ratios: Sequence[Ratio | None] = [None] * len(pairs)
    if cpu_too:
        cpu = BY_KEY["cpu"]
        used = {name: clean_rounds(run, name, cpu.of) for name in names}
        by_cpu = compare_by(run, cpu, confidence)
        cpu_ratios = _pair_ratios(pairs, used, by_cpu, level)
    contrasts = []
    for pair, time, cpu_time in zip(pairs, time_ratios, cpu_ratios, strict=True):
        arm, base = pair
        figure = ranked_by(run.trials_of(arm.name))
        contrasts.append(Contrast(arm, base, figure, time, cpu_time))
    return contrasts


def _pair_ratios(
    pairs: Sequence[ArmPair],
    series: Mapping[str, Series],
    compared: Mapping[ArmKey, Comparisons],
    confidence: float,
) -> list[Ratio | None]:
    """Return the ratio of each pair: that of the ranking if they are ranked together.

    `series`: each arm's figures by round. `confidence`: that the intervals of the other
    pairs hold together.
    """
    ratios: dict[tuple[str, str], Ratio | None] = {}
    alone = {}
    for arm, base in pairs:
        names = (arm.name, base.name)
        both = (series[arm.name], series[base.name])
        is_ranked, ratio = _ranked_ratio(compared, (arm, base))
        if not is_ranked:
            alone[names] = both
        elif all(both):
            ratios[names] = ratio
    unranked = paired_ratios([*alone.values()], confidence)
    ratios.update(zip(alone, unranked, strict=True))
    return [ratios.get((arm.name, base.name)) for arm, base in pairs]


def pair_ratio(
    run: Run,
    figure: Figure,
    pair: ArmPair,
    confidence: float | None = None,
    compared: Mapping[ArmKey, Comparisons] | None = None,
) -> Ratio | None:
    """Return the same ratio for a single pair, by any figure.

    `compared`: the result of `compare_by`, if it is known. Return None if either arm
    has no round without errors, or fell short of its concurrency.
    """
    these, those = (clean_rounds(run, arm.name, figure.of) for arm in pair)
    if not these or not those:
        return None
    if compared is None:
        compared = compare_by(run, figure, confidence)
    is_ranked, ratio = _ranked_ratio(compared, pair)
    if is_ranked:
        return ratio
    level = confidence or confidence_of(run.experiment.precision)
    return paired_ratio(these, those, level)


def _ranked_ratio(
    compared: Mapping[ArmKey, Comparisons], pair: ArmPair
) -> tuple[bool, Ratio | None]:
    """Return whether two arms are ranked together, and their ratio if they are."""
    key, base = map(arm_key, pair)
    together = compared.get(key)
    if together is None or key == base or together is not compared.get(base):
        return False, None
    return True, together.ratio(key[1], base[1])


def arm_key(arm: Arm) -> ArmKey:
    """Return the arm's group and its name there.

    A label ``GROUP STRATEGY`` is shortened to the strategy.
    """
    link = None if arm.link is None else str(arm.link)
    group = GroupKey(arm.group or arm.workload, arm.upstream, arm.route, link)
    name = arm.label or arm.strategy
    if name == f"{group.workload} {arm.strategy}":
        name = arm.strategy
    return group, name


def baseline_of(run: Run) -> ArmKey | None:
    """Return the experiment's baseline; None if it has none."""
    for arm in run.experiment.arms:
        if arm.name == run.experiment.baseline:
            return arm_key(arm)
    return None


def finished_by_group(run: Run) -> dict[GroupKey, dict[str, list[Trial]]]:
    """Return the finished trials of each group that has any, by arm."""
    keys = {arm.name: arm_key(arm) for arm in run.experiment.arms}
    groups: dict[GroupKey, dict[str, list[Trial]]]
    groups = {group: {} for group, _ in keys.values()}
    for trial in run.trials:
        if trial.status == "done":
            group, name = keys[trial.planned.arm]
            groups[group].setdefault(name, []).append(trial)
    return {group: arms for group, arms in groups.items() if arms}


def load_of(run: Run, trial: Trial) -> OfferedLoad:
    """Return the load of a trial.

    It is equal in all rounds, even if each round draws its arrivals. In a search, arms
    are compared by their highest rates whatever their concurrency, which contributes to
    the rate.
    """
    load = trial.figures.open_load
    concurrency = trial.planned.concurrency
    if load is None:
        return OfferedLoad(concurrency if trial.highest_rate is None else None)
    workload = run.experiment.workloads[trial.planned.workload]
    rate = load.planned_per_second
    if workload.load.arrivals == "poisson":
        schedule = expected_schedule(workload)
        if schedule is not None:
            rate = schedule.count / schedule.span
    return OfferedLoad(concurrency, rate, workload.load.stages)


def _fell_short(trial: Trial) -> bool:
    """Return whether a closed load had fewer requests than its concurrency.

    So never so many were in flight.
    """
    figures = trial.figures
    if figures.open_load is not None or trial.highest_rate is not None:
        return False
    return not figures.windows and figures.requests < trial.planned.concurrency


def shortfall(trials: Sequence[Trial]) -> str | None:
    """Return why an arm with these trials is not ranked; None if it is."""
    trials = [trial for trial in trials if trial.status == "done"]
    unsteady = find_unsteadiness(trials)
    if unsteady is not None:
        return unsteady
    short = [trial.figures.requests for trial in trials if _fell_short(trial)]
    if not short:
        return None
    rounds = ""
    if len(short) < len(trials):
        rounds = f" in {len(short)} of {len(trials)} rounds"
    count = f"{min(short):,}"
    if min(short) < max(short):
        count += f" to {max(short):,}"
    concurrency = max(trial.planned.concurrency for trial in trials)
    return (
        f"it sent only {count} requests per trial{rounds}, so it never had"
        f" c={concurrency:,} in flight"
    )


def is_least(trial: Trial) -> bool:
    """Return whether the figure that ranks a trial is only a lower bound.

    It is if requests failed.
    """
    return ranked_by([trial]).has_bounds([trial])
