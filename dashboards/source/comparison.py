"""The comparison dashboard: is this run better than another? It reads the lab's metrics of runs that have ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dashboards.source import panels
from dashboards.source.panels import GREY, TALL, WHOLE, Panel, looks_like, query, thresholds, variable
from grafana_foundation_sdk.builders import barchart, common
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model

from clientlab.results.figures import EXPORTED, Figure, Metric
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE

_ARMS = 'experiment="$experiment", strategy=~"$strategy", upstream=~"$upstream", route=~"$route", link=~"$link"'
_ALL = f'run=~"$runs|$baseline", {_ARMS}'
_BASE = f'run="$baseline", {_ARMS}'
_OTHERS = f'run=~"$runs", run!="$baseline", {_ARMS}'
_BASE_INFO = 'clientlab_run_info{experiment="$experiment", run="$baseline"}'
_OTHER_INFO = 'clientlab_run_info{experiment="$experiment", run=~"$runs"}'
_ALIKE = f"on (run) ({_OTHER_INFO} and on (surroundings) {_BASE_INFO})"
"""Matches the runs in the baseline's surroundings."""
_SAME = "arm, legend, strategy, workload, upstream, route, link"
_RATIO, _NOISE, _UNLIKE = " ×", " ×≈", " ×≠"


def make_dashboard() -> board.Dashboard:
    """Return the dashboard. The reader selects a baseline and other runs of the same experiment."""
    made = panels.start_dashboard(
        "clientlab-comparison", "clientlab: comparison", "Is this run better than another?", "30s", "now-1h"
    )
    for choice in _choices():
        made = made.with_variable(choice)
    # Wall time is left out: with a fixed duration it says nothing, and otherwise requests per second say the same.
    figures = [(figure, metric) for figure, metric in EXPORTED if figure.compared and figure.key != "wall"]
    intervals = [_intervals(*one) for one in figures if one[0].key in {"throughput", "cpu"}]
    for panel in (_surroundings(), *intervals, *(_table(*one) for one in figures), _claims()):
        made = made.with_panel(panel)
    return made


def _choices() -> Iterator[board.QueryVariable]:
    yield variable("experiment", "Experiment", "label_values(clientlab_run_info, experiment)", multi=False)
    # The latest run first, but the newest last: by default, it is compared with the one before it.
    begun = 'clientlab_run_created_timestamp_seconds and on (run) clientlab_run_info{experiment="$experiment"}'
    order = f"({begun} unless topk(1, {begun})) or 0 * topk(1, {begun})"
    baseline = variable("baseline", "Baseline", f"query_result(sort_desc({order}))", multi=False)
    yield baseline.regex('/run="([^"]+)"/').sort(model.VariableSort.DISABLED)
    runs = 'label_values(clientlab_run_info{experiment="$experiment"}, run)'
    yield variable("runs", "Runs", runs, newest=True)
    arms = 'clientlab_run_requests_per_second{experiment="$experiment"}'
    for name in ("strategy", "upstream", "route", "link"):
        yield variable(name, name.capitalize(), f"label_values({arms}, {name})")


def _when(expression: str, mark: str = "") -> str:
    """Return the expression with a label ``when``: the start of the run, as short as 261121-141732, or its own name."""
    named = f'label_replace({expression}, "when", "$1{mark}", "run", "(.+)")'
    return f'label_replace({named}, "when", "$1{mark}", "run", "..([0-9]{{6}}-[0-9]{{6}}).*")'


def _surroundings() -> tables.Panel:
    shown = [("run", "run"), ("machine", "machine"), ("python", "Python"), ("surroundings", "surroundings")]
    every = 'clientlab_run_info{experiment="$experiment", run=~"$runs|$baseline"}'
    description = "Compare runs with the same surroundings."
    return (
        panels.grid("Where were they measured?", description, query(every, now=True))
        .transformations(panels.columns(shown, "run", descending=True))
        .override_by_name("run", looks_like(custom_width=340))
        .height(panels.LOW + 2)
    )


def _ratio(figure: Figure, metric: Metric) -> tuple[str, str]:
    """Return PromQL of a figure's ratio to the baseline, and of its margin.

    A figure's margin is half the interval of its logarithm. The margin of a ratio is the root of the sum of both
    squares: two figures differ if the logarithm of their ratio exceeds it.
    """
    per_base = f"on ({_SAME}) group_left () max by ({_SAME})"
    margin = f'clientlab_run_margin{{figure="{figure.key}", %s}}'
    ratio = f"{_select(metric, _OTHERS)} / {per_base} ({_select(metric, _BASE)})"
    return ratio, f"({margin % _OTHERS} ^ 2 + {per_base} ({margin % _BASE} ^ 2)) ^ 0.5"


def _select(metric: Metric, labels: str) -> str:
    quantile = f'quantile="{metric.quantile}", ' if metric.quantile else ""
    return f"clientlab_run_{metric.name}{{{quantile}{labels}}}"


