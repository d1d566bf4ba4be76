"""The ranking of a run's arms within each workload, upstream, route and link, and their ratios by other figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from clientlab.analysis.decisions import confidence_of
from clientlab.analysis.ratios import Ratio, paired_ratio, power
from clientlab.analysis.simultaneous import Comparisons, compare_arms
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import cost_of, ranked_by
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial
from clientlab.workload.arrivals import Stages
from clientlab.workload.load import expected_schedule


class GroupKey(NamedTuple):
    """What arms have in common that are ranked against each other.

    `workload`: its name in the experiment, where a sweep makes several of one. `link`: as text; None without one.
    """

    workload: str
    upstream: str
    route: str
    link: str | None = None

    @property
    def title(self) -> str:
        """The group in a heading."""
        link = () if self.link is None else (f"link of {self.link}",)
        return " · ".join((self.workload, f"{self.upstream} upstream", self.route, *link))


ArmKey = tuple[GroupKey, str]
"""The group of an arm, and its name in the group."""

Schedule = tuple[float, Stages | None]
"""Planned requests per second, and the stages: two schedules may have the same rate on average."""

OfferedLoad = tuple[int | None, Schedule | None]
"""Requests in flight, None if concurrency does not distinguish arms; and the schedule of an open load."""

_Arms = Mapping[str, Sequence[Trial]]
"""Name in the group → finished trials."""


@dataclass(frozen=True)
class Standing:
    """An arm in its group. `ratio`: to `reference`, the fastest arm of its class, which has the same load.

    `to_baseline`: to the experiment's baseline. A ratio is None if no round has both arms, if the group has no
    baseline, or if a figure is only a lower bound. `level`: seconds of the arm: the median of the reference times its
    ratio, because medians of each arm alone would contradict the ratios, which are paired by round. `compared`: the
    ratios of its class. `fell_short`: a trial never reached its concurrency, so the arm has no ratio and is last.
    """

    name: str
    level: float
    ratio: Ratio | None
    to_baseline: Ratio | None
    reference: str
    compared: Comparisons
    fell_short: bool = False

    @property
    def fastest(self) -> bool:
        """Whether the others of its class are compared with it."""
        return self.name == self.reference and not self.fell_short


def ranked(run: Run, confidence: float | None = None) -> dict[GroupKey, list[Standing]]:
    """Return the arms with finished trials of each group, the fastest first; groups in the experiment's order.

    They are ranked by the figure of their load model (`figures.ranked_by`). `confidence`: that all ratios of a group to
    the fastest are within their intervals; None for the run's own.
    """
    level = confidence or confidence_of(run.experiment.precision)
    within, baseline = baseline_of(run) or (None, None)
    return {
        group: _rank(run, _by_name(trials), level, baseline if group == within else None)
        for group, trials in finished_by_group(run).items()
    }


def _rank(run: Run, arms: _Arms, confidence: float, baseline: str | None) -> list[Standing]:
    """Rank the arms of a group, each class of equal load apart, the class with the fastest arm first.

    Arms with 32 requests in flight are up to 32 times as fast as with one where they wait for the server, whatever
    their clients do. The reference of a class is its fastest arm without errors: an arm that fails fast is no standard.
    """
    medians = {name: median(map(cost_of, trials)) for name, trials in arms.items()}
    short = {name for name, trials in arms.items() if any(map(fell_short, trials))}
    bounded = {name for name, trials in arms.items() if any(map(is_least, trials))}
    costs = {name: _by_round(trials, cost_of) for name, trials in arms.items()}
    classes = _classes(run, arms)
    level = _class_confidence(classes, confidence)
    alone = 1 - (1 - confidence) / max(1, len(arms) - 1)
    rows = []
    for names in sorted(classes, key=lambda names: min((name in short, medians[name]) for name in names)):
        known = [name for name in names if name not in short | bounded]
        found = compare_arms({name: costs[name] for name in names}, level, known)
        # Nobody knows how far arms without a ratio are behind.
        order = sorted(names, key=lambda name: (name in short, name in bounded, found.levels[name]))
        reference = next((name for name in order if not any(trial.errors for trial in arms[name])), order[0])
        for name in order:
            to_baseline = None
            if baseline is not None and baseline in names:
                to_baseline = found.ratio(name, baseline)
            elif baseline is not None and baseline in arms and not {name, baseline} & (short | bounded):
                to_baseline = paired_ratio(costs[name], costs[baseline], alone)
            times = power(found.levels[name] - found.levels[reference])
            seconds = medians[name] if name in short else medians[reference] * times
            ratio = found.ratio(name, reference)
            rows.append(Standing(name, seconds, ratio, to_baseline, reference, found, name in short))
    return rows


def compared_by(run: Run, figure: Figure, confidence: float | None = None) -> dict[ArmKey, Comparisons]:
    """Return the comparisons of each arm with those it is ranked with, by a figure that does not decide the ranking.

    Arms whose figure is only a lower bound in some round, or that fell short of their concurrency, have no ratios.
    """
    found: dict[ArmKey, Comparisons] = {}
    for group, trials in finished_by_group(run).items():
        arms = _by_name(trials)
        classes = _classes(run, arms)
        level = _class_confidence(classes, confidence or confidence_of(run.experiment.precision))
        for names in classes:
            of_rounds = {name: _by_round(arms[name], figure.of) for name in names}
            series = {name: values for name, values in of_rounds.items() if values}
            known = [
                name for name in series if not figure.has_bounds(arms[name]) and not any(map(fell_short, arms[name]))
            ]
            if known:
                of_class = compare_arms(series, level, known)
                found |= {(group, name): of_class for name in series}
    return found


def _by_name(trials: Sequence[tuple[str, Trial]]) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for name, trial in trials:
        found.setdefault(name, []).append(trial)
    return found


def _classes(run: Run, arms: _Arms) -> list[list[str]]:
    """Return the names of the arms of each load."""
    found: dict[OfferedLoad, list[str]] = {}
    for name, trials in arms.items():
        found.setdefault(load_of(run, trials[0]), []).append(name)
    return list(found.values())


def _class_confidence(classes: Sequence[Sequence[str]], confidence: float) -> float:
    """Return the confidence of each class: the permitted error is divided among the classes with several arms."""
    return 1 - (1 - confidence) / max(1, sum(len(names) > 1 for names in classes))


def _by_round(trials: Sequence[Trial], value_of: Callable[[Trial], float | None]) -> dict[int, float]:
    """Return round → positive figure. Rounds with failed requests count only if the arm has no others."""
    clean = [trial for trial in trials if not trial.errors]
    return {trial.round: value for trial in clean or trials if (value := value_of(trial)) is not None and value > 0}


def arm_key(arm: Arm) -> ArmKey:
    """Return the arm's group and its name there."""
    return group_of(arm), arm.label or arm.strategy


