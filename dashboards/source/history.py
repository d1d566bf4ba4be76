"""History: since which run is an arm slower? The runs of one experiment over time, and the levels between changes."""

from __future__ import annotations

from typing import Any

from dashboards.source import house, variables
from dashboards.source.house import HALF, TALL, WHOLE, grid, query
from grafana_foundation_sdk.builders import common, trend
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks

from clientlab.judging.history_lines import figures_with
from clientlab.results.figure_definition import Figure, Metric
from clientlab.results.figures import EXPORTED

UID = "clientlab-history"

_ARMS = 'run=~"$runs", experiment="$experiment", strategy=~"$strategy", upstream=~"$upstream", route=~"$route"'
_BEGUN = 'count_values by (run) ("begun", clientlab_run_created_timestamp_seconds{run=~"$runs"} * 1000)'
_TIMES = "begun\\legend"  # as Grafana names the first column of a matrix
_WHEN = "begin of the run"
_TYPICAL = "(typical)"
_FOLLOWED = tuple((figure, metric) for figure, metric in EXPORTED if figure in figures_with(()))


def dashboard() -> board.Dashboard:
    """The user chooses an experiment, and may leave out runs of other surroundings."""
    made = house.dashboard(UID, "clientlab: history", "Since which run is an arm slower?", "1m", "now-1h")
    runs = 'label_values(clientlab_run_info{experiment="$experiment", surroundings=~"$surroundings"}, run)'
    arms = 'clientlab_run_requests_per_second{experiment="$experiment"}'
    where = 'label_values(clientlab_run_info{experiment="$experiment"}, surroundings)'
    for chosen in (
        variables.variable("experiment", "Experiment", "label_values(clientlab_run_info, experiment)", multi=False),
        variables.variable("surroundings", "Surroundings", where),
        variables.variable("runs", "Runs", runs, newest=True),
        variables.variable("strategy", "Strategy", f"label_values({arms}, strategy)"),
        variables.variable("upstream", "Upstream", f"label_values({arms}, upstream)"),
        variables.variable("route", "Route", f"label_values({arms}, route)"),
    ):
        made = made.with_variable(chosen)
    made = made.with_panel(_changes())
    for figure, metric in _FOLLOWED:
        made = made.with_panel(_course(figure, metric))
    return made


def _dated(expression: str) -> str:
    """The values with the moment at which their run began, in milliseconds, as a label."""
    return f"max by (run, begun, legend) ({expression} * on (run) group_left (begun) {_BEGUN})"


def _course(figure: Figure, metric: Metric) -> Any:
    """The level of each run as points, and the typical level between two changes as a line."""
    quantile = f', quantile="{metric.quantile}"' if metric.quantile else ""
    level = f"clientlab_run_{metric.name}{{{_ARMS}{quantile}}}"
    typical = f'clientlab_run_typical_level{{{_ARMS}, figure="{figure.key}"}}'
    named = f'label_replace({_dated(typical)}, "legend", "$1 {_TYPICAL}", "legend", "(.*)")'
    return house.coloured(
        trend.Panel()
        .title(f"{figure.label}: has its level changed?")
        .description(
            "Points: the median over the rounds of each run. Lines: the typical level between two changes; a step is a "
            "change that 95 of 100 histories without one do not show. The axis does not begin at 0."
        )
        .datasource(house.SOURCE)
        .unit(house.UNITS[figure.unit])
        .span(HALF)
        .height(TALL + 2)
        .x_field(_WHEN)
        .override_by_name(_WHEN, house.looks_like("dateTimeAsIso"))
        .color_scheme(house.by_name())
        .line_width(0)
        .span_nulls(span_nulls=True)
        .show_points(looks.VisibilityMode.ALWAYS)
        .legend(house.legend_below())
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI))
        .with_target(query(f"{_dated(level)} or {named}", now=True))
        .transformations(
            [
                house.transformation(
                    "groupingToMatrix", columnField="legend", rowField="begun", valueField="Value", emptyValue="null"
                ),
                house.transformation(
                    "convertFieldType", fields={}, conversions=[{"targetField": _TIMES, "destinationType": "number"}]
                ),
                house.transformation("sortBy", fields={}, sort=[{"field": _TIMES, "desc": False}]),
                house.transformation("organize", renameByName={_TIMES: _WHEN}),
            ]
        ),
    ).override_by_regexp(
        r"/\(typical\)$/",
        house.looks_like("", custom_lineWidth=2, custom_showPoints="never", custom_hideFrom=_UNLISTED),
    )


_UNLISTED = {"legend": True, "tooltip": False, "viz": False}


def _changes() -> tables.Panel:
    """The changes, the newest first."""
    shown = [
        ("begun", _WHEN), ("run", "run"), ("legend", "arm"), ("figure", "figure"), ("verdict", "change"),
        ("Value", "ratio"),
    ]  # fmt: skip
    dated = f"clientlab_run_change{{{_ARMS}}} * on (run) group_left (begun) {_BEGUN}"
    return (
        grid(
            "Since when is it another one?",
            "A change of a level, with the run in which it began. Ratio: the new level over the old one; of errors, "
            "the difference. With four arms or more, it is judged relative to the other arms of the run. Of 100 "
            "histories without a change, 95 show none.",
            query(f"max by (run, begun, legend, figure, verdict) ({dated})", now=True),
        )
        .transformations(
            [
                house.transformation(
                    "convertFieldType", fields={}, conversions=[{"targetField": "begun", "destinationType": "number"}]
                ),
                *house.columns(shown, _WHEN, descending=True),
            ]
        )
        .override_by_name(_WHEN, house.looks_like("dateTimeAsIso", custom_width=180))
        .override_by_name("ratio", house.ratio(custom_width=90))
        .no_value("no change among the stored runs")
        .span(WHOLE)
    )
