"""The ratio of two spreads: how often its interval holds the truth, whatever the values' distribution.

Of 20,000 simulations 94.3 (20 rounds, one long tail) to 97.4 % (5 rounds, normal) do: the method is on the safe side
where rounds are few. Three sampling errors of 2,000 simulations are allowed beyond 93 and 97 %.
"""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.spread import spread_interval, spread_ratio

SIMULATIONS = 2000
LEAST, MOST = 0.93, 0.97 + 3 * np.sqrt(0.03 * 0.97 / SIMULATIONS)
DRAWS = {
    "normal": lambda draw, shape: draw.normal(size=shape),
    "heavy tails": lambda draw, shape: draw.standard_t(5, shape),
    "one long tail": lambda draw, shape: draw.lognormal(0, 0.5, shape),
}


@pytest.mark.parametrize("rounds", [5, 8, 20])
@pytest.mark.parametrize("name", DRAWS)
def test_the_interval_holds_the_true_ratio_in_93_to_97_of_100_simulations(name, rounds):
    """2,000 simulated runs of arms of which one varies twice as much."""
    draw = np.random.default_rng(17)
    x, y = (DRAWS[name](draw, (SIMULATIONS, rounds)) for _ in range(2))
    _, low, high = spread_interval(2 * x, y)
    assert LEAST <= np.mean((low <= 2) & (high >= 2)) <= MOST


def test_what_a_round_does_to_both_is_accounted_for():
    """The same with a pace of each round that both arms share."""
    draw = np.random.default_rng(18)
    pace, x, y = draw.normal(size=(3, SIMULATIONS, 10))
    _, low, high = spread_interval(pace + x, pace + y)
    assert LEAST <= np.mean((low <= 1) & (high >= 1)) <= MOST


def test_few_rounds_have_no_interval_and_one_has_no_spread():
    """Nor has an arm that does not vary."""
    these, those = {1: 1.0, 2: 2.0, 3: 4.0}, {1: 1.0, 2: 1.5, 3: 2.25}
    ratio = spread_ratio(these, those)
    assert (ratio.value, ratio.interval, ratio.rounds) == (pytest.approx(np.log(2) / np.log(1.5)), None, 3)
    assert spread_ratio({1: 1.0}, {1: 2.0}) is None
    assert spread_ratio(these, dict.fromkeys(these, 1.0)) is None


def test_the_scale_of_an_arm_is_not_its_spread():
    """Twice as slow throughout is as steady."""
    draw = np.random.default_rng(19)
    figures = dict(enumerate(draw.lognormal(0, 0.2, 8)))
    ratio = spread_ratio({number: 2 * value for number, value in figures.items()}, figures)
    assert ratio.value == pytest.approx(1)
