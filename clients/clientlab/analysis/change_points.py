"""Change points of many series at once: since when a figure is another one, and with which rate of false alarms.

The series are figures of one sequence of runs. Of each, the split with the largest difference between the two sides is
taken, and then each side is split again, as E-divisive does (Matteson and James 2014, "A nonparametric approach for
multiple change point analysis of multivariate data", JASA 109), which MongoDB and Apache Otava use in CI.

A split counts if its difference is larger than that of 95 of 100 histories without a change. Those are made from the
same runs in shuffled orders. All series of a run move together, and the largest difference of all series counts
(Westfall and Young 1993, "Resampling-based multiple testing"). So the rate holds for a history as a whole, however many
series it has and however they depend on each other. It assumes that runs without a change are exchangeable: no order of
them is more likely than another.

Differences are those of normal scores (van der Waerden 1952): one run that took three times as long weighs no more than
any other run that is the slowest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from clientlab.analysis.typical import Floats

FEWEST_RUNS = 3
"""On each side of a change point: fewer are no new level, but outliers."""

_ORDERS = 999
"""Shuffled orders of the runs: the rate of false alarms is within 1.5 percentage points of the stated one then."""
_FIRST_ORDERS, _UNUSUAL = 99, 0.15
_LEVEL = 0.04
"""Most false alarms of a history, as a share: a fifth fewer than the 5 % that are stated."""
_OF_WHOLE = 0.8
"""Share of the false alarms that the whole sequence may cause; its parts may cause the rest."""
_EQUAL = 1e-9
_NEAR = 3
"""Runs on both sides of a split, among which its place is looked for."""
_SEED = 20140101
"""Of the shuffled orders: the same runs have the same change points each time."""
_POWER = 0.8
_MOST_OF_SCORES = 0.79
"""The root of the share of the normal scores' variance that the difference of both halves explains at most (2/π)."""

Indices = npt.NDArray[np.intp]
Parts = tuple[tuple[int, int], ...]
"""Parts of a sequence of runs: the first run, and the one behind the last."""


@dataclass(frozen=True)
class ChangePoint:
    """`at`: the first run of the new level. `chance`: share of histories without a change that show as much."""

    at: int
    chance: float


@dataclass(frozen=True)
class Changes:
    """The change points of each series, in the order of runs. `limit`: the difference from which on a split counts."""

    points: list[list[ChangePoint]]
    limit: float


@dataclass(frozen=True)
class _Scored:
    """A series as normal scores; `known`: which runs have it. Runs without it have the score 0."""

    scores: Floats
    known: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Tested:
    """A test of all series over some runs. `largest`, `splits`: of each series, its largest difference and where.

    `shuffled`: in each shuffled order, the largest difference of all series.
    """

    largest: Floats
    splits: Indices
    shuffled: Floats

    def chance(self, index: int) -> float:
        """Share of the shuffled orders in which the largest difference is at least that of the series."""
        return (1 + int(np.sum(self.shuffled >= self.largest[index] - _EQUAL))) / (len(self.shuffled) + 1)

    @property
    def limit(self) -> float:
        """The difference from which on a split counts, if the test is of the whole sequence."""
        return float(np.quantile(self.shuffled, 1 - _OF_WHOLE * _LEVEL))


def change_points(series: Floats) -> Changes:
    """The change points of series of shape (series, runs); NaN where a run has no value."""
    found: list[list[ChangePoint]] = [[] for _ in series]
    tests: dict[tuple[int, int], list[tuple[float, _Tested]]] = {}
    left = [(index, 0, series.shape[-1]) for index in range(len(series))]
    while left:
        index, begin, end = left.pop()
        if end - begin < 2 * FEWEST_RUNS:
            continue
        if (begin, end) not in tests:
            tests[begin, end] = list(_tests(series[:, begin:end]))
        for share, tested in tests[begin, end]:
            chance = tested.chance(index) / share
            if tested.largest[index] > 0 and chance <= _LEVEL:
                at = begin + _placed(series[index, begin:end], int(tested.splits[index]))
                found[index].append(ChangePoint(at, chance))
                left += [(index, begin, at), (index, at, end)]
                break
    whole = tests.get((0, series.shape[-1]))
    return Changes([sorted(one, key=lambda point: point.at) for one in found], whole[0][1].limit if whole else math.inf)