def load_of(run: Run, trial: Trial) -> OfferedLoad:
    """Return the load of a trial: requests in flight, and of an open load its rate, and its stages if it has several.

    Arms of a search are compared by their highest rates whatever their requests in flight: how many a strategy can have
    in flight is a part of the rate that it holds. The rate of an open load is equal in all rounds, also if each draws
    its arrivals.
    """
    if trial.open_load is None:
        return (trial.concurrency if trial.highest_rate is None else None), None
    workload, rate = run.experiment.workloads[trial.workload], trial.open_load.planned_per_second
    if workload.arrivals == "poisson" and (schedule := expected_schedule(workload)) is not None:
        rate = schedule.count / schedule.length
    return trial.concurrency, (rate, workload.stages)


def baseline_of(run: Run) -> ArmKey | None:
    """Return the experiment's baseline. None without one."""
    return next((arm_key(arm) for arm in run.experiment.arms if arm.name == run.experiment.baseline), None)


def group_of(arm: Arm) -> GroupKey:
    """Return the group of an arm."""
    return _group(arm.group or arm.workload, arm)


def _group(workload: str, its: Arm | Trial) -> GroupKey:
    return GroupKey(workload, its.upstream, its.route, None if its.link is None else str(its.link))


def finished_by_group(run: Run) -> dict[GroupKey, list[tuple[str, Trial]]]:
    """Return the finished trials of each group, each with the name of its arm in the group."""
    arms = {arm.name: arm for arm in run.experiment.arms}
    found: dict[GroupKey, list[tuple[str, Trial]]] = {group_of(arm): [] for arm in run.experiment.arms}
    for trial in run.trials:
        if trial.status == "done":
            arm = arms.get(trial.arm)  # None in an old file, where arms had no names
            group = _group((arm and arm.group) or trial.workload, trial)
            found.setdefault(group, []).append(((arm and arm.label) or trial.strategy, trial))
    return {group: trials for group, trials in found.items() if trials}


def fell_short(trial: Trial) -> bool:
    """Return whether a closed load had fewer requests than its concurrency, so it never had as many in flight."""
    closed = trial.open_load is None and trial.highest_rate is None
    return trial.status == "done" and closed and trial.requests < trial.concurrency


def shortfall(trials: Sequence[Trial]) -> str | None:
    """Return why an arm with these trials is not ranked; None if it reached its concurrency in all of them."""
    short = [trial.requests for trial in trials if fell_short(trial)]
    if not short:
        return None
    finished = sum(trial.status == "done" for trial in trials)
    rounds = "" if len(short) == finished else f" in {len(short)} of {finished} rounds"
    count = f"{min(short):,}" if min(short) == max(short) else f"{min(short):,} to {max(short):,}"
    concurrency = max(trial.concurrency for trial in trials)
    return f"it sent only {count} requests per trial{rounds}, so it never had c={concurrency:,} in flight"


def is_least(trial: Trial) -> bool:
    """Return whether the figure that a trial is ranked by is only a lower bound, because requests failed."""
    return ranked_by(open_load=trial.open_load is not None).has_bounds([trial])
