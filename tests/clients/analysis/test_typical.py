"""The interval of a typical value: its ends, and how often it holds the truth under every kind of noise.

The sampling error of a share near 95 % is 0.5 % in 2,000 simulations. `scripts/bench truth` draws ten times as many.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.simulated_runs import MODELS, until_precise

from clientlab.analysis.typical import expected_width, t_quantile, typical, typical_interval

RUNS = 2000
LEAST = 0.93


def gaps(model: str, rounds: int, seed: int):
    """Logarithms of the ratio of two arms that are typically equal; shape (runs, rounds)."""
    logs = MODELS[model](np.random.default_rng(seed), (RUNS, 2, rounds))
    return logs[:, 1] - logs[:, 0]


@pytest.mark.parametrize("rounds", [3, 7, 20])
@pytest.mark.parametrize("model", MODELS)
def test_the_interval_holds_the_typical_ratio_in_93_of_100_runs(model, rounds):
    """Also where one arm has outlying rounds, which the ratio of means would count."""
    low, high = typical_interval(gaps(model, rounds, 101), 0.95)
    assert np.mean((low <= 0) & (high >= 0)) >= LEAST


@pytest.mark.parametrize("model", MODELS)
def test_runs_that_end_with_a_precision_have_it_as_often(model):
    """They look after each round, and end at an interval that is narrow by chance."""
    low, high = until_precise(gaps(model, 40, 103), 0.03)
    assert np.mean((low <= 0) & (high >= 0)) >= LEAST


@pytest.mark.parametrize(("rounds", "quantile"), [(3, 4.303), (4, 3.182)])
def test_few_rounds_have_students_interval(rounds, quantile):
    """The interval is the mean, more or less the tabulated quantile of t times the mean's standard error."""
    values = np.random.default_rng(3).normal(size=rounds)
    low, high = typical_interval(values, 0.95)
    assert (low + high) / 2 == pytest.approx(values.mean())
    assert (high - low) / 2 == pytest.approx(quantile * values.std(ddof=1) / np.sqrt(rounds), rel=2e-4)


@pytest.mark.parametrize(("rounds", "cut", "quantile"), [(8, 1, 2.571), (16, 2, 2.201), (31, 3, 2.064)])
def test_more_rounds_have_the_interval_of_their_trimmed_mean(rounds, cut, quantile):
    """An eighth is left out at each end; the spread is that of the values when these are drawn in to the next ones."""
    values = np.random.default_rng(3).normal(size=rounds)
    kept, drawn_in = np.sort(values)[cut:-cut], np.sort(values)
    drawn_in[:cut], drawn_in[-cut:] = kept[0], kept[-1]
    error = drawn_in.std(ddof=1) / (1 - 2 * cut / rounds) / np.sqrt(rounds)
    low, high = typical_interval(values, 0.95)
    assert (low + high) / 2 == pytest.approx(kept.mean()) == pytest.approx(float(typical(values)))
    assert (high - low) / 2 == pytest.approx(quantile * error, rel=0.12)


@pytest.mark.parametrize("rounds", [3, 8, 25])
def test_the_expected_width_is_that_of_normal_values(rounds):
    """Half of it, to a tenth: it says how many rounds a claim needs."""
    low, high = typical_interval(np.random.default_rng(5).normal(size=(RUNS, rounds)), 0.95)
    assert np.mean(high - low) / 2 == pytest.approx(expected_width(rounds, 0.95), rel=0.15)


@pytest.mark.parametrize("degrees", [1.4, 7.77, 900.5])
def test_quantiles_of_students_t_leave_the_share_above_them(degrees):
    """The density, summed by the trapezoidal rule, has the probability's share below the quantile."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    for probability in (0.9, 0.95, 0.975, 0.99, 0.995):
        t = np.linspace(0, float(t_quantile(degrees, probability)), 200_001)
        below = scale * np.trapezoid((1 + t**2 / degrees) ** (-(degrees + 1) / 2), t)
        assert 0.5 + below == pytest.approx(probability, abs=1e-7)
