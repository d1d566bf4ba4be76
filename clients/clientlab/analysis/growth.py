"""Growth of a level over time, as memory, open files or a latency: per hour, with a confidence interval.

The first quarter of a trial is left out: caches fill, and allocators settle. The growth is the slope of a line through
the other readings. Readings depend on each other: garbage piles up, and an allocator keeps what it took. So the noise
around the line is a share of the noise before, and something new. That share is estimated, its bias removed, and a
share near 1 is taken for 1: then the level wanders, and the growth is the mean of its steps. The line is fitted to what
is new (generalised least squares), and its interval is Student's t.

The method is that of Perron and Yabu (2009), "Estimating deterministic trends with an integrated or stationary noise
component", Journal of Econometrics 151. tests/clients/analysis/test_growth.py counts how often the interval holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.typical import Floats, t_quantile

HOUR = 3600.0
SETTLING = 0.25
"""Of the trial's time: what is read in it does not count."""

FEWEST_READINGS = 12
"""That count. Without so many, no growth is computed."""

_WANDERS = 2.0
"""A share of the noise before is taken for 1 if it is closer to 1 than this over the root of the readings' number.

With 0.5 or 1, the interval of a level that wanders would hold no growth in 73 or 83 of 100 simulations; with 2, in 93.
"""

_PARTS, _LAST, _GOES_ON = 8, 3, 0.6
"""A cache that fills grows less and less. A leak grows in the last three parts of eight nearly as fast as in all."""

_ROUNDING = 1e-12
"""Relative. Smaller noise is the rounding of computations."""

_UPPER = 0.975
"""Of a 95 % interval with two sides."""


@dataclass(frozen=True)
class Drift:
    """Growth of a level per hour, with the ends of its 95 % interval. `level`: the median of what counted.

    `grows`: whether the interval is above 0, and the growth went on until the end, and is no trifle over the trial.
    """

    per_hour: float
    low: float
    high: float
    level: float
    grows: bool


def drift_of(moments: Sequence[float], levels: Sequence[float], least: float = 0.0) -> Drift | None:
    """The growth of a level. `moments`: seconds, ascending and about evenly spaced. None with too few readings.

    `least`: a smaller growth over the time that counts, as a share of the level, is a trifle.
    """
    if not len(moments):
        return None
    at, values = np.asarray(moments, np.float64), np.asarray(levels, np.float64)
    counts = at >= at[0] + SETTLING * (at[-1] - at[0])
    at, values = at[counts], values[counts]
    if len(at) < FEWEST_READINGS or at[-1] <= at[0]:
        return None
    span = float(at[-1] - at[0])
    slope, half = _slope((at - at[0]) / span, values)
    level, scale = float(np.median(values)), HOUR / span
    grows = slope > half and slope > least * level and _goes_on(values, slope)
    return Drift(slope * scale, (slope - half) * scale, (slope + half) * scale, level, grows)


def _slope(at: Floats, values: Floats) -> tuple[float, float]:
    """The growth while `at` goes from 0 to 1, and half the width of its interval."""
    if not np.ptp(values):
        return 0.0, 0.0
    line = np.stack([np.ones_like(at), at], axis=1)
    fitted = np.linalg.lstsq(line, values)[0]
    noise = values - line @ fitted
    if np.ptp(noise) <= _ROUNDING * float(np.abs(values).max()):
        return float(fitted[1]), 0.0
    kept = _kept_share(noise)
    if kept == 1.0:  # the steps have the growth of the line between two readings, and noise that is new
        line, values = np.diff(at)[:, None], np.diff(values)
    else:
        first = math.sqrt(1 - kept**2)
        line = np.concatenate([[first * line[0]], line[1:] - kept * line[:-1]])
        values = np.concatenate([[first * values[0]], values[1:] - kept * values[:-1]])
    found = np.linalg.lstsq(line, values)[0]
    left, free = values - line @ found, len(values) - line.shape[1]
    variance = np.linalg.inv(line.T @ line)[-1, -1] * float(left @ left) / free
    return float(found[-1]), float(t_quantile(free, _UPPER)) * math.sqrt(variance)


def _kept_share(noise: Floats) -> float:
    """The share of its noise that a reading has from the one before, from 0 to 1."""
    share = float(noise[1:] @ noise[:-1]) / float(noise[:-1] @ noise[:-1])
    share += (2 + 4 * max(share, 0.0)) / len(noise)  # the bias of a share around a fitted line
    return 1.0 if share > 1 - _WANDERS / math.sqrt(len(noise)) else max(0.0, share)


def _goes_on(values: Floats, slope: float) -> bool:
    """Whether the level still grows at the end."""
    medians = [float(np.median(part)) for part in np.array_split(values, _PARTS)]
    last = (medians[-1] - medians[-1 - _LAST]) / _LAST
    return last * _PARTS >= _GOES_ON * slope
