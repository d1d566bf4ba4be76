"""Drift: which changes over a run are found, and that noise is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.statistics.drift import find_drift


def noise(arms: int, rounds: int, parts: int = 4) -> np.ndarray:
    """Logarithms of figures that vary by 3 % between rounds, and by 3 % between parts
    of a round.
    """
    draw = np.random.default_rng(4)
    between_rounds = draw.normal(0, 0.03, (arms, rounds, 1))
    between_parts = draw.normal(0, 0.03, (arms, rounds, parts))
    return between_rounds + between_parts


all_arms_or_one = pytest.mark.parametrize(
    ("changing", "named"),
    [(slice(None), ()), (slice(1, 2), (1,))],
    ids=["all arms", "one arm"],
)


@pytest.mark.parametrize("rounds", [3, 5, 6, 10, 30])
@pytest.mark.parametrize("arms", [1, 2, 5])
def test_noise_is_no_drift(arms, rounds):
    logs = noise(arms, rounds)
    assert find_drift(logs.mean(axis=2), logs) is None


@pytest.mark.parametrize("arms", [1, 2, 5])
def test_a_first_round_that_takes_far_longer(arms):
    logs = noise(arms, 3).mean(axis=2)
    logs[:, 0] += math.log(10)
    found = find_drift(logs)
    assert found.kind == "step"
    assert found.arms == ()
    assert found.rounds == 1
    assert found.factor == pytest.approx(0.1, rel=0.2)


@all_arms_or_one
def test_a_step(changing, named):
    logs = noise(4, 10).mean(axis=2)
    logs[changing, 5:] += math.log(1.2)
    found = find_drift(logs)
    assert found.kind == "step"
    assert found.arms == named
    assert found.rounds == 5
    assert found.factor == pytest.approx(1.2, rel=0.1)


@all_arms_or_one
def test_a_line(changing, named):
    logs = noise(4, 8).mean(axis=2)
    logs[changing] += np.linspace(0, math.log(1.8), 8)
    found = find_drift(logs)
    assert found.kind == "line"
    assert found.arms == named
    assert found.rounds is None
    assert found.factor == pytest.approx(1.8, rel=0.1)


@all_arms_or_one
def test_a_line_within_each_round(changing, named):
    logs = noise(4, 4)
    logs[changing] += np.linspace(0, math.log(1.4), 4)
    found = find_drift(logs.mean(axis=2), logs)
    assert found.kind == "within"
    assert found.arms == named
    assert found.factor == pytest.approx(1.4, rel=0.1)
