"""Models of the noise of rounds: logarithms of the figures of arms that are typically equal.

The typical ratio of two such arms is 1. Outlying rounds of one arm only do not change that: they are what "typical"
leaves out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Draw = np.random.Generator
Shape = tuple[int, int, int]
"""Runs, arms, rounds."""
Model = Callable[[Draw, Shape], Floats]

SPREAD = 0.03
"""Standard deviation of an undisturbed round, as a share."""

_OFTEN = 0.1
"""Share of the rounds that are outlying."""


def clean(draw: Draw, shape: Shape) -> Floats:
    """Normal logarithms."""
    return draw.normal(0, SPREAD, shape)


def heavy_tails(draw: Draw, shape: Shape) -> Floats:
    """Student's t with 2.5 degrees of freedom."""
    return SPREAD * draw.standard_t(2.5, shape)


def outliers_in_one(draw: Draw, shape: Shape) -> Floats:
    """Each tenth round of the last arm takes 1.5 to 4 times as long."""
    logs = clean(draw, shape)
    logs[:, -1] += _outliers(draw, (shape[0], shape[2]))
    return logs


def outliers_in_all(draw: Draw, shape: Shape) -> Floats:
    """Each tenth round of each arm takes 1.5 to 4 times as long."""
    return clean(draw, shape) + _outliers(draw, shape)


def drift(draw: Draw, shape: Shape) -> Floats:
    """The machine's pace wanders from round to round, for all arms alike."""
    return clean(draw, shape) + np.cumsum(draw.normal(0, 0.1, (shape[0], 1, shape[2])), axis=-1)


def unequal(draw: Draw, shape: Shape) -> Floats:
    """The last arm varies five times as much."""
    logs = clean(draw, shape)
    logs[:, -1] *= 5
    return logs


def _outliers(draw: Draw, shape: tuple[int, ...]) -> Floats:
    return (draw.random(shape) < _OFTEN) * draw.uniform(np.log(1.5), np.log(4), shape)


MODELS: dict[str, Model] = {
    "clean": clean,
    "heavy tails": heavy_tails,
    "outliers in one arm": outliers_in_one,
    "outliers in all arms": outliers_in_all,
    "drift between rounds": drift,
    "unequal spreads": unequal,
}
