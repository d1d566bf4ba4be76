"""The page: the data of its sections, and the templates that render them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import jinja2

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports import capacity, ceilings, environments, estimand, links, overload, shards, thresholds
from clientlab.reports.charts import palette, sweeps, times
from clientlab.reports.claims import SIGNS, source_first
from clientlab.reports.html import claims, distribution, percentiles, resources, svg, tables, timeline
from clientlab.reports.html.chart_data import ChartGroup, chart_groups
from clientlab.results.document import Run

MOST_GROUPS = 40
"""Groups with charts. The tables show all groups."""

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("clientlab.reports.html"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= {
    "palette": palette,
    "times_note": times.NOTE,
    "signs": SIGNS,
    "ratio": units.ratio,
    "digits": units.digits,
    "estimand": estimand,
}
_TEMPLATES.filters |= {"line": svg.line_path, "dots": svg.dots_path, "band": svg.band_path, "area": svg.area_path}


def render(run: Run, judged: Sequence[ThresholdResult] = ()) -> str:
    """The whole report as one HTML document. `judged`: the limits of its user, with their outcomes."""
    groups = chart_groups(run)
    drawn = groups[:MOST_GROUPS]
    return _TEMPLATES.get_template("report.html.j2").render(
        run=run,
        source_url=_link(run),
        answers=[*environments.sentences(run), *links.sentences(run), *capacity.answers_of(run, groups)],
        capacities=tables.capacities(run),
        capacity_note=capacity.note(run),
        overloads=tables.overloads(run),
        overload_note=overload.note(run),
        limits=thresholds.lines(judged),
        limits_failed=any(one.outcome == "failed" for one in judged),
        omitted_groups=len(groups) - len(drawn),
        standings_note=estimand.standings(group.open_load for group in groups),
        ceilings=ceilings.lines(run),
        shards=shards.lines(run),
        tables=[(group.title, tables.figures(group)) for group in groups],
        **_charts(run, drawn),
        **_texts(run),
    )


def _charts(run: Run, groups: list[ChartGroup]) -> dict[str, Any]:
    timelines, omitted_trials = timeline.timelines(groups)
    return {
        "bars": times.charts(run, groups),
        "percentiles": percentiles.charts(groups),
        "distributions": distribution.charts(groups),
        "overheads": distribution.overheads(groups),
        "sweeps": sweeps.charts(run),
        "costs": [(group.title, resources.charts(group)) for group in groups],
        "timelines": timelines,
        "omitted_trials": omitted_trials,
        "claims_chart": claims.chart(run),
    }


def _texts(run: Run) -> dict[str, Any]:
    return {
        "claims": source_first(run.claims),
        "errors": tables.errors(run),
        "failures": tables.failures(run),
        "partial": sum(bool(trial.partial) for trial in run.trials),
        "workloads": tables.workloads(run),
        "surroundings": tables.surroundings(run),
        "environments": environments.tables(run),
        "trials_done": sum(trial.status == "done" for trial in run.trials),
        "requests": sum(trial.requests for trial in run.trials),
    }


def _link(run: Run) -> str | None:
    """The URL of the source, if it is an http or https URL: a run file may contain any text there."""
    url = run.experiment.source.url if run.experiment.source else None
    return url if url and urlsplit(url).scheme in ("http", "https") else None
