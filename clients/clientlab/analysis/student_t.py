"""Quantiles of Student's t distribution, with what NumPy and the standard library have."""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_NODES = 64
_NEGLIGIBLE = 45.0
"""e^-45 = 3e-20: the share of the distribution that the quadrature leaves out."""
_LAST_STEP = 1e-7
"""Relative. Each of Newton's steps squares the error, so none is needed after one of this size."""


def t_quantile(degrees: float | Floats, probability: float) -> Floats:
    """The value that Student's t with `degrees` of freedom does not exceed with `probability`, shaped as `degrees`.

    `degrees` are at least 1 and need not be whole; 0.5 <= `probability` < 1. The relative error is below 1e-11.

    With t = √f · sinh(u), the density of u is proportional to cosh(u)^-f. It is smooth enough for Gauss's quadrature,
    and falls as u grows, so Newton's method converges.
    """
    freedom = np.asarray(degrees, np.float64)
    z = NormalDist().inv_cdf(probability)
    # Abramowitz and Stegun (1964), 26.7.5, without its further terms: a start close to the quantile, and below it.
    start = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    found = np.arcsinh(start / np.sqrt(freedom))
    half = _area_above(np.zeros_like(freedom), freedom)
    while True:
        above = _area_above(found, freedom) - 2 * (1 - probability) * half
        step = above / _density(found, freedom)
        found = found + step
        if not np.any(np.abs(step) > _LAST_STEP * found):
            quantile: Floats = np.sqrt(freedom) * np.sinh(found)
            return quantile


def _density(u: Floats, freedom: Floats) -> Floats:
    """cosh(u)^-f."""
    found: Floats = np.exp(-freedom / 2 * np.log1p(np.sinh(u) ** 2))
    return found


def _area_above(u: Floats, freedom: Floats) -> Floats:
    """The integral of the density from `u` on."""
    length = np.arccosh(np.exp(_NEGLIGIBLE / freedom))
    nodes, weights = _quadrature()
    found: Floats = length * (_density(u[..., None] + length[..., None] * nodes, freedom[..., None]) @ weights)
    return found


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss's quadrature from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2
