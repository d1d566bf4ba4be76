"""The page: what each section shows, and the templates that write it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import jinja2

from clientlab.reports.answer import answers
from clientlab.reports.html import bars, claims, distribution, facts, percentiles, resources, sweep, timeline
from clientlab.reports.html.entries import Way, ways_of
from clientlab.reports.html.palette import COLOURS, DASHES
from clientlab.runs.document import Run

MOST_WAYS = 40
"""Ways to an upstream that pictures are drawn of; the tables have all."""

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("clientlab.reports.html"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= {"COLOURS": COLOURS, "DASHES": DASHES}


def render(run: Run) -> str:
    """The whole report as one HTML document."""
    ways = ways_of(run)
    drawn = ways[:MOST_WAYS]
    return _TEMPLATES.get_template("report.html.j2").render(
        run=run,
        source_url=_link(run),
        answers=answers([way.group for way in ways]),
        omitted_ways=len(ways) - len(drawn),
        tables=[(way.title, facts.figures(way)) for way in ways],
        **_pictures(run, drawn),
        **_words(run),
    )


def _pictures(run: Run, ways: list[Way]) -> dict[str, Any]:
    courses, omitted_trials = timeline.courses(ways)
    return {
        "bars": bars.charts(ways) if ways else [],
        "percentiles": percentiles.charts(ways),
        "distributions": distribution.charts(ways),
        "overheads": distribution.overheads(ways),
        "sweeps": sweep.charts(run),
        "resources": [(way.title, resources.charts(way)) for way in ways],
        "courses": courses,
        "omitted_trials": omitted_trials,
        "claims_chart": claims.chart(run),
    }


def _words(run: Run) -> dict[str, Any]:
    return {
        "judged": claims.judged(run),
        "errors": facts.errors(run),
        "failures": facts.failures(run),
        "workloads": facts.workloads(run),
        "surroundings": facts.surroundings(run),
        "trials_done": sum(trial.status == "done" for trial in run.trials),
        "requests": sum(trial.requests for trial in run.trials),
    }


def _link(run: Run) -> str | None:
    """The source's address where it is one of the web: a run file may hold any text there."""
    url = run.experiment.source.url if run.experiment.source else None
    return url if url and urlsplit(url).scheme in ("http", "https") else None
