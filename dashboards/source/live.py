"""Live: which strategy is ahead now, and what holds it back."""

from __future__ import annotations

from dashboards.source import house
from dashboards.source.house import HALF, TALL, Panel, bars, grid, number, query
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import heatmap, stat, timeseries
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heat
from grafana_foundation_sdk.models import prometheus as prom

UID = "clientlab-live"

CHOSEN = 'experiment=~"$experiment", run="$run", strategy=~"$strategy", upstream=~"$upstream", route=~"$route"'
_OVER = "[10s]"  # ten scrapes
_MARKED = 100
"""The panel with the trials' begins and ends: on all of them, short trials' marks would hide the lines."""


def dashboard() -> board.Dashboard:
    """The home dashboard."""
    made = house.dashboard(
        UID, "clientlab: live", "Which strategy is ahead now, and what holds it back?", "2s", "now-5m"
    )
    for chosen in _variables():
        made = made.with_variable(chosen)
    made = made.annotation(_Trials("started", "begins")).annotation(_Trials("ended", "ends"))
    for panel in (*_now(), _standings(), *_speed(), *_latency(), *_connections(), *_costs()):
        made = made.with_panel(panel)
    return made


def _variables() -> list[board.QueryVariable]:
    seen = "clientlab_requests_total"
    ways = f'{seen}{{run="$run"}}'
    return [
        house.variable("experiment", "Experiment", f"label_values({seen}, experiment)"),
        house.variable(
            "run", "Run", f'label_values({seen}{{experiment=~"$experiment"}}, run)', many=False, newest=True
        ),
        house.variable("strategy", "Strategy", f"label_values({ways}, strategy)"),
        house.variable("upstream", "Upstream", f"label_values({ways}, upstream)"),
        house.variable("route", "Route", f"label_values({ways}, route)"),
    ]


class _Moment(model.AnnotationQuery):
    """With what Prometheus' data source takes beyond the SDK's model: the values are the times, in milliseconds."""

    says = ""

    def to_json(self) -> dict[str, object]:
        more = {"useValueForTime": True, "titleFormat": house.BY_ARM, "textFormat": self.says, "step": "1s"}
        return {**super().to_json(), **more}


class _Trials(Builder[model.AnnotationQuery]):
    """A mark at each trial's start or end, named by its arm."""

    def __init__(self, moment: str, says: str) -> None:
        expression = f"clientlab_trial_{moment}_timestamp_seconds{{{CHOSEN}}} * 1000 > 0"
        self._made = _Moment(f"Trial {says}", house.SOURCE, expr=expression)
        self._made.icon_color = "rgba(128, 128, 128, 0.35)"
        self._made.filter_val = model.AnnotationPanelFilter(ids=[_MARKED])
        self._made.says = says

    def build(self) -> model.AnnotationQuery:
        return self._made


def _standings() -> tables.Panel:
    figures = {
        "A": ("requests_per_second", "", "requests/s", "reqps"),
        "B": ("latency_seconds", ', quantile="0.5"', "p50", "s"),
        "C": ("latency_seconds", ', quantile="0.99"', "p99", "s"),
        "D": ("overhead_seconds", "", "overhead", "s"),
        "E": ("cpu_seconds_per_request", "", "CPU a request", "s"),
        "F": ("peak_memory_bytes", "", "memory", "bytes"),
        "G": ("connections_opened", "", "connections", "short"),
        "H": ("errors", "", "errors", "short"),
    }
    queries = [
        query(_so_far(metric, "legend", more), ref=ref, now=True) for ref, (metric, more, _, _) in figures.items()
    ]
    queries.append(query(_so_far("verdict", "legend, verdict"), ref="I", now=True))
    shown = [("legend", "strategy"), *((f"Value #{ref}", heading) for ref, (_, _, heading, _) in figures.items())]
    panel = grid(
        "Who is ahead in this run so far?",
        "Medians of the trials that have ended, from the run file. Held back by: the part that was busiest "
        "(client, proxy or upstream by CPU time, or latency: the delay asked for).",
        *queries,
    ).transformations(
        [
            house.joined("legend"),
            *house.columns([*shown, ("verdict", "held back by")], "requests/s", descending=True),
        ]
    )
    for _, _, heading, unit in figures.values():
        panel = panel.override_by_name(heading, house.looks_like(unit))
    return panel.override_by_name("strategy", house.looks_like("", custom_width=300)).height(TALL + 5)


def _so_far(metric: str, by: str, more: str = "") -> str:
    """A figure of the run, whether it is in progress or long over."""
    return " or ".join(f"max by ({by}) (clientlab_{stem}_{metric}{{{CHOSEN}{more}}})" for stem in ("run", "present"))


