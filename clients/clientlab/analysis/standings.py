"""The standings of a run: arms of each group on one scale, by typical figures over the same rounds, and who is first.

The fastest of many equal arms always looks faster than the rest. So the ratios of a group have simultaneous
intervals: all of them hold the true ratios in 95 of 100 runs, whichever arm comes out as the first (`simultaneous`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Ratio, paired_ratio
from clientlab.analysis.simultaneous import Pairs, pairs_of
from clientlab.analysis.typical import Floats, typical
from clientlab.workload.arrivals import Stages


def typical_levels(series: Sequence[Mapping[int, float]]) -> Floats:
    """Logarithms of the arms' typical figures (each: round → positive figure). Their differences are typical ratios.

    Medians of ratios contradict each other a little: a over b times b over c is not quite a over c, and of three equal
    arms each may seem faster than the next. Least squares over all pairs reconcile them (Lehmann 1964, Asymptotically
    nonparametric inference in some linear models with one observation per cell, Ann. Math. Statist. 35(2)). Of two
    arms, the difference is the median itself. Arms without a round in common are compared by their medians.
    """
    rounds = sorted({number for figures in series for number in figures})
    logs = np.log([[figures.get(number, np.nan) for number in rounds] for figures in series], dtype=np.float64)
    alone = np.nanmedian(logs, axis=1)
    gaps = _typical_gaps(logs) - (alone[:, None] - alone)
    known = ~np.isnan(gaps)
    # The normal equations of "level i - level j = gap ij", each relative to the arm's own median.
    sums = np.where(known, gaps, 0.0).sum(axis=1)
    if known.all():
        corrections = sums / len(series)  # the solution whose sum is 0
    else:
        weights = np.diag(known.sum(axis=1)) - known.astype(np.float64)
        # One equation more for each set of connected arms: its corrections have a sum of 0.
        corrections = np.linalg.solve(weights + _connected(known), sums)
    found: Floats = alone + corrections
    return found


def _connected(known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which two arms are compared, directly or by way of others."""
    found = np.eye(len(known), dtype=np.bool_)
    left = np.ones(len(known), dtype=np.bool_)
    while left.any():
        reached = np.zeros(len(known), dtype=np.bool_)
        reached[np.argmax(left)] = True
        fresh = reached
        while fresh.any():
            fresh = known[fresh].any(axis=0) & ~reached
            reached = reached | fresh
        found[np.ix_(reached, reached)] = True
        left &= ~reached
    return found


def _typical_gaps(logs: Floats) -> Floats:
    """Typical differences of each two rows over the columns that both have; NaN where there is none."""
    found = np.full((len(logs), len(logs)), np.nan)
    whole = not np.isnan(logs).any()
    for index, row in enumerate(logs):
        if whole:
            found[index] = typical(row - logs)
        else:
            for other, gaps in enumerate(row - logs):
                known = gaps[~np.isnan(gaps)]
                if len(known):
                    found[index, other] = typical(known)
    return found


@dataclass(frozen=True)
class Comparisons:
    """The ratios of each two arms that are ranked together, by one figure. Their intervals all hold together.

    Each ratio is computed here and nowhere else: that of b to a is the inverse of that of a to b, and it is the ratio
    of their `levels` (name → logarithm of the typical figure). `known`: the arms that have ratios.
    """

    levels: Mapping[str, float]
    known: Sequence[str]
    pairs: Pairs
    confidence: float

    @np.errstate(over="ignore")  # a ratio beyond all numbers is infinite
    def ratio(self, name: str, other: str) -> Ratio | None:
        """How many times as much one arm has as another. Return None if they share no round, or a figure is unknown."""
        if name not in self.known or other not in self.known:
            return None
        row, column = self.known.index(name), self.known.index(other)
        rounds = int(self.pairs.rounds[row, column])
        if not rounds:
            return None
        middle = self.levels[name] - self.levels[other]
        if rounds < FEWEST_ROUNDS:
            return Ratio(float(np.exp(middle)), None, None, rounds, self.confidence)
        reach = 0.0 if row == column else self.pairs.reach(row, column, self.confidence)
        value, low, high = np.exp([middle, middle - reach, middle + reach]).tolist()
        return Ratio(value, low, high, rounds, self.confidence, self.pairs.pooled)


def comparisons(
    series: Mapping[str, Mapping[int, float]], confidence: float, known: Sequence[str] | None = None
) -> Comparisons:
    """Compare the arms with each other (name → round → positive figure). `known`: those with ratios; None for all."""
    levels = dict(zip(series, typical_levels(list(series.values())).tolist(), strict=True))
    names = list(series if known is None else known)
    rounds = sorted({number for name in names for number in series[name]})
    logs = np.log([[series[name].get(number, np.nan) for number in rounds] for name in names], dtype=np.float64)
    return Comparisons(levels, names, pairs_of(logs.reshape(len(names), len(rounds))), confidence)


def class_confidence(classes: Iterable[Sized], confidence: float) -> float:
    """Return the confidence of each class of a group: the error is divided among the classes with several arms.

    That of a class holds for all its pairs together.
    """
    return 1 - (1 - confidence) / max(1, sum(len(arms) > 1 for arms in classes))


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


Schedule = tuple[float, Stages | None]
"""Planned requests per second, and the stages: two schedules may have the same rate on average."""


