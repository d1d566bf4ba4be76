"""Comparisons within a run: the ranking of its arms, and pairs of arms that differ in
one thing only.

Arms are ranked against those with the same workload, upstream, route and link, and with
the same load.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

from clientlab.judging.bodies import find_unlike_bodies
from clientlab.judging.steadiness import find_unsteadiness
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, Figure, cost_of, ranked_by
from clientlab.results.plan import Arm
from clientlab.statistics.decisions import confidence_of
from clientlab.statistics.ratios import (
    FEWEST_ROUNDS,
    Estimate,
    Ratio,
    exponentiate,
    paired_difference,
    paired_ratio,
)
from clientlab.statistics.simultaneous import Comparisons, compare_arms, paired_ratios
from clientlab.trial.result import Trial
from clientlab.workload.load import expected_schedule
from clientlab.workload.values import Stages


class GroupKey(NamedTuple):
    """What the arms of a group have in common.

    `workload`: its name in the experiment, also if a sweep turns it into several.
    `link`: as text; None without one.
    """

    workload: str
    upstream: str
    route: str
    link: str | None = None

    @property
    def title(self) -> str:
        """The group in a heading."""
        link = () if self.link is None else (f"link of {self.link}",)
        return " · ".join(
            (self.workload, f"{self.upstream} upstream", self.route, *link)
        )


ArmKey = tuple[GroupKey, str]  # the group of an arm, and its name in the group


class OfferedLoad(NamedTuple):
    """The load of arms that are compared.

    `concurrency`: None if it does not distinguish them. `rate`: if open.
    """

    concurrency: int | None
    rate: float | None = None
    stages: Stages | None = None


@dataclass(frozen=True)
class Standing:
    """An arm in its group, compared with `reference`, the fastest arm of its class:
    those with the same load.

    `ratio`, `to_baseline`: None if no round has both arms, if a figure is `bounded`, or
    without a baseline. `level`: typical seconds, the median of the reference times the
    ratio. The median of each arm alone would contradict the ratios, which are paired by
    round. `compared`: all ratios of the class. `fell_short`: a trial never reached its
    concurrency, or the arm is `unlike` the others: it received other bytes. Then it is
    last and has no ratio.
    """

    name: str
    level: float
    ratio: Ratio | None
    to_baseline: Ratio | None
    reference: str
    compared: Comparisons
    fell_short: bool = False
    unlike: str | None = None
    bounded: bool = False  # in some round, its figure is only a lower bound

    @property
    def fastest(self) -> bool:
        """Whether the other arms of its class are compared with it."""
        return self.name == self.reference and not self.fell_short and not self.bounded


def rank_arms(
    run: Run, confidence: float | None = None
) -> dict[GroupKey, list[Standing]]:
    """Return the arms of each group that have finished trials, fastest first by
    `figures.ranked_by`.

    `confidence`: that all intervals of the run hold together; None for the run's own.
    """
    level = _confidence_of_each_class(run, confidence)
    within, baseline = baseline_of(run) or (None, None)
    return {
        group: _rank_group(run, arms, level, baseline if group == within else None)
        for group, arms in finished_by_group(run).items()
    }


def _rank_group(
    run: Run,
    arms: Mapping[str, Sequence[Trial]],
    confidence: float,
    baseline: str | None,
) -> list[Standing]:
    """Rank the arms of a group (name → finished trials), the class with the fastest arm
    first.

    Classes are ranked apart: if arms wait for the server, 32 requests in flight are up
    to 32 times as fast as one, whatever the clients do. The reference of a class is
    ranked and has no errors, if it has such an arm: an arm that fails fast is no fair
    standard.
    """
    medians = {name: median(map(cost_of, trials)) for name, trials in arms.items()}
    unlike = _unlike_in_classes(run, arms)
    short = {
        name for name, trials in arms.items() if name in unlike or shortfall(trials)
    }
    bounded = {name for name, trials in arms.items() if any(map(is_least, trials))}
    costs = {name: by_round(trials, cost_of) for name, trials in arms.items()}
    alone = 1 - (1 - confidence) / max(1, len(arms) - 1)
    standings = []
    for names in sorted(
        _classes(run, arms),
        key=lambda names: min((name in short, medians[name]) for name in names),
    ):
        known = [name for name in names if name not in short | bounded]
        compared = compare_arms(
            {name: costs[name] for name in names}, confidence, known
        )
        # Arms without a ratio come last, because nobody knows how far behind they are.
        order = sorted(
            names,
            key=lambda name: (name in short, name in bounded, compared.levels[name]),
        )
        ranked = [name for name in order if name not in short]
        sound = [
            name
            for name in ranked
            if not any(trial.figures.errors for trial in arms[name])
        ]
        reference = [*sound, *ranked, *order][0]
        for name in order:
            to_baseline = None
            if baseline in names:
                to_baseline = compared.ratio(name, baseline)
            elif (
                baseline is not None
                and baseline in arms
                and not {name, baseline} & (short | bounded)
            ):
                to_baseline = paired_ratio(costs[name], costs[baseline], alone)
            seconds = medians[reference] * exponentiate(
                compared.levels[name] - compared.levels[reference]
            )
            standings.append(
                Standing(
                    name,
                    medians[name] if name in short else seconds,
                    compared.ratio(name, reference),
                    to_baseline,
                    reference,
                    compared,
                    fell_short=name in short,
                    unlike=unlike.get(name),
                    bounded=name in bounded,
                )
            )
    return standings


def compare_by(
    run: Run, figure: Figure, confidence: float | None = None
) -> dict[ArmKey, Comparisons]:
    """Return the comparisons of each arm within its class, by a figure that does not
    decide the ranking.

    An arm has no ratios if its figure is only a lower bound in some round, or if it
    fell short of its concurrency.
    """
    found: dict[ArmKey, Comparisons] = {}
    level = _confidence_of_each_class(run, confidence)
    for group, arms in finished_by_group(run).items():
        unlike = _unlike_in_classes(run, arms)
        for names in _classes(run, arms):
            series = {
                name: values
                for name in names
                if (values := by_round(arms[name], figure.of))
            }
            whole = [
                name
                for name in series
                if name not in unlike and not shortfall(arms[name])
            ]
            if known := [name for name in whole if not figure.has_bounds(arms[name])]:
                compared = compare_arms(series, level, known)
                found |= {(group, name): compared for name in series}
    return found


def _classes(run: Run, arms: Mapping[str, Sequence[Trial]]) -> list[list[str]]:
    """Return the arms of each load."""
    found: dict[OfferedLoad, list[str]] = {}
    for name, trials in arms.items():
        found.setdefault(load_of(run, trials[0]), []).append(name)
    return list(found.values())


def _unlike_in_classes(run: Run, arms: Mapping[str, Sequence[Trial]]) -> dict[str, str]:
    """Return why arms did not do the work of those with the same load (see
    `find_unlike_bodies`).
    """
    found: dict[str, str] = {}
    for names in _classes(run, arms):
        found |= find_unlike_bodies(
            {name: arms[name] for name in names if not shortfall(arms[name])}
        )
    return found


def unlike_arms(run: Run) -> dict[str, str]:
    """Return why arms of a run did not do the work of those that they are ranked with,
    by their full names.
    """
    unlike = {
        group: _unlike_in_classes(run, arms)
        for group, arms in finished_by_group(run).items()
    }
    keys = {arm.name: arm_key(arm) for arm in run.experiment.arms}
    return {
        full: unlike[group][name]
        for full, (group, name) in keys.items()
        if name in unlike.get(group, {})
    }


def _confidence_of_each_class(run: Run, confidence: float | None) -> float:
    """Return the confidence of the intervals of each class, so that those of all
    classes hold together.

    Classes of several arms divide the permitted error among them.
    """
    level = confidence or confidence_of(run.experiment.precision)
    classes = [
        names
        for arms in finished_by_group(run).values()
        for names in _classes(run, arms)
    ]
    return 1 - (1 - level) / max(1, sum(len(names) > 1 for names in classes))


def by_round(
    trials: Sequence[Trial], value_of: Callable[[Trial], float | None]
) -> dict[int, float]:
    """Return the positive figures by round.

    Rounds with failed requests count only if the arm has no others.
    """
    clean = [trial for trial in trials if not trial.figures.errors]
    return {
        trial.planned.round: value
        for trial in clean or trials
        if (value := value_of(trial)) is not None and value > 0
    }


def clean_rounds(
    run: Run, arm: str, value_of: Callable[[Trial], float | None]
) -> dict[int, float]:
    """Return an arm's positive figures by round, without trials with errors.

    Empty if it cannot be ranked.
    """
    if shortfall(run.finished_trials_of(arm)) or arm in unlike_arms(run):
        return {}
    return by_round(
        [trial for trial in run.finished_trials_of(arm) if not trial.figures.errors],
        value_of,
    )


@dataclass(frozen=True)
class Contrast:
    """How many times as much an arm takes as `base`, which differs in its environment,
    server, link or route only.

    `time`: the ratio of `figure`, which ranks arms. `cpu`: that of CPU time per
    request. None if no round has both. Arms that are ranked together have the ratio
    that the table shows; the intervals of all others hold together.
    """

    arm: Arm
    base: Arm
    figure: Figure
    time: Ratio | None
    cpu: Ratio | None


_LATENCIES = (
    "p50",
    "p99",
    "first_event_p50",
)  # figures that reports compare in seconds


def latency_differences(
    run: Run, pairs: Sequence[ArmPair]
) -> dict[tuple[str, str], dict[str, Estimate]]:
    """Return the differences of the latencies of each pair in seconds: by names of both
    arms, and by key.

    All intervals hold together (Bonferroni). Latencies are left out if a round has a
    lower bound only.
    """
    known = [
        key
        for key in _LATENCIES
        if any(BY_KEY[key].values(run.trials_of(one.name)) for one, _ in pairs)
    ]
    confidence = 1 - (1 - confidence_of(run.experiment.precision)) / max(
        1, len(pairs) * len(known)
    )
    found: dict[tuple[str, str], dict[str, Estimate]] = {}
    for pair in pairs:
        differences = {
            key: pair_difference(run, BY_KEY[key], pair, confidence) for key in known
        }
        found[pair[0].name, pair[1].name] = {
            key: one for key, one in differences.items() if one is not None
        }
    return found


ArmPair = tuple[Arm, Arm]  # an arm, and the arm that it is compared with


def fewest_rounds(figure: Figure) -> int:
    """Return how many rounds the interval of a difference needs: a p99 of few rounds
    varies too much.
    """
    return 5 if figure.key == "p99" else FEWEST_ROUNDS


def pair_difference(
    run: Run, figure: Figure, pair: ArmPair, confidence: float
) -> Estimate | None:
    """Return how much more an arm has of a figure than the other, in the figure's unit.

    Return None if a round has a lower bound only, or if no round has both without
    errors.
    """
    if any(figure.has_bounds(run.trials_of(arm.name)) for arm in pair):
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
    """Return each arm with the first one that is equal except for its environment,
    server, link or route.
    """
    families: dict[Hashable, list[Arm]] = {}
    for arm in arms:
        if part not in VERSIONS or getattr(arm, part):
            others = [getattr(arm, one) for one in PARTS if one != part]
            families.setdefault(
                (arm.strategy, arm.upstream, arm.shared_workload, *others), []
            ).append(arm)
    pairs = [(arm, family[0]) for family in families.values() for arm in family[1:]]
    return [
        (arm, first) for arm, first in pairs if part != "link" or arm.link != first.link
    ]


def version_pairs(arms: Sequence[Arm]) -> list[ArmPair]:
    """Return each arm with the same arm in the first environment, or on the first
    server, that has it.
    """
    return [pair for part in VERSIONS for pair in pairs_by(part, arms)]


def contrasts_by(
    part: Part, run: Run, confidence: float | None = None
) -> list[Contrast]:
    """Contrast the pairs of `pairs_by`.

    Servers and routes do not change the CPU time of the client.
    """
    return contrasts(
        run,
        pairs_by(part, run.experiment.arms),
        confidence,
        cpu_too=part in {"environment", "link"},
    )


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
    cpu = BY_KEY["cpu"]
    # The permitted error is divided between both figures (Bonferroni).
    level = 1 - (1 - (confidence or confidence_of(run.experiment.precision))) / (
        2 if cpu_too else 1
    )
    ranking = {
        (group, one.name): one.compared
        for group, rows in rank_arms(run, confidence).items()
        for one in rows
    }
    names = {arm.name for pair in pairs for arm in pair}
    # Rounds without failures would mislead if the p99 of another round is only a lower
    # bound.
    times = {
        name: (
            {}
            if any(map(is_least, run.trials_of(name)))
            else clean_rounds(run, name, cost_of)
        )
        for name in names
    }
    of_time = _pair_ratios(pairs, times, ranking, level)
    of_cpu: Sequence[Ratio | None] = [None] * len(pairs)
    if cpu_too:
        used = {name: clean_rounds(run, name, cpu.of) for name in names}
        of_cpu = _pair_ratios(pairs, used, compare_by(run, cpu, confidence), level)
    return [
        Contrast(*pair, ranked_by(run.trials_of(pair[0].name)), time, cpu_ratio)
        for pair, time, cpu_ratio in zip(pairs, of_time, of_cpu, strict=True)
    ]


def _pair_ratios(
    pairs: Sequence[ArmPair],
    series: Mapping[str, Mapping[int, float]],
    compared: Mapping[ArmKey, Comparisons],
    confidence: float,
) -> list[Ratio | None]:
    """Return the ratio of each pair: that of the ranking if the arms are ranked
    together, else one of the pair alone.

    `series`: each arm's figures by round. `confidence`: that the intervals of the pairs
    alone hold together.
    """
    ratios: dict[tuple[str, str], Ratio | None] = {}
    alone = {}
    for arm, base in pairs:
        names, both = (arm.name, base.name), (series[arm.name], series[base.name])
        if (found := _compared_together(compared, (arm, base))) is None:
            alone[names] = both
        else:
            ratios[names] = (
                found.ratio(arm_key(arm)[1], arm_key(base)[1]) if all(both) else None
            )
    ratios |= zip(alone, paired_ratios([*alone.values()], confidence), strict=True)
    return [ratios[arm.name, base.name] for arm, base in pairs]


def pair_ratio(
    run: Run,
    figure: Figure,
    pair: ArmPair,
    confidence: float | None = None,
    compared: Mapping[ArmKey, Comparisons] | None = None,
) -> Ratio | None:
    """Return the same ratio for a single pair, by any figure.

    `compared`: the result of `compare_by`, if it is known.

    Return None if either arm has no round without errors, or fell short of its
    concurrency.
    """
    these, those = (clean_rounds(run, arm.name, figure.of) for arm in pair)
    if not these or not those:
        return None
    found = _compared_together(
        compare_by(run, figure, confidence) if compared is None else compared, pair
    )
    if found is not None:
        return found.ratio(arm_key(pair[0])[1], arm_key(pair[1])[1])
    return paired_ratio(
        these, those, confidence or confidence_of(run.experiment.precision)
    )


def _compared_together(
    compared: Mapping[ArmKey, Comparisons], pair: ArmPair
) -> Comparisons | None:
    """Return the comparisons that both arms are part of; None if the arms are not
    ranked together.
    """
    one, other = map(arm_key, pair)
    found = compared.get(one)
    return found if one != other and found is compared.get(other) else None


def arm_key(arm: Arm) -> ArmKey:
    """Return the arm's group and its name there, without that of the group in ``GROUP
    STRATEGY``.
    """
    link = None if arm.link is None else str(arm.link)
    group = GroupKey(arm.group or arm.workload, arm.upstream, arm.route, link)
    name = arm.label or arm.strategy
    return group, arm.strategy if name == f"{group.workload} {arm.strategy}" else name


def baseline_of(run: Run) -> ArmKey | None:
    """Return the experiment's baseline; None if it has none."""
    return next(
        (
            arm_key(arm)
            for arm in run.experiment.arms
            if arm.name == run.experiment.baseline
        ),
        None,
    )


