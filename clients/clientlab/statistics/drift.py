"""Drift: whether a figure changes over the rounds of a run, or within them.

A server that warms up, or a cache that fills, changes the figures of all arms.
Intervals do not tell, since ratios are paired by round. The tests compare the rounds in
their own order with other orders of the same rounds, so they need no model of the noise
(permutation tests: Fisher 1935, The design of experiments). They look at what all arms
have in common, and at each arm beside that.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from clientlab.statistics.distributions import Floats
from clientlab.statistics.ratios import spread

FEWEST_PARTS = 4
"""Parts of a round in which a line can be seen."""

_FEWEST_ROUNDS = 5
"""Fewer rounds have too few orders for a line or a step."""

_JUMP = math.log(4.0)
"""Change beyond which no order has to be compared.

All rounds before it are lower, or higher, than all later ones by this factor.
"""

_LEAST_CHANGE = math.log(1.05)
_CHANCE = 0.017
_CHANCE_WITHIN = 0.003
_ORDERS = 999
_MOST_STEPS = 20
_REACH = 3.0
"""Outliers are moved in to this many times the median difference between two values."""


@dataclass(frozen=True)
class Drift:
    """A change that is not chance."""

    kind: Literal["step", "line", "within"]

    arms: tuple[int, ...]
    """Places of the arms that change beside the others; empty if all arms do."""

    factor: float
    """By which the figure changes in all."""

    rounds: int | None = None
    """How many come before a step. None: a line, over all rounds or within each."""


def find_drift(by_round: Floats, by_part: Floats | None = None) -> Drift | None:
    """Return the clearest change of a figure; None if there is none.

    `by_round`: logarithms, of shape (arms, rounds), without gaps. `by_part`: the same
    for equal parts of each round, of shape (arms, rounds, parts), if these are known.
    """
    rounds = by_round.shape[1]
    drift = None
    if rounds > 2:
        drift = _find_jump(by_round)
    if drift is None and rounds >= _FEWEST_ROUNDS:
        drift = _find_change(by_round)
    if drift is not None or by_part is None:
        return drift
    if by_part.shape[2] < FEWEST_PARTS:
        return None
    return _find_change_within(by_part)


def _find_jump(by_round: Floats) -> Drift | None:
    """Return the first jump of what all arms have in common."""
    common = np.median(_centre(by_round), axis=0)
    for rounds in range(1, len(common)):
        earlier = common[:rounds]
        later = common[rounds:]
        rise = later.min() - earlier.max()
        fall = earlier.min() - later.max()
        if max(rise, fall) > _JUMP:
            change = np.median(later) - np.median(earlier)
            factor = math.exp(change)
            return Drift("step", (), factor, rounds)
    return None


def _find_change(by_round: Floats) -> Drift | None:
    """Return a line over the rounds, or a step between them."""
    centred = _centre(by_round)
    beside_common = _beside_common(centred)
    series = _winsorize(beside_common)
    contrasts = _order_rounds(by_round.shape[1])
    clearest = _find_clearest(series, contrasts.shuffled, _CHANCE)
    if clearest is None:
        return None
    arms: tuple[int, ...] = ()
    # An arm also moves the middle of two, so each arm's own change decides.
    if clearest.series or len(by_round) <= 2:
        contrast = contrasts.shuffled[clearest.contrast, 0]
        arms = _find_changing_arms(centred, contrast)
    rounds = contrasts.rounds_before[clearest.contrast]
    kind: Literal["line", "step"] = "step"
    if rounds is None:
        kind = "line"
    return Drift(kind, arms, clearest.factor, rounds)


def _find_changing_arms(centred: Floats, contrast: Floats) -> tuple[int, ...]:
    """Return the arms that change alike, or none if they are most of all.

    Then the change is common.
    """
    changes = _winsorize(centred) @ contrast
    largest = changes[np.abs(changes).argmax()]
    changes *= np.sign(largest)
    is_alike = changes >= abs(largest) / 2
    arms = np.flatnonzero(is_alike).tolist()
    if 2 * len(arms) > len(centred):
        return ()
    return tuple(arms)


def _find_change_within(by_part: Floats) -> Drift | None:
    """Return a line over the parts of the rounds."""
    arms, rounds, parts = by_part.shape
    centred = _centre(by_part)
    beside_common = _beside_common(centred)
    series = _winsorize(beside_common)
    series -= series.mean(axis=2, keepdims=True)
    flat = series.reshape(arms + 1, -1)
    shuffled = _order_parts(rounds, parts)
    clearest = _find_clearest(flat, shuffled, _CHANCE_WITHIN, rounds)
    if clearest is None:
        return None
    if clearest.series:
        return Drift("within", (clearest.series - 1,), clearest.factor)
    return Drift("within", (), clearest.factor)


def _centre(logs: Floats) -> Floats:
    """Return the logarithms with a median of 0 for each arm."""
    within_arms = tuple(range(1, logs.ndim))
    medians = np.median(logs, axis=within_arms, keepdims=True)
    return logs - medians


def _beside_common(centred: Floats) -> Floats:
    """Return what the arms have in common, and then each arm beside it."""
    common = np.median(centred, axis=0)
    beside = centred - common
    return np.concatenate([common[None], beside])


def _winsorize(series: Floats) -> Floats:
    """Return the series around 0, with outliers moved in to the limit."""
    limit = _REACH * spread(series)[..., None]
    medians = np.median(series, axis=-1, keepdims=True)
    return np.clip(series - medians, -limit, limit)


class _Contrasts(NamedTuple):
    """A line over the rounds, and steps between them, for many orders of the rounds."""

    shuffled: Floats
    """Unit vectors, of shape (contrasts, orders, rounds).

    The first order is that of the rounds.
    """

    rounds_before: list[int | None]
    """How many rounds come before each contrast that is a step."""


@cache
def _order_rounds(rounds: int) -> _Contrasts:
    steps = np.arange(2, rounds - 1)
    if len(steps) > _MOST_STEPS:
        apart = np.linspace(2, rounds - 2, _MOST_STEPS)
        steps = np.unique(apart.round().astype(int))
    places = np.arange(rounds)
    rows = [places - places.mean()]
    for step in steps:
        before = -1 / step
        after = 1 / (rounds - step)
        rows.append(np.where(places < step, before, after))
    contrasts = np.array(rows)
    contrasts /= np.linalg.norm(contrasts, axis=1, keepdims=True)
    if math.factorial(rounds) <= _ORDERS:
        orders = np.array(list(itertools.permutations(places)))
    else:
        random = np.random.default_rng(0)
        permuted = [random.permutation(places) for _ in range(_ORDERS)]
        orders = np.array([places, *permuted])
    shuffled = contrasts[:, orders]
    return _Contrasts(shuffled, [None, *steps.tolist()])


@cache
def _order_parts(rounds: int, parts: int) -> Floats:
    """Return a line over the parts of each round, in many orders of the parts.

    The shape is (1, orders, rounds x parts). The first order is that of the parts.
    """
    line = np.arange(parts) - (parts - 1) / 2
    line /= np.linalg.norm(line)
    orders = _ORDERS + 1
    rows = np.tile(line, (orders * rounds, 1))
    random = np.random.default_rng(1)
    rows[rounds:] = random.permuted(rows[rounds:], axis=1)
    return rows.reshape(1, orders, rounds * parts)


class _Clearest(NamedTuple):
    """The clearest contrast in some series."""

    series: int
    contrast: int

    factor: float
    """By which the figure changes in all."""


def _find_clearest(
    series: Floats, shuffled: Floats, most_chance: float, repeated: int = 1
) -> _Clearest | None:
    """Return the contrast that is clearer than in nearly all other orders.

    Return None if chance may be the reason, or if the change is small. All contrasts
    are tested on all series together.

    `series`: of shape (series, points). `shuffled`: of shape (contrasts, orders,
    points). `most_chance`: share of the orders in which one may be as clear.
    `repeated`: how many times each contrast has its unit vector.
    """
    contrasts, orders, points = shuffled.shape
    flat = shuffled.reshape(-1, points)
    sizes = np.abs(series @ flat.T)
    sizes = sizes.reshape(-1, contrasts, orders)
    # What all arms share, and what single arms do, weigh the same.
    for part in (slice(0, 1), slice(1, None)):
        scale = sizes[part].max(axis=(0, 1)).mean()
        sizes[part] /= scale or 1.0
    clearest_by_order = sizes.max(axis=(0, 1))
    limit = clearest_by_order[0] * (1 - 1e-9)
    chance = np.mean(clearest_by_order >= limit)
    if chance > most_chance:
        return None
    measured = sizes[:, :, 0]
    place, number = np.unravel_index(measured.argmax(), measured.shape)
    contrast = shuffled[number, 0]
    slope = series[place] @ contrast / repeated
    change = float(slope * np.ptp(contrast))
    if abs(change) < _LEAST_CHANGE:
        return None
    return _Clearest(int(place), int(number), math.exp(change))
