"""Compare runs: is this run better than another? It reads the lab's own metrics, long after the runs ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboards.source import house, variables
from dashboards.source.house import HALF, LOW, TALL, WHOLE, grid, number, query
from grafana_foundation_sdk.builders import barchart, common
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model

from clientlab.analysis.decisions import EQUAL, EQUAL_SHARE
from clientlab.results.figure_definition import Figure, Metric
from clientlab.results.figures import EXPORTED

UID = "clientlab-compare"

_ARMS = 'experiment="$experiment", strategy=~"$strategy", upstream=~"$upstream", route=~"$route", link=~"$link"'
_RUNS, _BASELINE = 'run=~"$runs"', 'run="$baseline"'
_BASE = f"{_BASELINE}, {_ARMS}"
_OTHERS = f'{_RUNS}, run!="$baseline", {_ARMS}'
_RATIO, _NOISE, _UNLIKE = " ×", " ×≈", " ×≠"
_COLOURED = {"type": "color-text"}
_ROWS = "legend\\when"  # as Grafana names the first column of a matrix
_SAME = "arm, legend, strategy, workload, upstream, route, link"

# Not the wall time: where trials have a fixed duration, it says nothing, and else requests per second say the same.
_FIGURES = tuple((figure, metric) for figure, metric in EXPORTED if figure.compared and figure.key != "wall")
_FOREST = tuple(pair for pair in _FIGURES if pair[0].key in {"throughput", "cpu"})
_PARTS = {"below": "transparent", "slower": "red", "faster": "green", "equal or undecided": "#8e8e8e"}
"""Parts of a stacked bar, in their order: what is left of the interval, and the interval in the colour of its word."""


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
        variables.variable("link", "Link", f"label_values({arms}, link)"),
    ):
        made = made.with_variable(chosen)
    made = made.with_panel(_unlike()).with_panel(_surroundings())
    for figure, metric in _FOREST:
        made = made.with_panel(_forest(figure, metric))
    for figure, metric in _FIGURES:
        made = made.with_panel(_table(figure, metric))
    row = board.Row("The figures of each run, side by side").collapsed(collapsed=True)
    for figure, metric in _FIGURES:
        row = row.with_panel(_side_by_side(figure, metric))
    return made.with_row(row)


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
        .override_by_name("run", house.looks_like("", custom_width=340))
        .span(WHOLE - house.QUARTER)
        .height(LOW + 2)
    )


def _when(expression: str, mark: str = "") -> str:
    """The expression with a label ``when``, short enough for a heading: the start of the run, as 261121-141732."""
    return f'label_replace({expression}, "when", "$1{mark}", "run", "..(......-......).*")'


def _matrix() -> list[model.DataTransformerConfig]:
    """One row per arm, one column per run, the oldest run first."""
    return [
        house.transformation("sortBy", fields={}, sort=[{"field": "when"}]),
        house.transformation("groupingToMatrix", columnField="when", rowField="legend", valueField="Value"),
    ]


@dataclass(frozen=True)
class _Ratio:
    """PromQL of a figure's ratio to the baseline, and of its margin: of the difference of both logarithms.

    Two figures differ surely if the logarithm of their ratio is beyond the root of both margins' squares. The margins
    are those of the metric of that name: of all arms and figures of a run together. `like`: matches the runs in the
    baseline's surroundings.
    """

    value: str
    noise: str
    like: str

    @classmethod
    def of(cls, figure: Figure, metric: Metric) -> _Ratio:
        """The ratio of a figure."""
        value = f"{_of(metric, _OTHERS)} / on ({_SAME}) group_left () max by ({_SAME}) ({_of(metric, _BASE)})"
        runs, base = (f'clientlab_run_info{{experiment="$experiment", {one}}}' for one in (_RUNS, _BASELINE))
        margin = f'clientlab_run_margin{{figure="{figure.key}", %s}}'
        squares = f"{margin % _OTHERS} ^ 2 + on ({_SAME}) group_left () max by ({_SAME}) ({margin % _BASE} ^ 2)"
        return cls(value, f"({squares}) ^ 0.5", f"on (run) ({runs} and on (surroundings) {base})")

    def parts(self) -> tuple[str, str, str]:
        """The ratios beyond the noise, those within it, and those of runs in other surroundings."""
        alike, same = f"(({self.value}) and {self.like})", f"on (run, {_SAME})"
        surely = f"(abs(ln({self.value})) > {same} ({self.noise}))"
        return f"{alike} and {same} {surely}", f"{alike} unless {same} {surely}", f"({self.value}) unless {self.like}"

    def ends(self, *, inverse: bool) -> tuple[str, str]:
        """Both ends of the interval; `inverse`: of the baseline over the run."""
        sign = "-" if inverse else ""
        log, same = f"({sign}ln({self.value}) and {self.like})", f"on (run, {_SAME})"
        low, high = (f"exp({log} {mark} {same} group_left () max by (run, {_SAME}) ({self.noise}))" for mark in "-+")
        return low, high


def _forest(figure: Figure, metric: Metric) -> Any:
    """The interval of each arm's ratio as a bar that begins at its lower end, beside the band in which arms are equal.

    Bars are stacked: a transparent one reaches to the interval.
    """
    low, high = _Ratio.of(figure, metric).ends(inverse=not figure.less_is_better)
    same = f"on (run, {_SAME})"
    width = f"({high} - {same} {low})"
    # Flags and no filters: each query has a value of each arm.
    wanted = (
        low,
        f"{width} * {same} ({low} > bool 1)",
        f"{width} * {same} ({high} < bool 1)",
        f"{width} * {same} ({low} <= bool 1) * {same} ({high} >= bool 1)",
    )
    queries = [
        query(f'max by (legend) (label_join({_when(one)}, "legend", " · ", "legend", "when"))', ref=ref, now=True)
        for one, ref in zip(wanted, "ABCD", strict=True)
    ]
    columns = [("legend", "arm"), *((f"Value #{ref}", part) for ref, part in zip("ABCD", _PARTS, strict=True))]
    what = "CPU time per request" if figure.key == "cpu" else "Time per request"
    panel = (
        barchart.Panel()
        .title(f"{what}: slower, equal or faster than the baseline?")
        .description(
            f"The interval of the ratio to the baseline, 1 for as much. Red: slower, or more. Green: faster, or less. "
            f"Grey: equal within {EQUAL_SHARE} if it lies within the band, else undecided. All arms and figures of "
            "a run together hold the truth in 95 of 100 runs. Runs in other surroundings are left out."
        )
        .datasource(house.SOURCE)
        .unit("none")
        .min(0)
        .span(WHOLE)
        .height(TALL + 3)
        .orientation(looks.VizOrientation.HORIZONTAL)
        .x_field("arm")
        .stacking(looks.StackingMode.NORMAL)
        .show_value(looks.VisibilityMode.NEVER)
        .group_width(0.6)
        .thresholds(
            house.thresholds((None, "transparent"), (1 / EQUAL, "rgba(142,142,142,0.35)"), (EQUAL, "transparent"))
        )
        .thresholds_style(common.GraphThresholdsStyleConfig().mode(looks.GraphThresholdsStyleMode.AREA))
        .legend(house.legend_below())
        .no_value("no other run has been measured in the baseline's surroundings")
        .transformations([house.joined("legend"), *house.columns(columns, "arm", descending=False)])
    )
    for one in queries:
        panel = panel.with_target(one)
    for part, colour in _PARTS.items():
        own: dict[str, Any] = {"color": {"mode": "fixed", "fixedColor": colour}}
        if part == "below":
            hidden = {"legend": True, "tooltip": True, "viz": False}
            own |= {"custom_fillOpacity": 0, "custom_lineWidth": 0, "custom_hideFrom": hidden}
        panel = panel.override_by_name(part, house.looks_like("", **own))
    return panel


def _table(figure: Figure, metric: Metric) -> tables.Panel:
    """The value of each run, and beside it the ratio to the baseline."""
    surely, noise, unlike = _Ratio.of(figure, metric).parts()
    every = _of(metric, f'run=~"$runs|$baseline", {_ARMS}')
    found = ((surely, _RATIO), (noise, _NOISE), (unlike, _UNLIKE))
    cells = " or ".join([_when(every), *(_when(ratio, mark) for ratio, mark in found)])
    steps = [(None, "red"), (1.0, "green")]
    if figure.less_is_better:
        steps = [(None, "green"), (1.0, "red")]
    colours = house.thresholds(*steps).build()
    grey = house.thresholds((None, "#8e8e8e")).build()
    ratios = house.ratio(thresholds=colours, custom_cellOptions=_COLOURED)
    return (
        grid(
            f"{figure.title}: what is the ratio to the baseline?",
            f"Medians over the rounds, and beside each the ratio to the baseline's. {_RATIO.strip()} (coloured): it "
            f"differs from 1 beyond the noise of all arms and figures. {_NOISE.strip()} (grey): the rounds cannot tell "
            f"it from 1. {_UNLIKE.strip()} (grey): measured in other surroundings, means little. 'clientlab compare' "
            "computes intervals.",
            query(f"max by (when, legend) ({cells})", now=True),
        )
        .transformations([*_matrix(), house.transformation("organize", renameByName={_ROWS: "strategy"})])
        .unit(house.UNITS[figure.unit])
        .override_by_name("strategy", house.looks_like("", custom_width=300))
        .override_by_regexp(f"/{_RATIO}/", ratios)
        .override_by_regexp(f"/{_NOISE}|{_UNLIKE}/", house.ratio(thresholds=grey, custom_cellOptions=_COLOURED))
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
        .transformations(_matrix())
        .with_target(query(f"max by (when, legend) ({_when(every)})", now=True))
    )
