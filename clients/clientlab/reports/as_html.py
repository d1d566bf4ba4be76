"""The report as one HTML file without scripts, fonts, images or requests to a network.

The page holds each chart in two widths and shows the one that fits the screen, so
letters keep their size on a phone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports import sections as palette
from clientlab.reports.contents import SIGNS, page_sections
from clientlab.reports.rows import Report
from clientlab.reports.sections import RowChart, Section, Sweep
from clientlab.results.document import Run


def render_comparison(baseline: Run, sections: Sequence[Section]) -> str:
    """Return the sections of a comparison, in the frame of a run's page."""
    return TEMPLATES.get_template("comparison.html.j2").render(
        run=baseline, sections=sections, links=[]
    )


def render(
    run: Run, judged: Sequence[ThresholdResult] = (), beside: Path | None = None
) -> str:
    """Return the whole report as one HTML document.

    `judged`: the limits of its user, with their outcomes. `beside`: the folder of the
    page; files of the run that are below it are linked.
    """
    sections = page_sections(Report(run, judged))
    return TEMPLATES.get_template("report.html.j2").render(
        run=run, sections=sections, links=list(_find_links(run, beside))
    )


def _find_links(run: Run, beside: Path | None) -> Iterator[str]:
    """Yield relative paths of flame graphs and profiles that exist."""
    if beside is None:
        return
    names = []
    for explanation in run.explained:
        profile = explanation.profile
        if profile is not None:
            names += [profile.flame_graph, profile.speedscope]
    for folder in ("explained", f"{run.run}/explained", f"results/{run.run}/explained"):
        for name in names:
            path = f"{folder}/{name}"
            if (beside / path).is_file():
                yield path


def _svg(chart: RowChart | Sweep, *, narrow: bool) -> Markup:
    # A page without charts needs no matplotlib.
    from clientlab.reports.drawing import svg  # noqa: PLC0415

    return Markup(svg(chart, narrow=narrow))  # noqa: S704 - matplotlib escapes the texts


TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("clientlab.reports"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals |= {
    "palette": palette,
    "signs": SIGNS,
    "ratio": units.ratio,
    "digits": units.digits,
}
TEMPLATES.filters |= {
    "svg": _svg,
    "kind": lambda part: type(part).__name__,
}
