"""Experiment: the article's picture, the curve of its sweep, and the verdicts of its claims."""

from __future__ import annotations

from typing import Any

from dashboards.source import house
from dashboards.source.house import HALF, TALL, WHOLE, bars, grid, number, query
from grafana_foundation_sdk.builders import common, trend
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks

UID = "clientlab-experiment"

_RUN = 'run="$run"'
_AXIS = "place on the axis of a sweep"
"""Grafana's message names this field if the experiment has no sweep."""

_PLACES = "place\\curve"  # as Grafana names the first column of a matrix


def dashboard() -> board.Dashboard:
    """One run of one experiment."""
    made = house.dashboard(UID, "clientlab: experiment", "What did this run of the experiment find?", "30s", "now-1h")
    for chosen in (
        house.variable("experiment", "Experiment", "label_values(clientlab_run_info, experiment)", multi=False),
        house.variable(
            "run", "Run", 'label_values(clientlab_run_info{experiment="$experiment"}, run)', multi=False, newest=True
        ),
        house.variable(
            "axis", "Axis of the sweep", f"label_values(clientlab_run_axis_value{{{_RUN}}}, axis)", multi=False
        ),
    ):
        made = made.with_variable(chosen)
    for panel in (*_counts(), _claims(), _sweep(), _seconds(), _spread()):
        made = made.with_panel(panel)
    return made


def _seconds() -> Any:
    return (
        bars(
            "How many seconds for 1,000 requests?",
            "From the median throughput of the rounds, which trials of a duration have as well. Shorter is better.",
            "s",
            f"1000 / max by (legend) (clientlab_run_requests_per_second{{{_RUN}}})",
        )
        .span(WHOLE)
        .height(2 * TALL)
    )


def _claims() -> tables.Panel:
    return (
        grid(
            "Do the article's claims hold here?",
            "Ratio: the second arm's figure divided by the first's. Inconclusive: the interval allows both answers.",
            query(f"clientlab_run_claim{{{_RUN}}}", now=True),
        )
        .transformations(
            house.columns([("claim", "claim"), ("verdict", "verdict"), ("Value", "ratio")], "claim", descending=False)
        )
        .override_by_name("ratio", house.ratio())
        .no_value("this experiment makes no claims")
        .span(HALF)
        .height(TALL)
    )


def _sweep() -> Any:
    """One curve for all arms that differ along the axis only, with one point per arm."""
    places = f'count_values by (arm, curve) ("place", clientlab_run_axis_value{{{_RUN}, axis="$axis"}})'
    seconds = f"max by (arm) (clientlab_run_wall_seconds{{{_RUN}}})"
    return house.coloured(
        trend.Panel()
        .title("Where is the knee of the sweep?")
        .description(
            "Wall time of an arm by its place on the axis, both logarithmic. From the knee on, more gains nothing."
        )
        .datasource(house.SOURCE)
        .unit("s")
        .scale_distribution(common.ScaleDistributionConfig().type(looks.ScaleDistribution.LOG).log(10))
        .span(HALF)
        .height(TALL)
        .x_field(_AXIS)
        .override_by_name(_AXIS, house.looks_like("short"))
        .color_scheme(house.by_name())
        .line_width(2)
        .span_nulls(span_nulls=True)
        .show_points(looks.VisibilityMode.ALWAYS)
        .legend(house.legend_beside())
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI))
        .with_target(query(f"max by (curve, place) ({places} * on (arm) group_left () {seconds})", now=True))
        .transformations(
            [
                house.transformation(
                    "groupingToMatrix", columnField="curve", rowField="place", valueField="Value", emptyValue="null"
                ),
                house.transformation(
                    "convertFieldType", fields={}, conversions=[{"targetField": _PLACES, "destinationType": "number"}]
                ),
                house.transformation("sortBy", fields={}, sort=[{"field": _PLACES, "desc": False}]),
                house.transformation("organize", renameByName={_PLACES: _AXIS}),
            ]
        ),
        dashes=True,
    )


def _spread() -> tables.Panel:
    refs = {
        "A": "clientlab_run_wall_seconds_low",
        "B": "clientlab_run_wall_seconds",
        "C": "clientlab_run_wall_seconds_high",
    }
    shown = [
        ("legend", "arm"),
        ("Value #A", "low"),
        ("Value #B", "median"),
        ("Value #C", "high"),
        ("verdict", "bottleneck"),
    ]
    panel = grid(
        "How precise are the figures?",
        "Median and 95 % confidence interval over the rounds. With fewer than three rounds there is no interval.",
        *(query(f"max by (legend) ({metric}{{{_RUN}}})", ref=ref, now=True) for ref, metric in refs.items()),
        query(f"max by (legend, verdict) (clientlab_run_verdict{{{_RUN}}})", ref="D", now=True),
    ).transformations([house.joined("legend"), *house.columns(shown, "median", descending=False)])
    panel = panel.override_by_name("arm", house.looks_like("", custom_width=420))
    for heading in ("low", "median", "high"):
        panel = panel.override_by_name(heading, house.looks_like("s"))
    return panel.span(WHOLE)


def _counts() -> list[Any]:
    kinds = (
        ("supported", "Claims that hold", "green"),
        ("contradicted", "Claims that do not", "red"),
        ("inconclusive", "Claims that are inconclusive", "orange"),
    )
    panels: list[Any] = [
        number(
            title,
            "On this machine, in this run.",
            "short",
            query(f'count(clientlab_run_claim{{{_RUN}, verdict="{verdict}"}}) or vector(0)', verdict).instant(),
        )
        .thresholds(house.thresholds((None, "text"), (1, colour)))
        .color_mode(looks.BigValueColorMode.VALUE)
        for verdict, title, colour in kinds
    ]
    panels.append(
        number(
            "When did the run begin?",
            "The start of the run.",
            "dateTimeFromNow",
            query(f"clientlab_run_created_timestamp_seconds{{{_RUN}}} * 1000", "run").instant(),
        )
    )
    return panels
