"""Special functions compared with scipy's, and merged histograms of latencies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from clientlab.statistics.distributions import (
    digamma,
    range_quantile,
    t_quantile,
    trigamma,
    trigamma_inverse,
)
from clientlab.statistics.histogram import (
    Distribution,
    decode_histogram,
    make_histogram,
    merge_distributions,
)

POSITIVE = np.geomspace(1e-3, 1e4, 200)
WIDTH = 2**-10  # of a bucket, as a share of its value: three significant digits


@pytest.mark.parametrize("probability", [0.6, 0.8, 0.9, 0.975, 0.995, 0.9995, 1 - 1e-6])
def test_quantiles_of_students_t(probability):
    few = np.linspace(1, 12, 45)
    many = np.geomspace(12, 1e5, 60)
    degrees = np.concatenate([few, many])
    expected = stats.t.ppf(probability, degrees)
    assert t_quantile(degrees, probability) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("count", [2, 3, 8, 24])
@pytest.mark.parametrize("degrees", [2, 3, 4.5, 11, 120.3])
@pytest.mark.parametrize("probability", [0.96, 0.999])
def test_quantiles_of_the_studentised_range(count, degrees, probability):
    """With two degrees of freedom, the far tail is less exact, but such intervals are
    wide anyway.
    """
    expected = float(stats.studentized_range.ppf(probability, count, degrees))
    precision = 1e-4 if degrees > 2 else 1e-3
    found = range_quantile(count, degrees, probability)
    assert found == pytest.approx(expected, rel=precision)


def test_digamma_trigamma_and_its_inverse():
    expected = special.digamma(POSITIVE)
    assert digamma(POSITIVE) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    expected = special.polygamma(1, POSITIVE)
    assert trigamma(POSITIVE) == pytest.approx(expected, rel=1e-8)
    for x in (0.05, 1.0, 7.5, 900.0):
        value = float(special.polygamma(1, x))
        assert trigamma_inverse(value) == pytest.approx(x, rel=1e-6)


def store(seconds, unit: float = 1e-9) -> Distribution:
    """Return a histogram as a run file contains it."""
    histogram = make_histogram(np.array(seconds))
    return decode_histogram(histogram.encode().decode(), unit)


def test_merged_histograms_have_the_quantiles_of_all_values_together():
    draw = np.random.default_rng(1)
    rounds = [draw.lognormal(-6 + number, 0.5, 4000) for number in range(3)]
    shares = np.array([0.0, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0])
    found = merge_distributions([store(seconds) for seconds in rounds])
    assert found.total == 12_000
    together = np.concatenate(rounds)
    exact = np.quantile(together, shares, method="inverted_cdf")
    assert found.quantiles(shares) == pytest.approx(exact, rel=2 * WIDTH)


def test_shares_between_edges_are_shares_of_all_latencies():
    found = store([0.001] * 6 + [0.01] * 3 + [1.0])
    assert found.shares(np.array([0.0005, 0.005, 0.05])).tolist() == [0.6, 0.3]
