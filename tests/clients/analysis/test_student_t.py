"""Quantiles of Student's t distribution, against a published table and closed forms."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from clientlab.analysis.typical import t_quantile

PROBABILITIES = (0.9, 0.95, 0.975, 0.99, 0.995)
TABLE = {
    1: (3.078, 6.314, 12.706, 31.821, 63.657),
    2: (1.886, 2.920, 4.303, 6.965, 9.925),
    3: (1.638, 2.353, 3.182, 4.541, 5.841),
    4: (1.533, 2.132, 2.776, 3.747, 4.604),
    5: (1.476, 2.015, 2.571, 3.365, 4.032),
    10: (1.372, 1.812, 2.228, 2.764, 3.169),
    30: (1.310, 1.697, 2.042, 2.457, 2.750),
    100: (1.290, 1.660, 1.984, 2.364, 2.626),
}
"""NIST/SEMATECH, e-Handbook of Statistical Methods, section 1.3.6.7.2: degrees of freedom to quantiles."""


@pytest.mark.parametrize("degrees", TABLE)
def test_quantiles_are_those_of_the_table(degrees):
    """Each of the table's values is the quantile to three digits."""
    assert [round(float(t_quantile(degrees, probability)), 3) for probability in PROBABILITIES] == list(TABLE[degrees])


def _of_one(p: float) -> float:
    return math.tan(math.pi * (p - 0.5))


def _of_two(p: float) -> float:
    return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))


def _of_four(p: float) -> float:
    root = math.sqrt(4 * p * (1 - p))
    return 2 * math.sqrt(math.cos(math.acos(root) / 3) / root - 1)


@pytest.mark.parametrize(("degrees", "exact"), [(1, _of_one), (2, _of_two), (4, _of_four)])
def test_quantiles_are_those_of_the_closed_forms(degrees, exact):
    """With 1, 2 and 4 degrees of freedom, quantiles agree to 1e-11 with Shaw (2006), J. Computational Finance 9(4)."""
    for probability in (0.5, 0.6, 0.8, 0.975, 0.9995, 0.9999):
        assert float(t_quantile(degrees, probability)) == pytest.approx(exact(probability), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("degrees", [1.4, 7.77, 900.5])
def test_quantiles_of_degrees_that_are_not_whole_leave_the_share_above_them(degrees):
    """The density, summed by the trapezoidal rule, has the probability's share below the quantile."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    for probability in PROBABILITIES:
        t = np.linspace(0, float(t_quantile(degrees, probability)), 200_001)
        below = scale * np.trapezoid((1 + t**2 / degrees) ** (-(degrees + 1) / 2), t)
        assert 0.5 + below == pytest.approx(probability, abs=1e-7)


def test_many_degrees_have_the_quantiles_of_the_normal_distribution():
    """A million degrees of freedom differ from it by less than 1e-5."""
    assert float(t_quantile(1e6, 0.975)) == pytest.approx(NormalDist().inv_cdf(0.975), rel=1e-5)
