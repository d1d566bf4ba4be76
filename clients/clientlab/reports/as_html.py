"""The report as one HTML file without scripts, fonts, images or requests to a network.

Charts are drawings of 1,000 by 1,000 that the page stretches to the room there is. The text of a chart is beside its
drawing and not in it, so that letters keep their size on a telephone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import jinja2

from clientlab import units
from clientlab.errors import LabError
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports import memory_section, profile_section
from clientlab.reports.charts import chart_data
from clientlab.reports.charts.shapes import LineChart, Point
from clientlab.reports.claims_section import SIGNS
from clientlab.reports.contents import page_sections
from clientlab.reports.files import FLAME, PAGE
from clientlab.reports.sections import Report
from clientlab.results.document import Run

_SIZE = 1000
_TITLE_HEIGHT = 60
"""Units of an SVG for the title and the legend of a flame graph."""


def write(run: Run, path: Path, judged: Sequence[ThresholdResult] = ()) -> None:
    """Write a run's report, with the limits that it was judged by. Raises LabError."""
    with PAGE.writing(path):
        path.write_text(render(run, judged), encoding="utf-8")


def render(run: Run, judged: Sequence[ThresholdResult] = ()) -> str:
    """The whole report as one HTML document. `judged`: the limits of its user, with their outcomes."""
    report = Report(run, judged)
    counts = {"groups": len(report.groups), "drawn": len(report.drawn)}
    return TEMPLATES.get_template("report.html.j2").render(run=run, sections=page_sections(report), **counts)


def write_flames(run: Run, path: Path) -> None:
    """Write the flame graphs of a run's profiles as one SVG. Raises LabError."""
    graphs = [*profile_section.graphs(run), *memory_section.graphs(run)]
    if not graphs:
        raise LabError(f"flame graph {path}: run {run.run} has no profile; measure with --profile")
    tops = list(itertools.accumulate((graph.high + _TITLE_HEIGHT for graph in graphs), initial=0))
    with FLAME.writing(path):
        text = TEMPLATES.get_template("flame.svg.j2").render(
            placed=list(zip(graphs, tops, strict=False)), high=tops[-1]
        )
        path.write_text(text, encoding="utf-8")


def _link(url: str | None) -> str | None:
    """The URL of the source, if it is an http or https URL: a run file may contain any text there."""
    return url if url and urlsplit(url).scheme in ("http", "https") else None


def _line_path(points: Sequence[Point]) -> str:
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


def _dots_path(points: Sequence[tuple[float, float]]) -> str:
    """A path of dots: strokes of no length with round ends, which stay round when the drawing is stretched."""
    return "".join(f"M{_x(across)} {_y(height)}h0" for across, height in points)


def _band_path(band: Sequence[tuple[float, float, float]]) -> str:
    """A path around a band: place, lower and upper end."""
    lower = [f"{_x(across)} {_y(low)}" for across, low, _ in band]
    upper = [f"{_x(across)} {_y(high)}" for across, _, high in band]
    return f"M{'L'.join([*lower, *reversed(upper)])}Z"


def _area_path(heights: Sequence[float]) -> str:
    """A path around the area below heights (shares of the row) at even distances."""
    step = _SIZE / len(heights)
    points = [f"{_short((index + 0.5) * step)} {_short(_SIZE * (1 - h))}" for index, h in enumerate(heights)]
    return f"M0 {_SIZE}L{'L'.join(points)}L{_SIZE} {_SIZE}Z"


def _x(place: float) -> str:
    return _short(place * _SIZE / 100)


def _y(place: float) -> str:
    return _short((100 - place) * _SIZE / 100)


def _short(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in a drawing")
    return f"{value:.1f}".removesuffix(".0")


TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("clientlab.reports"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
"""Of charts and tables in HTML: other pages may import ``parts.html.j2`` and ``style.css.j2``."""

TEMPLATES.globals |= {"palette": chart_data, "signs": SIGNS, "ratio": units.ratio, "digits": units.digits}
TEMPLATES.filters |= {
    "line": _line_path,
    "dots": _dots_path,
    "band": _band_path,
    "area": _area_path,
    "link": _link,
    "kind": lambda part: type(part).__name__,
}
TEMPLATES.tests |= {"line_chart": lambda chart: isinstance(chart, LineChart)}