def finished_by_group(run: Run) -> dict[GroupKey, dict[str, list[Trial]]]:
    """Return the finished trials of each group that has any, by the name of their arm
    in the group.
    """
    keys = {arm.name: arm_key(arm) for arm in run.experiment.arms}
    found: dict[GroupKey, dict[str, list[Trial]]] = {
        group: {} for group, _ in keys.values()
    }
    for trial in run.trials:
        if trial.status == "done":
            group, name = keys[trial.planned.arm]
            found[group].setdefault(name, []).append(trial)
    return {group: arms for group, arms in found.items() if arms}


def load_of(run: Run, trial: Trial) -> OfferedLoad:
    """Return the load of a trial, which is equal in all rounds, even if each round
    draws its arrivals.

    In a search, arms are compared by their highest rates whatever their concurrency,
    which contributes to the rate.
    """
    if trial.figures.open_load is None:
        return OfferedLoad(
            trial.planned.concurrency if trial.highest_rate is None else None
        )
    workload, rate = (
        run.experiment.workloads[trial.planned.workload],
        trial.figures.open_load.planned_per_second,
    )
    if (
        workload.arrivals == "poisson"
        and (schedule := expected_schedule(workload)) is not None
    ):
        rate = schedule.count / schedule.span
    return OfferedLoad(trial.planned.concurrency, rate, workload.stages)


