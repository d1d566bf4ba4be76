"""Drift: whether a figure changes over the rounds of a run, or within them, by more
than chance.

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

FEWEST_PARTS = 4
"""Parts of a round in which a line can be seen."""

_FEWEST_ROUNDS = 5
"""Fewer rounds have too few orders for a line or a step."""

_JUMP = math.log(4.0)
"""Change beyond which no order has to be compared: all rounds before it are lower, or
higher, than all later ones by this factor."""

_LEAST = math.log(1.05)
_CHANCE, _CHANCE_WITHIN = 0.017, 0.003
_ORDERS = 999
_MOST_STEPS = 20
_REACH = 3.0
"""Outliers are drawn in to this many times the median difference between two values."""


@dataclass(frozen=True)
class Drift:
    """A change that is not chance.

    `arms`: places of the arms that change beside the others; empty if all arms do.
    `factor`: of the figure, over the whole change. `rounds`: how many come before a
    step; None for a line over all rounds, or over the parts of each.
    """

    kind: Literal["step", "line", "within"]
    arms: tuple[int, ...]
    factor: float
    rounds: int | None = None


def find_drift(by_round: Floats, by_part: Floats | None = None) -> Drift | None:
    """Return the clearest change of a figure; None if there is none.

    `by_round`: logarithms, of shape (arms, rounds), without gaps. `by_part`: the same
    for equal parts of each round, of shape (arms, rounds, parts), if these are known.
    """
    rounds = by_round.shape[1]
    found = _find_jump(by_round) if rounds > 2 else None
    if found is None and rounds >= _FEWEST_ROUNDS:
        found = _find_change(by_round)
    if found is None and by_part is not None and by_part.shape[2] >= FEWEST_PARTS:
        found = _find_change_within(by_part)
    return found


def _find_jump(by_round: Floats) -> Drift | None:
    """Return the first jump of what all arms have in common."""
    common = np.median(_centre(by_round), axis=0)
    for rounds in range(1, len(common)):
        earlier, later = common[:rounds], common[rounds:]
        rise = later.min() - earlier.max()
        fall = earlier.min() - later.max()
        if max(rise, fall) > _JUMP:
            change = float(np.median(later) - np.median(earlier))
            return Drift("step", (), math.exp(change), rounds)
    return None


def _find_change(by_round: Floats) -> Drift | None:
    """Return a line over the rounds, or a step between them."""
    centred = _centre(by_round)
    series = _draw_in(_beside_the_common(centred))
    contrasts = _order_rounds(by_round.shape[1])
    most = _test(series, contrasts.shuffled)
    contrast = contrasts.shuffled[most.contrast, 0]
    change = float(series[most.series] @ contrast) * float(np.ptp(contrast))
    if most.chance > _CHANCE or abs(change) < _LEAST:
        return None
    arms: tuple[int, ...] = ()
    if most.series or len(by_round) <= 2:
        # An arm also moves the middle of two, so each arm's own change decides.
        changes = _draw_in(centred) @ contrast
        largest = changes[np.abs(changes).argmax()]
        alike = changes * np.sign(largest) >= abs(largest) / 2
        arms = _name_few(np.flatnonzero(alike).tolist(), len(by_round))
    rounds = contrasts.rounds_before[most.contrast]
    return Drift("line" if rounds is None else "step", arms, math.exp(change), rounds)


def _find_change_within(by_part: Floats) -> Drift | None:
    """Return a line over the parts of the rounds."""
    rounds, parts = by_part.shape[1:]
    series = _draw_in(_beside_the_common(_centre(by_part)))
    series -= series.mean(axis=2, keepdims=True)
    shuffled = _order_parts(rounds, parts)
    flat = series.reshape(len(series), -1)
    most = _test(flat, shuffled)
    line = shuffled[0, 0]
    change = float(flat[most.series] @ line) / rounds * float(np.ptp(line))
    if most.chance > _CHANCE_WITHIN or abs(change) < _LEAST:
        return None
    arms = (most.series - 1,) if most.series else ()
    return Drift("within", arms, math.exp(change))


def _name_few(arms: list[int], count: int) -> tuple[int, ...]:
    """Return the arms, or none if they are most of all: then the change is common."""
    return () if 2 * len(arms) > count else tuple(arms)


def _centre(logs: Floats) -> Floats:
    """Return the logarithms with a median of 0 for each arm."""
    middles = np.median(logs.reshape(len(logs), -1), axis=1)
    return logs - middles.reshape(-1, *[1] * (logs.ndim - 1))


def _beside_the_common(centred: Floats) -> Floats:
    """Return what the arms have in common, and then each arm beside it."""
    common = np.median(centred, axis=0)
    return np.concatenate([common[None], centred - common])


def _draw_in(series: Floats) -> Floats:
    """Return the series around 0, with outliers drawn in."""
    one, other = np.triu_indices(series.shape[-1], 1)
    differences = np.abs(series[..., one] - series[..., other])
    reach = _REACH * np.median(differences, axis=-1, keepdims=True)
    around = series - np.median(series, axis=-1, keepdims=True)
    return np.clip(around, -reach, reach)


class _Contrasts(NamedTuple):
    """A line over the rounds, and steps between them, for many orders of the rounds.

    `shuffled`: unit vectors, of shape (contrasts, orders, rounds); the first order is
    that of the rounds. `rounds_before`: of each contrast that is a step.
    """

    shuffled: Floats
    rounds_before: list[int | None]


@cache
def _order_rounds(rounds: int) -> _Contrasts:
    steps = np.arange(2, rounds - 1)
    if len(steps) > _MOST_STEPS:
        steps = np.unique(np.linspace(2, rounds - 2, _MOST_STEPS).round().astype(int))
    places = np.arange(rounds)
    rows = [places - places.mean()]
    rows += [np.where(places < step, -1 / step, 1 / (rounds - step)) for step in steps]
    contrasts = np.array([row / np.linalg.norm(row) for row in rows])
    if math.factorial(rounds) <= _ORDERS:
        orders = np.array(list(itertools.permutations(range(rounds))))
    else:
        draw = np.random.default_rng(0)
        random = [draw.permutation(rounds) for _ in range(_ORDERS)]
        orders = np.array([np.arange(rounds), *random])
    return _Contrasts(contrasts[:, orders], [None, *steps.tolist()])


@cache
def _order_parts(rounds: int, parts: int) -> Floats:
    """Return a line over the parts of each round, in many orders of the parts.

    The shape is (1, orders, rounds x parts). The first order is that of the parts.
    """
    line = np.arange(parts) - (parts - 1) / 2
    rows = np.tile(line / np.linalg.norm(line), ((_ORDERS + 1) * rounds, 1))
    draw = np.random.default_rng(1)
    rows[rounds:] = draw.permuted(rows[rounds:], axis=1)
    return rows.reshape(1, _ORDERS + 1, rounds * parts)


class _Most(NamedTuple):
    """The clearest contrast, and the share of the orders in which one is as clear."""

    chance: float
    series: int
    contrast: int


def _test(series: Floats, shuffled: Floats) -> _Most:
    """Test the contrasts on all series together. Shapes: as above."""
    contrasts, orders, points = shuffled.shape
    found = np.abs(series @ shuffled.reshape(-1, points).T)
    found = found.reshape(len(series), contrasts, orders)
    # What all arms share, and what single arms do, weigh the same.
    for part in (slice(0, 1), slice(1, None)):
        scale = found[part].max(axis=(0, 1)).mean()
        found[part] /= scale or 1.0
    own = found[:, :, 0]
    highest = own.max()
    chance = float(np.mean(found.max(axis=(0, 1)) >= highest * (1 - 1e-9)))
    place, contrast = np.unravel_index(own.argmax(), own.shape)
    return _Most(chance, int(place), int(contrast))
