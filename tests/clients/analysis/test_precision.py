"""Runs whose rounds end with a precision: their intervals hold the truth as often as those of planned rounds."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.precision import (
    DECIDED_CONFIDENCE,
    FEWEST_ROUNDS,
    SEQUENTIAL_CONFIDENCE,
    confidence_of,
    narrow,
)
from clientlab.analysis.ratios import Ratio, reach

SIMULATIONS = 2000
MOST = 120
PRECISION = 0.03


def stopped(truth: float, spread: float, *, decided: bool):
    """Middle and reach of each simulated run where the rule stops it, of logarithms of ratios by round."""
    logs = np.random.default_rng(23).normal(truth, spread, (SIMULATIONS, MOST))
    rounds = range(FEWEST_ROUNDS, MOST + 1)
    middles = np.stack([logs[:, :n].mean(axis=1) for n in rounds], axis=1)
    reaches = np.stack([reach(logs[:, :n], SEQUENTIAL_CONFIDENCE) for n in rounds], axis=1)
    enough = np.exp(reaches) <= 1 + PRECISION
    if decided:
        enough |= np.abs(middles) > np.stack([reach(logs[:, :n], DECIDED_CONFIDENCE) for n in rounds], axis=1)
    enough[:, -1] = True
    place = (np.arange(SIMULATIONS), enough.argmax(axis=1))
    return middles[place], reaches[place]


@pytest.mark.parametrize("spread", [0.01, 0.02, 0.03, 0.05, 0.08, 0.12])
@pytest.mark.parametrize("decided", [False, True])
@pytest.mark.parametrize("truth", [0.0, 0.05, 0.3])
def test_intervals_at_the_stop_hold_the_truth_in_93_to_98_of_100_simulations(truth, decided, spread):
    """By width alone, as for ratios, and by a sure verdict as well, as for claims."""
    middles, reaches = stopped(truth, spread, decided=decided)
    assert 0.93 <= np.mean(np.abs(middles - truth) <= reaches) <= 0.98


@pytest.mark.parametrize("spread", [0.02, 0.05, 0.12])
def test_equal_arms_are_called_different_in_at_most_5_of_100_simulations(spread):
    """Within two standard errors of the simulation itself (2,000: 1 %), on either way of stopping."""
    for decided in (False, True):
        middles, reaches = stopped(0.0, spread, decided=decided)
        assert np.mean(np.abs(middles) > reaches) <= 0.06


def test_without_the_correction_they_would_hold_it_too_seldom():
    """The usual interval of three rounds or more, looked at after each: what the correction is for."""
    logs = np.random.default_rng(29).normal(0, 0.05, (SIMULATIONS, MOST))
    rounds = range(3, MOST + 1)
    reaches = np.stack([reach(logs[:, :n]) for n in rounds], axis=1)
    middles = np.stack([logs[:, :n].mean(axis=1) for n in rounds], axis=1)
    place = (np.arange(SIMULATIONS), (np.exp(reaches) <= 1 + PRECISION).argmax(axis=1))
    assert np.mean(np.abs(middles[place]) <= reaches[place]) < 0.93


def test_only_runs_with_a_precision_have_the_wider_intervals():
    """Planned rounds keep 95 %."""
    assert confidence_of(None) == 0.95
    assert confidence_of(0.03) == SEQUENTIAL_CONFIDENCE


@pytest.mark.parametrize(("high", "enough"), [(2.0, True), (2.06, True), (2.07, False), (None, False)])
def test_an_interval_is_narrow_that_reaches_no_further_than_its_share(high, enough):
    """Of the ratio; one that is not there is not narrow."""
    assert narrow(Ratio(2.0, high and 4 / high, high, 5), 0.03) is enough
