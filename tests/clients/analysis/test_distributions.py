"""The special functions against scipy's, over a grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from clientlab.analysis.distributions import digamma, range_quantile, t_quantile, trigamma, trigamma_inverse

POSITIVE = np.geomspace(1e-3, 1e4, 200)


@pytest.mark.parametrize("probability", [0.6, 0.8, 0.9, 0.975, 0.995, 0.9995, 1 - 1e-6])
def test_quantiles_of_students_t(probability):
    """With whole and fractional degrees of freedom, from 1 to 100,000."""
    degrees = np.concatenate([np.linspace(1, 12, 45), np.geomspace(12, 1e5, 60)])
    assert t_quantile(degrees, probability) == pytest.approx(stats.t.ppf(probability, degrees), rel=1e-10)


@pytest.mark.parametrize("count", [2, 3, 8, 24])
@pytest.mark.parametrize("degrees", [2, 3, 4.5, 11, 120.3])
@pytest.mark.parametrize("probability", [0.96, 0.999])
def test_quantiles_of_the_studentised_range(count, degrees, probability):
    """Of two degrees of freedom and many values, the far tail is less exact: such intervals are wide anyway."""
    expected = float(stats.studentized_range.ppf(probability, count, degrees))
    assert range_quantile(count, degrees, probability) == pytest.approx(expected, rel=1e-4 if degrees > 2 else 1e-3)


def test_digamma_trigamma_and_its_inverse():
    """Of every number of degrees of freedom that occurs."""
    assert digamma(POSITIVE) == pytest.approx(special.digamma(POSITIVE), rel=1e-8, abs=1e-8)
    assert trigamma(POSITIVE) == pytest.approx(special.polygamma(1, POSITIVE), rel=1e-8)
    for x in (0.05, 1.0, 7.5, 900.0):
        assert trigamma_inverse(float(special.polygamma(1, x))) == pytest.approx(x, rel=1e-6)
