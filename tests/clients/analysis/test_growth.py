"""Growth per hour and its interval: what holds where readings depend on each other, and what is found."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.growth import FEWEST_READINGS, drift_of

MOMENTS = np.linspace(0, 1800, 90)
RUNS = 400
MIB = 1 << 20


def independent(draw):
    return draw.normal(0, 1, len(MOMENTS))


def dependent(draw):
    """Each reading has nine tenths of the one before."""
    return following(draw.normal(0, 1, len(MOMENTS)), 0.9)


def wandering(draw):
    """A random walk."""
    return np.cumsum(draw.normal(0, 1, len(MOMENTS)))


def one_jump(draw):
    """An allocator that takes memory once, at any moment, and a little noise."""
    return 50.0 * (draw.uniform(0, 1800) < MOMENTS) + draw.normal(0, 0.1, len(MOMENTS))


def settling(draw):
    """A cache that fills: fast, slow, or hardly within the trial."""
    return 50.0 * (1 - np.exp(-MOMENTS / draw.choice([60.0, 200.0, 600.0]))) + draw.normal(0, 0.5, len(MOMENTS))


def bursts(draw):
    """Garbage that piles up and is collected, in a rhythm of its own."""
    return 20.0 * ((MOMENTS / draw.uniform(30, 500) + draw.uniform()) % 1) + draw.normal(0, 0.5, len(MOMENTS))


def following(noise, share):
    found = np.zeros_like(noise)
    for place in range(1, len(noise)):
        found[place] = share * found[place - 1] + noise[place]
    return found


@pytest.mark.parametrize("model", [independent, dependent, wandering, one_jump, settling, bursts])
def test_an_honest_level_is_not_accused_in_95_of_100_trials(model):
    """Whatever its readings have to do with each other."""
    draw = np.random.default_rng(1)
    found = [drift_of(MOMENTS, 1000 + model(draw)) for _ in range(RUNS)]
    assert sum(one.grows for one in found) <= 0.05 * RUNS


@pytest.mark.parametrize("model", [independent, dependent, wandering])
def test_the_interval_holds_a_true_growth_in_92_of_100_trials(model):
    """Of 3,600 an hour. It is 97 of independent readings, and 93 of a random walk."""
    draw = np.random.default_rng(2)
    found = [drift_of(MOMENTS, 1000 + MOMENTS + model(draw)) for _ in range(RUNS)]
    assert sum(one.low <= 3600 <= one.high for one in found) >= 0.92 * RUNS


def test_a_leak_is_found_behind_the_noise_of_a_collector():
    """1 kB for each of 100 requests per second, while garbage of up to 8 MiB piles up and is collected."""
    draw = np.random.default_rng(3)
    for _ in range(50):
        noise = 8 * MIB * ((MOMENTS / draw.uniform(5, 60) + draw.uniform()) % 1)
        found = drift_of(MOMENTS, 40 * MIB + 100_000 * MOMENTS + noise, 0.01)
        assert found.grows
        assert found.low <= 3600 * 100_000 <= found.high


def test_a_level_that_never_changes_does_not_grow():
    """Its interval has no width."""
    found = drift_of(MOMENTS, np.full(len(MOMENTS), 12))
    assert (found.per_hour, found.low, found.high, found.grows) == (0, 0, 0, False)


def test_a_descriptor_for_each_part_is_a_leak():
    """It grows as steadily as anything can, and by whole numbers."""
    found = drift_of(MOMENTS, np.floor(MOMENTS / 100))
    assert found.grows
    assert found.low < 36 < found.high


def test_a_trifle_is_no_growth():
    """Half a per cent of the level over the trial, however steady, where less than one per cent is a trifle."""
    levels = 1000 + 5 * MOMENTS / 1800
    assert drift_of(MOMENTS, levels).grows
    assert not drift_of(MOMENTS, levels, 0.01).grows


def test_what_happens_in_the_first_quarter_does_not_count():
    """Caches fill in it."""
    levels = np.where(MOMENTS < 450, MOMENTS, 450)
    assert drift_of(MOMENTS, levels).per_hour == 0


def test_too_few_readings_have_no_growth():
    """Those of the first quarter are not among them."""
    assert drift_of([], []) is None
    assert drift_of(range(FEWEST_READINGS), range(FEWEST_READINGS)) is None
    assert drift_of(range(2 * FEWEST_READINGS), range(2 * FEWEST_READINGS)).grows
