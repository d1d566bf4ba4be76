"""How often the interval of a capacity holds the rate that half of all trials hold, and how far the capacity is off.

Each simulated trial has a capacity of its own, which varies from trial to trial, and holds every rate up to it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.noise import Draw, Floats
from benchmarks.truth.shares import covered
from clientlab.analysis.bisection import (
    Bracket,
    ProbeResult,
    SearchBounds,
    bracket_of,
    jittered,
    next_rate,
    typical_capacity,
)
from clientlab.analysis.ratios import paired_ratio

SPREADS = (0.002, 0.01, 0.05, 0.1)
ROUNDS = (3, 5, 10)
CHANGE = 1.005
WITHIN = 0.005
_START, _LOWEST, _HIGHEST, _RESOLUTION, _TRIES = 100.0, 4.0, 1e6, 0.025, 2
_RUNS = 400


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """For each spread of trials: coverage of the capacity and of a change of 0.5 % by rounds, and the bias."""
    for spread in SPREADS:
        errors: list[float] = []
        for rounds in ROUNDS:
            draw = np.random.default_rng([seed, rounds, int(1e4 * spread)])
            held, changed = [], []
            for run in range(_RUNS):
                capacity = float(draw.uniform(150, 3000))
                first = searched(draw, capacity, spread, rounds, f"{seed}:{run}:first")
                last = searched(draw, CHANGE * capacity, spread, rounds, f"{seed}:{run}:last")
                errors += [np.log(middle / capacity) for middle in _middles(first).values()]
                held.append(_holds(typical_capacity(first), capacity))
                changed.append(_holds(paired_ratio(_middles(last), _middles(first)), CHANGE))
            case = f"trials vary by {100 * spread:g} %, {rounds} rounds"
            yield covered(f"capacity, {case}", np.array(held))
            yield covered(f"ratio of capacities {CHANGE:g}, {case}", np.array(changed))
        yield _bias(np.array(errors), spread)


def searched(draw: Draw, capacity: float, spread: float, rounds: int, key: str) -> dict[int, Bracket]:
    """Round → the bracket in which its search ended."""
    found = {}
    for number in range(1, rounds + 1):
        start = jittered(_START, f"{key}:{number}")
        bounds = SearchBounds(start, _LOWEST, _HIGHEST, _RESOLUTION, _TRIES)
        outcomes: list[ProbeResult] = []
        while (rate := next_rate(outcomes, bounds)) is not None:
            outcomes.append((rate, bool(rate <= capacity * np.exp(draw.normal(0, spread)))))
        found[number] = bracket_of(outcomes, _TRIES)
    return found


def _middles(brackets: dict[int, Bracket]) -> dict[int, float]:
    return {number: one.middle for number, one in brackets.items() if one.middle is not None}


def _holds(found: object, truth: float) -> bool:
    low, high = getattr(found, "low", None), getattr(found, "high", None)
    return low is not None and high is not None and low <= truth <= high


def _bias(errors: Floats, spread: float) -> BenchmarkRow:
    """The mean error of a round's capacity."""
    mean, reach = float(errors.mean()), 1.96 * float(errors.std()) / np.sqrt(len(errors))
    name = f"bias of a capacity, trials vary by {100 * spread:g} %"
    ends = (100 * mean - 100 * reach, 100 * mean + 100 * reach)
    of, target = f"95 % of {len(errors):,} rounds", f"{-100 * WITHIN:g} to {100 * WITHIN:g} %"
    return BenchmarkRow(name, 100 * mean, *ends, of, target, met=abs(mean) <= WITHIN, unit="%")