def _now() -> list[stat.Panel]:
    none = 'label_replace(vector(0), "legend", "between trials, or the run has ended", "", "")'
    running = f"(max by (legend) (clientlab_trial_running{{{CHOSEN}}}) > 0) or on () {none}"
    schedule = 'sum by (state) (clientlab_schedule_trials{run="$run"})'
    return [
        number(
            "What is measured now?", "The trial that has its turn; all others wait.", "none", query(running).instant()
        )
        .text_mode(looks.BigValueTextMode.NAME)
        .span(HALF),
        number(
            "How far is the run?", "Trials that have ended, failed and are still to come.", "short",
            query(schedule, "{{state}}"),
        ).span(HALF),
    ]  # fmt: skip


def lines(title: str, description: str, unit: str, expression: str) -> timeseries.Panel:
    """A line an arm, in its strategy's colour; dashed where it goes over the proxy."""
    return house.coloured(house.lines(title, description, unit, query(expression)), dashes=True)


def _speed() -> list[Panel]:
    ok = f'sum by (legend) (rate(clientlab_requests_total{{{CHOSEN}, outcome="ok"}}{_OVER}))'
    measured = f"sum by (legend) (rate(clientlab_measured_seconds_total{{{CHOSEN}}}{_OVER}))"
    failed = _latest("clientlab_requests_total", by="legend, outcome", more=', outcome!="ok"') + " > 0"
    return [
        lines(
            "How many requests a second?",
            "Successful requests for each second that was measured: pauses between trials do not count.",
            "reqps",
            f"{ok} / ({measured} > 0)",
        ),
        _heat(),
        grid(
            "What went wrong?",
            "Failed requests of each strategy's latest trial, by kind. None is what you want.",
            query(failed, now=True),
        )
        .transformations(
            house.columns(
                [("legend", "strategy"), ("outcome", "kind of error"), ("Value", "requests")],
                "requests",
                descending=True,
            )
        )
        .unit("short")
        .no_value("no request failed")
        .span(HALF),
        lines(
            "How many requests are in flight?",
            "Their mean over the last scrapes, by Little's law: the log has a request when it has ended. Grey lines: a "
            "trial begins or ends.",
            "short",
            f"sum by (legend) (clientlab_requests_in_flight{{{CHOSEN}}})",
        ).id(_MARKED),
    ]


def _heat() -> heatmap.Panel:
    buckets = f"sum by (le) (rate(clientlab_request_seconds_bucket{{{CHOSEN}}}{_OVER}))"
    colours = heatmap.HeatmapColorOptions().mode(heat.HeatmapColorMode.SCHEME).scheme("Oranges").steps(64).exponent(0.5)
    return (
        heatmap.Panel()
        .title("Where do the latencies lie?")
        .description("Requests by their latency; a darker cell has more. All chosen strategies together.")
        .datasource(house.SOURCE)
        .span(HALF)
        .height(TALL)
        .interval("1s")
        .calculate(calculate=False)
        .color(colours)
        .y_axis(heatmap.YAxisConfig().unit("s"))
        .with_target(query(buckets, "{{le}}").format(prom.PromQueryFormat.HEATMAP))
    )


def _latency() -> list[Panel]:
    return [
        lines(
            title,
            "By histogram_quantile over the last ten seconds; exact ones are in the run file.",
            "s",
            f"clientlab:request_seconds:{name}{{{CHOSEN}}}",
        )
        for title, name in (
            ("How long takes the median request (p50)?", "p50"),
            ("And one in twenty (p95)?", "p95"),
            ("And one in a hundred (p99)?", "p99"),
        )
    ]


def _latest(counter: str, by: str = "legend", more: str = "") -> str:
    """A counter at the end of each arm's latest trial: they begin at zero with each, in whichever worker it is."""
    began = f"last_over_time(clientlab_trial_started_timestamp_seconds{{{CHOSEN}}}[$__range])"
    of_trials = f"last_over_time({counter}{{{CHOSEN}{more}}}[$__range])"
    return f"sum by ({by}) ({of_trials} and on (legend, instance) topk by (legend) (1, {began}))"


def _connections() -> list[Panel]:
    opened = f"sum by (legend) (rate(clientlab_connections_opened_total{{{CHOSEN}}}{_OVER}))"
    all_opened, all_sent = _latest("clientlab_connections_opened_total"), _latest("clientlab_requests_total")
    return [
        lines("How many connections are opened a second?", "By the client; each costs a handshake.", "cps", opened),
        bars(
            "How often is a connection used again?",
            "1 less connections opened over requests: 100 % is one connection for all, 0 % one for each.",
            "percentunit",
            f"clamp_min(1 - {all_opened} / ({all_sent} > 0), 0)",
        ).max(1),
    ]


def _costs() -> list[Panel]:
    cpu, sent = _latest("clientlab_cpu_seconds_total"), _latest("clientlab_requests_total")
    return [
        bars(
            "What does a request cost in CPU time?",
            "CPU seconds of the client and all its children, for each request.",
            "s",
            f"{cpu} / ({sent} > 0)",
        ),
        bars(
            "How much memory did it take?",
            "Peak of the trial's processes over the time shown.",
            "bytes",
            f"max by (legend) (max_over_time(clientlab_memory_bytes{{{CHOSEN}}}[$__range]))",
        ),
    ]