def _fell_short(trial: Trial) -> bool:
    """Return whether a number of requests was below the concurrency, so that never so
    many were in flight.
    """
    figures = trial.figures
    closed = (
        figures.open_load is None and trial.highest_rate is None and not figures.windows
    )
    return closed and figures.requests < trial.planned.concurrency


def shortfall(trials: Sequence[Trial]) -> str | None:
    """Return why an arm with these trials is not ranked; None if it is."""
    trials = [trial for trial in trials if trial.status == "done"]
    if (unsteady := find_unsteadiness(trials)) is not None:
        return unsteady
    short = [trial.figures.requests for trial in trials if _fell_short(trial)]
    if not short:
        return None
    finished = len(trials)
    rounds = "" if len(short) == finished else f" in {len(short)} of {finished} rounds"
    count = (
        f"{min(short):,}"
        if min(short) == max(short)
        else f"{min(short):,} to {max(short):,}"
    )
    concurrency = max(trial.planned.concurrency for trial in trials)
    return (
        f"it sent only {count} requests per trial{rounds}, so it never had"
        f" c={concurrency:,} in flight"
    )


def is_least(trial: Trial) -> bool:
    """Return whether the figure that ranks a trial is only a lower bound, because
    requests failed.
    """
    return ranked_by([trial]).has_bounds([trial])