def _placed(values: Floats, split: int) -> int:
    """The split among those near the found one whose sides are closest to their medians.

    Ranks do not show how far apart two levels are: they prefer the split that is closer to the middle.
    """

    def distance(at: int) -> float:
        sides = (side[~np.isnan(side)] for side in (values[:at], values[at:]))
        return sum(float(np.abs(side - np.median(side)).sum()) for side in sides)

    known = np.cumsum(~np.isnan(values))
    near = [
        at
        for at in range(max(1, split - _NEAR), min(len(values), split + _NEAR + 1))
        if FEWEST_RUNS <= known[at - 1] <= known[-1] - FEWEST_RUNS
    ]
    return min(near, key=lambda at: (distance(at), abs(at - split)))


def _tests(series: Floats) -> Iterator[tuple[float, _Tested]]:
    """The tests of some runs, each with its share of the false alarms: of the whole sequence, and of parts of it.

    A level that rises and falls again would hide in the whole.
    """
    runs = series.shape[-1]
    yield _OF_WHOLE, _tested(series, ((0, runs),))
    if parts := _parts(runs):
        yield 1 - _OF_WHOLE, _tested(series, parts)


def _tested(series: Floats, parts: Parts) -> _Tested:
    """The first shuffled orders suffice where no series is unusual among them."""
    every = [_scored(values) for values in series]
    largest, splits = np.zeros(len(series)), np.zeros(len(series), np.intp)
    for index, one in enumerate(every):
        (largest[index],), (splits[index],) = _largest(one.scores[None], one.known[None], parts)
    varying, orders = [one for one in every if one.scores.any()], _orders(series.shape[-1])
    shuffled = _of_all(varying, orders[:_FIRST_ORDERS], parts)
    if np.sum(shuffled >= largest.max()) <= _UNUSUAL * _FIRST_ORDERS:
        shuffled = np.concatenate([shuffled, _of_all(varying, orders[_FIRST_ORDERS:], parts)])
    return _Tested(largest, splits, shuffled)


def _of_all(scored: list[_Scored], orders: Indices, parts: Parts) -> Floats:
    """The largest difference of all series, in each of the orders."""
    found = np.zeros(len(orders))
    for one in scored:
        known = one.known[None] if one.known.all() else one.known[orders]
        np.maximum(found, _largest(one.scores[orders], known, parts)[0], out=found)
    return found


@cache
def _orders(runs: int) -> Indices:
    """Shuffled orders of so many runs."""
    return np.random.default_rng([_SEED, runs]).permuted(np.tile(np.arange(runs), (_ORDERS, 1)), axis=1)


def _scored(values: Floats) -> _Scored:
    """Normal scores of the ranks; equal values share the mean of theirs. All are 0 if the values are equal."""
    known = ~np.isnan(values)
    scores = np.zeros(len(values))
    _, places, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    if len(counts) > 1:
        each = _normal_scores(int(known.sum()))
        ends = np.cumsum(counts)
        means = np.array([each[end - count : end].mean() for end, count in zip(ends, counts, strict=True)])[places]
        scores[known] = (means - means.mean()) / means.std()
    return _Scored(scores, known)


@cache
def _normal_scores(count: int) -> Floats:
    normal = NormalDist()
    return np.array([normal.inv_cdf((rank + 0.5) / count) for rank in range(count)])