@dataclass(frozen=True)
class TrialCost:
    """The figures of a trial that the standings need. `seconds`: what its arm is ranked by, the less the better.

    `concurrency`: requests in flight; None where arms are ranked whatever they have in flight.

    `schedule`: of an open load, planned requests per second and its stages, if it has several; None for a closed load.
    `at_least`: `seconds` is only a lower bound, because requests failed. `fell_short`: the trial never had its
    concurrency in flight.
    """

    name: str
    group: GroupKey
    round: int
    seconds: float
    errors: int
    concurrency: int | None = 1
    schedule: Schedule | None = None
    at_least: bool = False
    fell_short: bool = False


@dataclass(frozen=True)
class Standing:
    """An arm in its group. `ratio`: to `reference`, the fastest of its class: the arms with its concurrency.

    Arms of an open load must also have its schedule. `to_baseline`: to the experiment's baseline.

    A ratio is None if no round has both arms, if the group has no baseline, or if a figure is only a lower bound.
    `level`: seconds of the arm: the median of the reference, and of others that times their ratio. Medians of each arm
    alone would contradict the ratios, which are paired by round. `fell_short`: a trial of the arm never reached its
    concurrency, so the arm is not ranked: it has no ratio, and is the last of its class.
    """

    name: str
    rounds: int
    level: float
    ratio: Ratio | None
    to_baseline: Ratio | None
    reference: str
    errors: int
    compared: Comparisons
    fell_short: bool = False

    @property
    def fastest(self) -> bool:
        """Whether the others of its class are compared with it."""
        return self.name == self.reference and not self.fell_short


def standings(
    trials: Iterable[TrialCost], confidence: float = CONFIDENCE, baseline: tuple[GroupKey, str] | None = None
) -> dict[GroupKey, list[Standing]]:
    """The arms of each group by typical seconds; groups in the order of their first trial.

    Arms of unlike concurrency are ranked apart, the class with the fastest arm first: where arms wait for the server,
    one with 32 requests in flight is up to 32 times as fast as one with a single request, whatever their clients do.
    In each class, the reference is the fastest arm without errors, because an arm that fails fast is no standard.
    `baseline`: group and name of an arm. `confidence`: that all ratios of a group to the fastest are within their
    intervals.
    """
    groups: dict[GroupKey, dict[str, list[TrialCost]]] = {}
    for trial in trials:
        groups.setdefault(trial.group, {}).setdefault(trial.name, []).append(trial)
    within, name = baseline or (None, None)
    return {
        group: _of_group(by_name, confidence, name if group == within and name in by_name else None)
        for group, by_name in groups.items()
    }


def _of_group(by_name: dict[str, list[TrialCost]], confidence: float, baseline: str | None) -> list[Standing]:
    classes = _classes(by_name)
    of_class = class_confidence(classes, confidence)
    of_one = 1 - (1 - confidence) / max(1, len(by_name) - 1)
    rows = []
    for arms in classes:
        short = {name for name, trials in arms.items() if any(trial.fell_short for trial in trials)}
        known = [name for name in arms if name not in short and not _bounded(arms[name])]
        found = comparisons({name: _by_round(trials) for name, trials in arms.items()}, of_class, known)
        order = sorted(arms, key=found.levels.__getitem__)
        order.sort(key=lambda name: (name in short, _bounded(arms[name])))  # nobody knows by how much they are behind
        reference = next((name for name in order if not _errors(arms[name])), order[0])
        for name in order:
            level = _seconds(arms[reference]) * _exp(found.levels[name] - found.levels[reference])
            if name in short:
                level = _seconds(arms[name])
            ratio = found.ratio(name, reference)
            to_baseline = None
            if baseline is not None:
                to_baseline = (
                    found.ratio(name, baseline) if baseline in arms else _ratio(arms[name], by_name[baseline], of_one)
                )
            errors = _errors(arms[name])
            rows.append(
                Standing(name, len(arms[name]), level, ratio, to_baseline, reference, errors, found, name in short)
            )
    return rows


def _ratio(these: list[TrialCost], those: list[TrialCost], confidence: float) -> Ratio | None:
    """The paired ratio of two arms of unlike load; None where a figure is only a lower bound, or an arm fell short."""
    if any(trial.at_least or trial.fell_short for trial in (*these, *those)):
        return None
    return paired_ratio(_by_round(these), _by_round(those), confidence)


@np.errstate(over="ignore")  # a ratio beyond all numbers is infinite
def _exp(level: float) -> float:
    return float(np.exp(level))


def _bounded(trials: list[TrialCost]) -> bool:
    return any(trial.at_least for trial in trials)


def _classes(by_name: dict[str, list[TrialCost]]) -> list[dict[str, list[TrialCost]]]:
    """The arms of each concurrency and schedule, the class with the fastest arm first."""
    found: dict[tuple[int | None, Schedule | None], dict[str, list[TrialCost]]] = {}
    for name, trials in by_name.items():
        found.setdefault((trials[0].concurrency, trials[0].schedule), {})[name] = trials
    return sorted(found.values(), key=lambda arms: min(map(_place, arms.values())))


def _place(trials: list[TrialCost]) -> tuple[bool, float]:
    """By what a class is placed: arms that are not ranked do not count before others."""
    return any(trial.fell_short for trial in trials), _seconds(trials)


def _seconds(trials: list[TrialCost]) -> float:
    return median(trial.seconds for trial in trials)


def _by_round(trials: list[TrialCost]) -> dict[int, float]:
    """Round → seconds. Rounds with failed requests count only if the arm has no others."""
    clean = [trial for trial in trials if not trial.errors]
    return {trial.round: trial.seconds for trial in clean or trials}


def _errors(trials: list[TrialCost]) -> int:
    return sum(trial.errors for trial in trials)
