"""Compare runs: is this run better than that one? Works long after they ended, from the lab's own metrics."""

from __future__ import annotations

from typing import Any

from dashboards.source import house
from dashboards.source.house import HALF, LOW, TALL, WHOLE, grid, number, query
from grafana_foundation_sdk.builders import barchart, common
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model

UID = "clientlab-compare"

_WAY = 'experiment="$experiment", strategy=~"$strategy", upstream=~"$upstream", route=~"$route"'
_RUNS, _BASELINE = 'run=~"$runs"', 'run="$baseline"'
_BASE = f"{_BASELINE}, {_WAY}"
_OTHERS = f'{_RUNS}, run!="$baseline", {_WAY}'
_RATIO, _UNLIKE = " ×", " ×≠"
_ROWS = "legend\\when"  # as Grafana names the first column of a matrix
_SAME = "arm, legend, strategy, workload, upstream, route"

# metric, what it is called, its unit, whether more of it is better
_FIGURES = (
    ("clientlab_run_requests_per_second", "Requests a second", "reqps", True),
    ('clientlab_run_latency_seconds{quantile="0.5"', "p50", "s", False),
    ('clientlab_run_latency_seconds{quantile="0.99"', "p99", "s", False),
    ("clientlab_run_cpu_seconds_per_request", "CPU a request", "s", False),
    ("clientlab_run_peak_memory_bytes", "Peak memory", "bytes", False),
    ("clientlab_run_connections_opened", "Connections opened", "short", False),
)


def dashboard() -> board.Dashboard:
    """Pick a baseline and other runs of the same experiment."""
    made = house.dashboard(UID, "clientlab: compare runs", "Is this run better than that one?", "30s", "now-1h")
    runs = 'label_values(clientlab_run_info{experiment="$experiment"}, run)'
    ways = 'clientlab_run_requests_per_second{experiment="$experiment"}'
    for chosen in (
        house.variable("experiment", "Experiment", "label_values(clientlab_run_info, experiment)", many=False),
        house.variable("baseline", "Baseline", runs, many=False, newest=True),
        house.variable("runs", "Runs", runs, newest=True),
        house.variable("strategy", "Strategy", f"label_values({ways}, strategy)"),
        house.variable("upstream", "Upstream", f"label_values({ways}, upstream)"),
        house.variable("route", "Route", f"label_values({ways}, route)"),
    ):
        made = made.with_variable(chosen)
    made = made.with_panel(_unlike()).with_panel(_surroundings())
    for metric, name, unit, better in _FIGURES:
        made = made.with_panel(_table(metric, name, unit, more_is_better=better))
    for metric, name, unit, _ in _FIGURES:
        made = made.with_panel(_side_by_side(metric, name, unit))
    return made


def _of(metric: str, labels: str) -> str:
    return f"{metric}, {labels}}}" if "{" in metric else f"{metric}{{{labels}}}"


def _unlike() -> Any:
    runs, base = (f'clientlab_run_info{{experiment="$experiment", {one}}}' for one in (_RUNS, _BASELINE))
    unlike = f"count({runs} unless on (surroundings) {base}) or vector(0)"
    return (
        number(
            "Runs measured in other surroundings",
            "Another machine, Python, library or server than the baseline's: a ratio to such a run says little.",
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
    """The expression with a label that is short enough for a heading: when the run began, as 261121-141732."""
    return f'label_replace({expression}, "when", "$1{mark}", "run", "..(......-......).*")'


def _matrix() -> Any:
    """A row an arm, a column a run."""
    return house.transformation("groupingToMatrix", columnField="when", rowField="legend", valueField="Value")


def _ratios(metric: str) -> tuple[str, str]:
    """How many times the baseline's: of runs measured where the baseline was, and of the others."""
    ratio = f"{_of(metric, _OTHERS)} / on ({_SAME}) group_left () max by ({_SAME}) ({_of(metric, _BASE)})"
    runs, base = (f'clientlab_run_info{{experiment="$experiment", {one}}}' for one in (_RUNS, _BASELINE))
    like = f"on (run) ({runs} and on (surroundings) {base})"
    return f"({ratio}) and {like}", f"({ratio}) unless {like}"


def _table(metric: str, name: str, unit: str, *, more_is_better: bool) -> tables.Panel:
    """Each run's value, and beside it how many times the baseline's it is."""
    alike, unlike = _ratios(metric)
    every = _of(metric, f'run=~"$runs|$baseline", {_WAY}')
    cells = f"{_when(every)} or {_when(alike, _RATIO)} or {_when(unlike, _UNLIKE)}"
    steps = [(None, "red"), (0.95, "text"), (1.05, "green")]
    if not more_is_better:
        steps = [(None, "green"), (0.95, "text"), (1.05, "red")]
    colours = house.thresholds(*steps).build()
    ratios = house.looks_like("none", decimals=2, thresholds=colours, custom_cellOptions={"type": "color-text"})
    return (
        grid(
            f"{name}: how many times the baseline's?",
            f"The run's median, and beside it ({_RATIO.strip()}) over the baseline's, arm by arm. Colour begins at "
            f"5 %: for intervals, ask 'clientlab compare'. {_UNLIKE.strip()}: from other surroundings, says little.",
            query(f"max by (when, legend) ({cells})", now=True),
        )
        .transformations(
            [
                house.transformation("sortBy", fields={}, sort=[{"field": "when"}]),
                _matrix(),
                house.transformation("organize", renameByName={_ROWS: "strategy"}),
            ]
        )
        .unit(unit)
        .override_by_name("strategy", house.looks_like("", custom_width=300))
        .override_by_regexp(f"/{_RATIO}/", ratios)
        .override_by_regexp(f"/{_UNLIKE}/", house.looks_like("", thresholds=house.thresholds((None, "text")).build()))
        .min_width(120)
    )


def _side_by_side(metric: str, name: str, unit: str) -> Any:
    """A group of bars a strategy, in it a bar a run."""
    figure = _of(metric, f'run=~"$runs|$baseline", {_WAY}')
    return (
        barchart.Panel()
        .title(f"{name}, run by run")
        .description("Medians over each run's rounds.")
        .datasource(house.SOURCE)
        .unit(unit)
        .min(0)
        .span(HALF)
        .height(TALL + 3)
        .orientation(looks.VizOrientation.HORIZONTAL)
        .x_field(_ROWS)
        .group_width(0.8)
        .show_value(looks.VisibilityMode.AUTO)
        .color_scheme(board.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC))  # a colour a run
        .legend(
            common.VizLegendOptions()
            .display_mode(looks.LegendDisplayMode.LIST)
            .placement(looks.LegendPlacement.BOTTOM)
            .show_legend(show_legend=True)
        )
        .transformations([_matrix()])
        .with_target(query(f"max by (when, legend) ({_when(figure)})", now=True))
    )
