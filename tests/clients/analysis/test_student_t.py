"""Quantiles of Student's t distribution, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.analysis.typical import t_quantile

PROBABILITIES = (0.9, 0.95, 0.975, 0.99, 0.995)


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
