"""Quantiles of Student's t and of the studentised range; digamma and trigamma.

scipy has these functions, but importing `scipy.stats` takes 2 to 4 s, its wheels need
113 MB, and each quantile of its studentised range takes ten times as long as here. The
tests check these functions against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FARTHEST = 8.0
"""Standard deviations beyond which no normal value is expected."""

_NEGLIGIBLE = 45.0
"""e^-45 = 3e-20: the share of Student's distribution that the quadrature leaves out."""


def t_quantile(degrees: float | Floats, probability: float) -> Floats:
    """Return the quantile of Student's t with `degrees` of freedom (at least 1).

    `probability`: from 0.5 to below 1. The result has the shape of `degrees` and a
    relative error below 1e-10. With t = √f · sinh(u), the density of u is proportional
    to cosh(u)^-f (Student 1908, The probable error of a mean). The logarithm of the
    area above u is concave, so Newton's method finds the u of a given area.
    """
    freedom = np.asarray(degrees, np.float64)[..., None]
    length = np.arccosh(np.exp(_NEGLIGIBLE / freedom))
    nodes, weights = _quadrature(0, 1)

    def density(u: Floats) -> Floats:
        log_cosh_squared = np.log1p(np.sinh(u) ** 2)
        densities: Floats = np.exp(-freedom / 2 * log_cosh_squared)
        return densities

    def area_above(u: Floats) -> Floats:
        densities = density(u + length * nodes)
        mean = densities @ weights
        area: Floats = length * mean[..., None]
        return area

    u = np.zeros_like(freedom)
    half = area_above(u)
    wanted = 2 * (1 - probability) * half
    for _ in range(8):
        area = area_above(u)
        slope = density(u) / area
        excess = np.log(area / wanted)
        u += excess / slope
    quantile: Floats = np.sqrt(freedom) * np.sinh(u)
    return quantile[..., 0]


@cache
def range_quantile(count: int, degrees: float, probability: float) -> float:
    """Return the quantile of the studentised range of `count` normal values.

    The range is divided by an independent estimate of the values' standard deviation
    with `degrees` of freedom, at least 2 (Tukey 1953, The problem of multiple
    comparisons). The relative error is below 1e-4 from 3 degrees on.
    """
    values, weights = _quadrature(-_FARTHEST, _FARTHEST)
    densities = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    deviations, shares = _deviations(degrees)
    normal = _normal_table()
    below = np.interp(values, *normal)

    def is_above(studentised: float) -> bool:
        ranges = studentised * deviations[:, None]
        below_range = np.interp(values - ranges, *normal)
        inside = below - below_range
        # The density of the largest value if all others lie within the range below it.
        largest = count * densities * inside ** (count - 1)
        cumulative = float(shares @ largest @ weights)
        return cumulative > probability

    low = 0.0
    high = 1.0
    while not is_above(high):
        low = high
        high *= 2
    return _bisect(is_above, low, high)


def _deviations(degrees: float) -> tuple[Floats, Floats]:
    """Return estimates of a standard deviation of 1, and their shares.

    Their square roots are evenly covered, because few degrees of freedom put the tail
    of the range near 0.
    """
    width = 1 / math.sqrt(2 * degrees)
    lowest = math.sqrt(max(0.0, 1 - 8 * width))
    highest = math.sqrt(1 + 10 * width)
    roots, weights = _quadrature(lowest, highest)
    deviations = roots**2
    logs = (degrees - 1) * np.log(deviations)
    logs -= degrees * (roots**4 - 1) / 2
    densities = np.exp(logs - logs.max())
    shares = weights * roots * densities
    return deviations, shares / shares.sum()


def digamma(x: Floats) -> Floats:
    """Return ψ(x) for x > 0.

    This is the series of Abramowitz and Stegun (1964), 6.3.18, after 12 steps of the
    recurrence.
    """
    y = x + 12
    series: Floats = np.log(y) - 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4)
    return series - sum(1 / (x + step) for step in range(12))


def trigamma(x: Floats) -> Floats:
    """Return ψ'(x) for x > 0.

    This is the series of Abramowitz and Stegun (1964), 6.4.12, after 12 steps of the
    recurrence.
    """
    y = x + 12
    series: Floats = 1 / y + 1 / (2 * y**2) + 1 / (6 * y**3) - 1 / (30 * y**5)
    return series + sum(1 / (x + step) ** 2 for step in range(12))


def trigamma_inverse(value: float) -> float:
    """Return the x between 1e-4 and 1e4 whose ψ'(x) is `value`. ψ' decreases with x."""

    def is_above(log: float) -> bool:
        x = math.exp(log)
        return float(trigamma(np.array(x))) < value

    log = _bisect(is_above, math.log(1e-4), math.log(1e4))
    return math.exp(log)


def _bisect(is_above: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(30):
        middle = (low + high) / 2
        if is_above(middle):
            high = middle
        else:
            low = middle
    return (low + high) / 2


@cache
def _normal_table() -> tuple[Floats, Floats]:
    """Return normal values and their cumulative probabilities.

    Interpolation between them errs by less than 1e-7.
    """
    grid = np.linspace(-_FARTHEST, _FARTHEST, 16_001)
    scaled = grid / -math.sqrt(2)
    below = np.array([math.erfc(value) for value in scaled.tolist()])
    return grid, below / 2


_legendre = cache(np.polynomial.legendre.leggauss)


def _quadrature(low: float, high: float) -> tuple[Floats, Floats]:
    nodes, weights = _legendre(64)
    length = high - low
    points = low + (nodes + 1) / 2 * length
    return points, weights * length / 2
