"""Compare runs: is this run better than another? It reads the lab's own metrics, long after the runs ended."""

from __future__ import annotations

from typing import Any

from dashboards.source import house, variables
from dashboards.source.house import HALF, LOW, TALL, WHOLE, grid, number, query
from grafana_foundation_sdk.builders import barchart
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model

from clientlab.results.figure_definition import Figure, Metric
from clientlab.results.figures import EXPORTED

UID = "clientlab-compare"

_ARMS = 'experiment="$experiment", strategy=~"$strategy", upstream=~"$upstream", route=~"$route"'
_RUNS, _BASELINE = 'run=~"$runs"', 'run="$baseline"'
_BASE = f"{_BASELINE}, {_ARMS}"
_OTHERS = f'{_RUNS}, run!="$baseline", {_ARMS}'
_RATIO, _UNLIKE = " ×", " ×≠"
_ROWS = "legend\\when"  # as Grafana names the first column of a matrix
_SAME = "arm, legend, strategy, workload, upstream, route"

_FIGURES = tuple((figure, metric) for figure, metric in EXPORTED if figure.compared)


def dashboard() -> board.Dashboard:
    """The user chooses a baseline and other runs of the same experiment."""
    made = house.dashboard(UID, "clientlab: compare runs", "Is this run better than another?", "30s", "now-1h")
    runs = 'label_values(clientlab_run_info{experiment="$experiment"}, run)'
    arms = 'clientlab_run_requests_per_second{experiment="$experiment"}'
    for chosen in (
        variables.variable("experiment", "Experiment", "label_values(clientlab_run_info, experiment)", multi=False),
        variables.runs_variable("baseline", "Baseline", _second_newest_first()),
        variables.variable("runs", "Runs", runs, newest=True),
        variables.variable("strategy", "Strategy", f"label_values({arms}, strategy)"),
        variables.variable("upstream", "Upstream", f"label_values({arms}, upstream)"),
        variables.variable("route", "Route", f"label_values({arms}, route)"),
    ):
        made = made.with_variable(chosen)
    made = made.with_panel(_unlike()).with_panel(_surroundings())
    for figure, metric in _FIGURES:
        made = made.with_panel(_table(figure, metric))
    for figure, metric in _FIGURES:
        made = made.with_panel(_side_by_side(figure, metric))
    return made


def _second_newest_first() -> str:
    """Runs by their start, latest first, but the newest last: it is the run that is compared with the one before it."""
    begun = 'clientlab_run_created_timestamp_seconds and on (run) clientlab_run_info{experiment="$experiment"}'
    return f"({begun} unless topk(1, {begun})) or 0 * topk(1, {begun})"


def _of(metric: Metric, labels: str) -> str:
    quantile = f'quantile="{metric.quantile}", ' if metric.quantile else ""
    return f"clientlab_run_{metric.name}{{{quantile}{labels}}}"


def _unlike() -> Any:
    runs, base = (f'clientlab_run_info{{experiment="$experiment", {one}}}' for one in (_RUNS, _BASELINE))
    unlike = f"count({runs} unless on (surroundings) {base}) or vector(0)"
    return (
        number(
            "Runs measured in other surroundings",
            "Their machine, Python, a library or a server differs from the baseline's. A ratio to them means little.",
            "short",
            query(unlike, "runs").instant(),
        )
        .thresholds(house.thresholds((None, "green"), (1, "orange")))
        .color_mode(looks.BigValueColorMode.BACKGROUND)
        .height(LOW + 2)
    )


def _surroundings() -> tables.Panel:
    return (
        grid(
            "Where were they measured?",
            "Runs with the same surroundings can be compared.",
            query('clientlab_run_info{experiment="$experiment", run=~"$runs|$baseline"}', now=True),
        )
        .transformations(
            house.columns(
                [("run", "run"), ("machine", "machine"), ("python", "Python"), ("surroundings", "surroundings")],
                "run",
                descending=True,
            )
        )
        .span(WHOLE - house.QUARTER)
        .height(LOW + 2)
    )


def _when(expression: str, mark: str = "") -> str:
    """The expression with a label ``when``, short enough for a heading: the start of the run, as 261121-141732."""
    return f'label_replace({expression}, "when", "$1{mark}", "run", "..(......-......).*")'


def _matrix() -> Any:
    """One row per arm, one column per run."""
    return house.transformation("groupingToMatrix", columnField="when", rowField="legend", valueField="Value")


def _ratios(metric: Metric) -> tuple[str, str]:
    """The ratio to the baseline: of runs with the baseline's surroundings, and of the others."""
    ratio = f"{_of(metric, _OTHERS)} / on ({_SAME}) group_left () max by ({_SAME}) ({_of(metric, _BASE)})"
    runs, base = (f'clientlab_run_info{{experiment="$experiment", {one}}}' for one in (_RUNS, _BASELINE))
    like = f"on (run) ({runs} and on (surroundings) {base})"
    return f"({ratio}) and {like}", f"({ratio}) unless {like}"


def _table(figure: Figure, metric: Metric) -> tables.Panel:
    """The value of each run, and beside it the ratio to the baseline."""
    alike, unlike = _ratios(metric)
    every = _of(metric, f'run=~"$runs|$baseline", {_ARMS}')
    cells = f"{_when(every)} or {_when(alike, _RATIO)} or {_when(unlike, _UNLIKE)}"
    steps = [(None, "red"), (0.95, "text"), (1.05, "green")]
    if figure.less_is_better:
        steps = [(None, "green"), (0.95, "text"), (1.05, "red")]
    colours = house.thresholds(*steps).build()
    ratios = house.ratio(thresholds=colours, custom_cellOptions={"type": "color-text"})
    return (
        grid(
            f"{figure.title}: what is the ratio to the baseline?",
            f"Medians by arm, and beside each ({_RATIO.strip()}) the ratio to the baseline, coloured from 5 % on. "
            f"'clientlab compare' computes intervals. {_UNLIKE.strip()}: measured in other surroundings, means little.",
            query(f"max by (when, legend) ({cells})", now=True),
        )
        .transformations(
            [
                house.transformation("sortBy", fields={}, sort=[{"field": "when"}]),
                _matrix(),
                house.transformation("organize", renameByName={_ROWS: "strategy"}),
            ]
        )
        .unit(house.UNITS[figure.unit])
        .override_by_name("strategy", house.looks_like("", custom_width=300))
        .override_by_regexp(f"/{_RATIO}/", ratios)
        .override_by_regexp(f"/{_UNLIKE}/", house.looks_like("", thresholds=house.thresholds((None, "text")).build()))
        .min_width(120)
    )


def _side_by_side(figure: Figure, metric: Metric) -> Any:
    """One group of bars per strategy, with one bar per run."""
    every = _of(metric, f'run=~"$runs|$baseline", {_ARMS}')
    return (
        barchart.Panel()
        .title(f"{figure.title}, run by run")
        .description("The median over the rounds of each run.")
        .datasource(house.SOURCE)
        .unit(house.UNITS[figure.unit])
        .min(0)
        .span(HALF)
        .height(TALL + 3)
        .orientation(looks.VizOrientation.HORIZONTAL)
        .x_field(_ROWS)
        .group_width(0.8)
        .show_value(looks.VisibilityMode.AUTO)
        .color_scheme(board.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC))  # one colour per run
        .legend(house.legend_below())
        .transformations([_matrix()])
        .with_target(query(f"max by (when, legend) ({_when(every)})", now=True))
    )
