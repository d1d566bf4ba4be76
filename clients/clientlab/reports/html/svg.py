"""Shapes as SVG paths, for drawings of 1,000 by 1,000 that the page stretches to the room there is.

The text of a chart is beside its drawing and not in it, so that letters keep their size on a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from clientlab.reports.charts.shapes import Point

SIZE = 1000


def line_path(points: Sequence[Point]) -> str:
    """A path through the points; a point without a height makes a gap."""
    path, pen = [], "M"
    for across, height in points:
        if height is None:
            pen = "M"
            continue
        path.append(f"{pen}{_x(across)} {_y(height)}")
        if pen == "M":
            path.append("h0")  # seen by itself when the next point is missing
        pen = "L"
    return "".join(path)


def dots_path(points: Sequence[tuple[float, float]]) -> str:
    """A path of dots: strokes of no length with round ends, which stay round when the drawing is stretched."""
    return "".join(f"M{_x(across)} {_y(height)}h0" for across, height in points)


def band_path(band: Sequence[tuple[float, float, float]]) -> str:
    """A path around a band: place, lower and upper end."""
    lower = [f"{_x(across)} {_y(low)}" for across, low, _ in band]
    upper = [f"{_x(across)} {_y(high)}" for across, _, high in band]
    return f"M{'L'.join([*lower, *reversed(upper)])}Z"


def area_path(heights: Sequence[float]) -> str:
    """A path around the area below heights (shares of the row) at even distances."""
    step = SIZE / len(heights)
    points = [f"{_short((place + 0.5) * step)} {_short(SIZE * (1 - h))}" for place, h in enumerate(heights)]
    return f"M0 {SIZE}L{'L'.join(points)}L{SIZE} {SIZE}Z"


def _x(place: float) -> str:
    return _short(place * SIZE / 100)


def _y(place: float) -> str:
    return _short((100 - place) * SIZE / 100)


def _short(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in a drawing")
    return f"{value:.1f}".removesuffix(".0")