def _largest(scores: Floats, known: npt.NDArray[np.bool_], parts: Parts) -> tuple[Floats, Indices]:
    """The largest difference of two sides of a split, of all splits of the parts, and that split.

    Shape (orders, runs). The scores of a series have the mean 0 and the variance 1.
    """
    sums, counts = (np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=-1) for values in (scores, known.astype(float)))
    found, splits = np.zeros(len(scores)), np.zeros(len(scores), np.intp)
    for begin, end in parts:
        differences = _differences(sums[:, begin : end + 1], counts[:, begin : end + 1])
        places = np.argmax(differences, axis=-1)
        most = np.take_along_axis(differences, places[:, None], axis=-1)[:, 0]
        splits = np.where(most > found, begin + 1 + places, splits)
        found = np.maximum(most, found)
    return found, splits


@cache
def _parts(runs: int) -> Parts:
    """Three halves of the runs and seven quarters, without those that are too short for a split.

    They overlap by half (Kovács et al. 2023, "Seeded binary segmentation", Biometrika 110).
    """
    found = []
    for count in (2, 4):
        if runs // count >= 2 * FEWEST_RUNS:
            starts = [step * runs / count / 2 for step in range(2 * count - 1)]
            found += [(round(start), round(start + runs / count)) for start in starts]
    return tuple(found)


def _differences(sums: Floats, counts: Floats) -> Floats:
    """For each split of a part, the difference of both sides in its standard errors. Shape (orders, runs of the part).

    `sums`, `counts`: of scores and known values up to each run of the part, from the run before it on. 0 where a side
    has fewer than `FEWEST_RUNS` runs with the series.
    """
    total = counts[:, -1:] - counts[:, :1]
    before = counts[:, 1:-1] - counts[:, :1]
    after = total - before
    enough = (before >= FEWEST_RUNS) & (after >= FEWEST_RUNS)
    errors = np.sqrt(np.where(enough, before * after / np.maximum(total, 1.0), 1.0))
    mean = (sums[:, -1:] - sums[:, :1]) / np.maximum(total, 1.0)
    found: Floats = np.where(enough, np.abs(sums[:, 1:-1] - sums[:, :1] - before * mean) / errors, 0.0)
    return found


def fewest_runs(series: int) -> int:
    """The fewest runs that can show a change in their middle, of one in so many series: fewer have too few orders."""
    return next(runs for runs in range(2 * FEWEST_RUNS, 1 << 10) if _shows(runs, runs // 2, series))


def runs_until_shown(runs: int, series: int) -> int | None:
    """How many runs after a change, among `runs` in all, are the fewest that can show it. None: none can."""
    sides = range(FEWEST_RUNS, runs // 2 + 1)
    return next((after for after in sides if _shows(runs, after, series)), None)


def _shows(runs: int, after: int, series: int) -> bool:
    """Whether so many runs after a change, all above or all below the others, are rare enough in shuffled orders.

    Of two halves, no other order has a difference as large (of normal scores; simulated for 8 to 16 runs). Of unlike
    sides, the order with the sides swapped has.
    """
    alike = 2 if 2 * after == runs else 4
    return alike * series / math.comb(runs, after) <= _OF_WHOLE * _LEVEL


def detectable_change(values: Floats, limit: float) -> float | None:
    """The smallest change in the middle of a history like this that is found in 80 of 100, in the values' unit.

    `values`: of one series without a change. `limit`: that of the history. None if no change is found.
    """
    known = values[~np.isnan(values)]
    runs = len(known)
    if runs < 2 * FEWEST_RUNS or limit >= _MOST_OF_SCORES * math.sqrt(runs):
        return None
    share = limit**2 / runs
    needed = math.sqrt(share * (runs - 2) / (1 - share)) + NormalDist().inv_cdf(_POWER)
    return float(needed * known.std(ddof=1) * 2 / math.sqrt(runs))


def segments(points: list[ChangePoint], runs: int) -> Iterator[range]:
    """The runs of each level."""
    ends = [0, *(point.at for point in points), runs]
    yield from map(range, ends, ends[1:])
