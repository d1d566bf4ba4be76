"""The report as one HTML file without scripts, fonts, images or requests to a network.

The page holds each chart in two widths and shows the one that fits the screen, so letters keep their size on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from markupsafe import Markup

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult
from clientlab.printable import printable
from clientlab.reports import colours
from clientlab.reports.charts.row_charts import RowChart
from clientlab.reports.claims_section import SIGNS
from clientlab.reports.contents import page_sections
from clientlab.reports.files import PAGE
from clientlab.reports.sections import Report, Section
from clientlab.reports.sweeps import Sweep
from clientlab.results.document import Run


def write(run: Run, path: Path, judged: Sequence[ThresholdResult] = ()) -> None:
    """Write a run's report, with the limits that it was judged by. Raises LabError."""
    with PAGE.writing(path):
        path.write_text(printable(render(run, judged)), encoding="utf-8")


def write_comparison(baseline: Run, sections: Sequence[Section], path: Path) -> None:
    """Write the sections of a comparison, in the frame of a run's page. Raises LabError."""
    named = {"run": baseline, "sections": sections, "title": sections[0].heading, "groups": 0, "drawn": 0}
    with PAGE.writing(path):
        path.write_text(printable(TEMPLATES.get_template("comparison.html.j2").render(named)), encoding="utf-8")


def render(run: Run, judged: Sequence[ThresholdResult] = ()) -> str:
    """The whole report as one HTML document. `judged`: the limits of its user, with their outcomes."""
    report = Report(run, judged)
    counts = {"groups": len(report.groups), "drawn": len(report.drawn)}
    return TEMPLATES.get_template("report.html.j2").render(run=run, sections=page_sections(report), **counts)


def _link(url: str | None) -> str | None:
    """The URL of the source, if it is an http or https URL: a run file may contain any text there."""
    return url if url and urlsplit(url).scheme in ("http", "https") else None


def _svg(chart: RowChart | Sweep, *, narrow: bool) -> Markup:
    from clientlab.reports.charts.drawing import svg  # noqa: PLC0415 - a page without charts needs no matplotlib

    return Markup(svg(chart, narrow=narrow))  # noqa: S704 - matplotlib escapes the texts


TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("clientlab.reports"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

TEMPLATES.globals |= {"palette": colours, "signs": SIGNS, "ratio": units.ratio, "digits": units.digits}
TEMPLATES.filters |= {"svg": _svg, "link": _link, "kind": lambda part: type(part).__name__}