def _intervals(figure: Figure, metric: Metric) -> Panel:
    """Return each arm's interval of the ratio as a bar, over the band of equality.

    Bars are stacked: a transparent one reaches to the interval, which has the colour of its verdict.
    """
    value, margin = _ratio(figure, metric)
    same, sign = f"on (run, {_SAME})", "" if figure.less_is_better else "-"
    log, width = f"({sign}ln({value}) and {_ALIKE})", f"{same} group_left () max by (run, {_SAME}) ({margin})"
    low, high = f"exp({log} - {width})", f"exp({log} + {width})"
    width = f"({high} - {same} {low})"
    # Flags instead of filters, so that each query has a value for each arm.
    parts = {
        "below": ("transparent", low),
        "slower": ("red", f"{width} * {same} ({low} > bool 1)"),
        "faster": ("green", f"{width} * {same} ({high} < bool 1)"),
        "equal or undecided": (GREY, f"{width} * {same} ({low} <= bool 1) * {same} ({high} >= bool 1)"),
    }
    shown = [("legend", "arm"), *((f"Value #{ref}", part) for ref, part in zip("ABCD", parts, strict=True))]
    legend = 'max by (legend) (label_join(%s, "legend", " · ", "legend", "when"))'
    what = "CPU time per request" if figure.key == "cpu" else "Time per request"
    panel = panels.styled(
        barchart.Panel(),
        f"{what}: slower, equal or faster than the baseline?",
        "The interval of the ratio to the baseline; 1 means equal. Red: slower, or more. Green: faster, or less. "
        f"Grey: equal within {EQUAL_SHARE} if it lies within the band, otherwise undecided. In 95 of 100 runs, all "
        "intervals together hold the truth. Runs in other surroundings are left out.",
        *(query(legend % _when(one), ref=ref, now=True) for ref, (_, one) in zip("ABCD", parts.values(), strict=True)),
        unit="none",
        span=WHOLE,
    )
    panel = (
        panel.min(0)
        .height(TALL + 3)
        .orientation(looks.VizOrientation.HORIZONTAL)
        .x_field("arm")
        .stacking(looks.StackingMode.NORMAL)
        .show_value(looks.VisibilityMode.NEVER)
        .group_width(0.6)
        .thresholds(thresholds((None, "transparent"), (1 / EQUAL, "rgba(142,142,142,0.35)"), (EQUAL, "transparent")))
        .thresholds_style(common.GraphThresholdsStyleConfig().mode(looks.GraphThresholdsStyleMode.AREA))
        .legend(panels.legend_below())
        .no_value("no other run has been measured in the baseline's surroundings")
        .transformations(panels.columns(shown, "arm", joined_by="legend"))
    )
    for part, (colour, _) in parts.items():
        own: dict[str, Any] = {"color": {"mode": "fixed", "fixedColor": colour}}
        if part == "below":
            own |= {"custom_fillOpacity": 0, "custom_lineWidth": 0}
            own |= {"custom_hideFrom": {"legend": True, "tooltip": True, "viz": False}}
        panel = panel.override_by_name(part, looks_like(**own))
    return panel


def _table(figure: Figure, metric: Metric) -> tables.Panel:
    """Return the value of each run, and beside it the ratio to the baseline."""
    value, margin = _ratio(figure, metric)
    alike, same = f"(({value}) and {_ALIKE})", f"on (run, {_SAME})"
    surely = f"{same} (abs(ln({value})) > {same} ({margin}))"
    values, ratios = _when(_select(metric, _ALL)), _when(f"{alike} and {surely}", _RATIO)
    unsure_ratios = _when(f"{alike} unless {surely}", _NOISE)
    unlike_ratios = _when(f"({value}) unless {_ALIKE}", _UNLIKE)
    cells = f"{values} or {ratios} or {unsure_ratios} or {unlike_ratios}"
    below, above = ("green", "red") if figure.less_is_better else ("red", "green")
    coloured = {"custom_cellOptions": {"type": "color-text"}}
    sure = looks_like("none", thresholds=thresholds((None, below), (1.0, above)).build(), **coloured)
    unsure = looks_like("none", thresholds=thresholds((None, GREY)).build(), **coloured)
    return (
        panels.grid(
            f"{figure.title}: what is the ratio to the baseline?",
            f"Medians over the rounds, and beside each the ratio to the baseline's. {_RATIO.strip()} (coloured): it "
            f"differs from 1 beyond the noise of all arms and figures. {_NOISE.strip()} (grey): the rounds cannot tell "
            f"it from 1. {_UNLIKE.strip()} (grey): measured in other surroundings, so it means little. 'clientlab "
            "compare' computes intervals.",
            query(f"max by (when, legend) ({cells})", now=True),
        )
        .transformations(
            [
                panels.transformation("sortBy", fields={}, sort=[{"field": "when"}]),
                panels.transformation("groupingToMatrix", columnField="when", rowField="legend", valueField="Value"),
                panels.transformation("organize", renameByName={"legend\\when": "strategy"}),
            ]
        )
        .unit(panels.UNITS[figure.unit])
        .override_by_name("strategy", looks_like(custom_width=300))
        .override_by_regexp(f"/{_RATIO}/", sure)
        .override_by_regexp(f"/{_NOISE}|{_UNLIKE}/", unsure)
        .min_width(120)
    )


def _claims() -> tables.Panel:
    sentence = 'on (run, claim) group_left (sentence) clientlab_run_claim_info{run=~"$runs|$baseline"}'
    claim = f'clientlab_run_claim{{experiment="$experiment", run=~"$runs|$baseline"}} * {sentence}'
    shown = [("when", "run"), ("verdict", "verdict"), ("sentence", "claim"), ("Value", "ratio")]
    return (
        panels.grid(
            "Do the article's claims hold here?",
            "Ratio: the second arm's figure divided by the first's. Inconclusive: its interval allows both answers.",
            query(f"max by (when, claim, verdict, sentence) ({_when(claim)})", now=True),
        )
        .transformations(panels.columns(shown, "verdict"))
        .override_by_name("run", looks_like(custom_width=130))
        .override_by_name("verdict", looks_like(custom_width=130))
        .override_by_name("claim", looks_like(custom_cellOptions={"type": "auto", "wrapText": True}))
        .override_by_name("ratio", looks_like("none", custom_width=75))
        .no_value("this experiment makes no claims")
    )
