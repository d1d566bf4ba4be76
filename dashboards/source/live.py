"""Live: which strategy is ahead now, and what is its bottleneck."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.source import house, open_load, streams, variables
from dashboards.source.bars import bars, with_interval
from dashboards.source.house import HALF, LOW, TALL, THIRD, WHOLE, Panel, grid, number, query
from grafana_foundation_sdk.builders import bargauge, common, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as prom

from clientlab.results.figures import EXPORTED

UID = "clientlab-live"

CHOSEN = ", ".join(
    ('run="$run"', *(f'{name}=~"${name}"' for name in ("experiment", "strategy", "upstream", "route", "link")))
)
_OVER = "[10s]"  # ten scrapes
_RACE = 15
"""Height of the race: with what is above it, it fills a screen of 900 pixels."""

_MARKED = 100
"""The one panel that marks when trials begin: the marks of short trials would hide the lines of others."""


def dashboard() -> board.Dashboard:
    """The home dashboard."""
    made = house.dashboard(
        UID, "clientlab: live", "Which strategy is ahead now, and what is its bottleneck?", "2s", "now-2m"
    )
    for chosen in _variables():
        made = made.with_variable(chosen)
    made = made.link(variables.link_to_run(UID))
    made = made.annotation(_TrialBegins())
    of_arms = (*_costs(), _failures(), _latencies(), *_over_time(), *open_load.panels(CHOSEN), *streams.panels(CHOSEN))
    for panel in (*_now(), _race(), _standings(), *of_arms):
        made = made.with_panel(panel)
    return made


def _variables() -> list[board.QueryVariable]:
    seen = "clientlab_requests_total"
    arms = f'{seen}{{run="$run"}}'
    return [
        variables.variable("experiment", "Experiment", f"label_values({seen}, experiment)"),
        variables.variable(
            "run", "Run", f'label_values({seen}{{experiment=~"$experiment"}}, run)', multi=False, newest=True
        ),
        variables.variable("strategy", "Strategy", f"label_values({arms}, strategy)"),
        variables.variable("upstream", "Upstream", f"label_values({arms}, upstream)"),
        variables.variable("route", "Route", f"label_values({arms}, route)"),
        variables.variable("link", "Link", f"label_values({arms}, link)"),
        *variables.span_of_run('{__name__=~"clientlab_(run|present)_created_timestamp_seconds", run="$run"}'),
        variables.variable("arm", "Latencies and gaps of", f"label_values({seen}{{{CHOSEN}}}, legend)", multi=False),
    ]


class _Event(model.AnnotationQuery):
    """An annotation with options of the Prometheus data source that the SDK lacks. Values are times in milliseconds."""

    text = ""

    def to_json(self) -> dict[str, object]:
        more = {"useValueForTime": True, "titleFormat": house.BY_ARM, "textFormat": self.text, "step": "1s"}
        return {**super().to_json(), **more}


class _TrialBegins(Builder[model.AnnotationQuery]):
    """A mark at the start of each trial, named by its arm."""

    def __init__(self) -> None:
        expression = f"max by (legend) (clientlab_trial_started_timestamp_seconds{{{CHOSEN}}}) * 1000 > 0"
        self._made = _Event("Trial begins", house.SOURCE, expr=expression)
        self._made.hide = True  # its switch above the panels, not the mark
        self._made.icon_color = "rgba(128, 128, 128, 0.2)"
        self._made.filter_val = model.AnnotationPanelFilter(ids=[_MARKED])
        self._made.text = "begins"

    def build(self) -> model.AnnotationQuery:
        return self._made


def _standings() -> tables.Panel:
    figures = {f"F{number}": figure for number, figure in enumerate(_figures())}
    queries = [
        query(_so_far(metric, "legend", more), ref=ref, now=True) for ref, (metric, more, _, _) in figures.items()
    ]
    queries.append(query(_so_far("verdict", "legend, verdict"), ref="bottleneck", now=True))
    queries.append(query(_so_far("rank", "legend"), ref="rank", now=True))
    shown = [
        ("Value #rank", "rank"),
        ("legend", "strategy"),
        *((f"Value #{ref}", heading) for ref, (_, _, heading, _) in figures.items()),
    ]
    panel = grid(
        "What are the figures so far?",
        "Medians of the trials that have ended, from the run file. The rank is that of the run's own figure: its time, "
        "in an open load the p99 from the planned start, and of streams the CPU time per event or the lag. A "
        "percentile that falls on failed requests is empty: it is only known to be at least as long as they took. "
        "Bottleneck: what limited the trial.",
        *queries,
    ).transformations(
        [
            house.joined("legend"),
            *house.columns([*shown, ("verdict", "bottleneck")], "rank", descending=False),
        ]
    )
    for _, _, heading, unit in figures.values():
        panel = panel.override_by_name(heading, house.looks_like(unit))
    panel = panel.override_by_name("rank", house.looks_like("none", custom_width=60))
    return panel.override_by_name("strategy", house.looks_like("", custom_width=340)).height(TALL + 5)


def _figures() -> Iterator[tuple[str, str, str, str]]:
    """Metric, labels, heading and unit of the columns that a run's table always has, or has if they are known."""
    for figure, metric in EXPORTED:
        if figure.column is not None and figure.column.when in {"always", "known"}:
            more = f', quantile="{metric.quantile}"' if metric.quantile else ""
            yield metric.name, more, figure.column.heading, house.UNITS[figure.unit]
    yield "errors", "", "errors", "short"


def _so_far(metric: str, by: str, more: str = "") -> str:
    """A figure of the run, in progress or finished."""
    return f'max by ({by}) ({{__name__=~"clientlab_(run|present)_{metric}", {CHOSEN}{more}}})'


def _now() -> list[stat.Panel]:
    none = 'label_replace(vector(0), "legend", "no trial", "", "")'
    # Of the last seconds: a trial may be shorter than the time between two scrapes.
    begun = f"max by (legend) (last_over_time(clientlab_trial_started_timestamp_seconds{{{CHOSEN}}}[5s]))"
    latest = f"topk(1, {begun}) or on () {none}"
    schedule = 'sum by (state) (clientlab_schedule_trials{run="$run"})'
    made = [
        number(
            "What is measured now?", "The arm of the latest trial; all others wait.", "none", query(latest).instant()
        )
        .text_mode(looks.BigValueTextMode.NAME),
        number(
            "How far is the run?", "Trials that are done, failed, or planned.", "short",
            query(schedule, "{{state}}"),
        ),
    ]  # fmt: skip
    return [panel.span(HALF).height(LOW - 1) for panel in made]


def _race() -> bargauge.Panel:
    """The first picture: large enough to be read from across a room."""

    def metric(name: str) -> str:
        return f'max by (legend) ({{__name__=~"clientlab_(run|present)_{name}", {CHOSEN}}})'

    sent = _latest("clientlab_requests_total", more=', outcome="ok"')
    now = f"{sent} / ({_latest('clientlab_measured_seconds_total')} > 0)"
    first = f"{now} unless on (legend) {metric('requests_per_second')}"
    text = f'label_replace({first}, "text", "first trial", "", "")'
    return (
        bars(
            "Who is ahead? Successful requests per second, longer is better",
            "The median over the rounds so far. Beside each name: requests in flight (c), the 95 % confidence interval "
            "of the median, and rounds (n). An interval needs three rounds. First trial: its rate so far. In an open "
            "load, the schedule decides the rate, and of streams the server: see the panels for them below.",
            "reqps",
            f'{with_interval(metric)} or label_join({text}, "legend", ": ", "legend", "text")',
        )
        .max_viz_height(42)  # thicker bars have names that do not fit beside them
        .span(WHOLE)
        .height(_RACE)
    )


def lines(title: str, description: str, unit: str, expression: str) -> timeseries.Panel:
    """One line per arm, in its strategy's colour; dashed if the route goes through the proxy."""
    panel = house.lines(title, description, unit, query(expression)).legend(house.no_legend()).span(THIRD)
    return house.coloured(panel, dashes=True)


def _failures() -> tables.Panel:
    failed = _latest("clientlab_requests_total", by="legend, outcome", more=', outcome!="ok"') + " > 0"
    return (
        grid(
            "What went wrong?",
            "Failed requests in the latest trial of each strategy, by kind.",
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
        .span(HALF)
        .height(TALL + 4)
    )


def _latencies() -> bargauge.Panel:
    """A histogram of one arm: latencies of several strategies in one picture would belong to none of them."""
    buckets = _latest("clientlab_request_seconds_bucket", by="le", more=', legend="$arm"')
    return (
        bargauge.Panel()
        .title("Where do the latencies of $arm lie?")
        .description("Requests of its latest trial, by the upper end of a bucket in seconds. +Inf has the failed ones.")
        .datasource(house.SOURCE)
        .unit("short")
        .min(0)
        .span(WHOLE)
        .height(TALL)
        .orientation(looks.VizOrientation.VERTICAL)
        .display_mode(looks.BarGaugeDisplayMode.BASIC)
        .value_mode(looks.BarGaugeValueMode.TEXT)
        .show_unfilled(show_unfilled=False)
        .color_scheme(board.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color("#8C8C8C"))
        .text(common.VizTextDisplayOptions().title_size(11).value_size(11))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
        .with_target(query(buckets, "{{le}}").format(prom.PromQueryFormat.HEATMAP))
    )


def _over_time() -> list[Panel]:
    """What changes within a trial. Trials are short, so each panel spans the dashboard's last two minutes."""
    ok = f'sum by (legend) (rate(clientlab_requests_total{{{CHOSEN}, outcome="ok"}}{_OVER}))'
    measured = f"sum by (legend) (rate(clientlab_measured_seconds_total{{{CHOSEN}}}{_OVER}))"
    opened = f"sum by (legend) (rate(clientlab_connections_opened_total{{{CHOSEN}}}{_OVER}))"
    return [
        lines(
            "How many requests a second?",
            "Successful requests per measured second. Pauses between trials do not count.",
            "reqps",
            f"{ok} / ({measured} > 0)",
        ),
        lines(
            "How many requests are in flight?",
            "The mean over the last scrapes, by Little's law from requests that have ended. Grey lines: a trial "
            "begins.",
            "short",
            f"sum by (legend) (clientlab_requests_in_flight{{{CHOSEN}}})",
        ).id(_MARKED),
        lines(
            "How many connections are opened a second?",
            "Opened by the client. Each connection costs a handshake.",
            "cps",
            opened,
        ),
        *(
            lines(
                f"How long is the {figure.label} ({figure.key})?",
                "By histogram_quantile over the last ten seconds; the run file has exact quantiles. A failed request "
                "ranks after every successful one: no line where so many failed that the quantile is one of them.",
                "s",
                f"clientlab:request_seconds:{figure.key}{{{CHOSEN}}}",
            )
            for figure, metric in EXPORTED
            if metric.quantile and metric.name == "latency_seconds"
        ),
    ]


def _latest(counter: str, by: str = "legend", more: str = "", over: str = "last_over_time") -> str:
    """A counter at the end of each arm's latest trial. It begins at zero with each trial, in any worker.

    The workers that have a shard of the trial began at the same moment, and are added up.
    """
    began = f"last_over_time(clientlab_trial_started_timestamp_seconds{{{CHOSEN}}}[$__range])"
    latest = f"({began} == on (legend) group_left () max by (legend) ({began}))"
    of_trials = f"{over}({counter}{{{CHOSEN}{more}}}[$__range])"
    return f"sum by ({by}) ({of_trials} and on (legend, instance) {latest})"


def _costs() -> list[Panel]:
    opened, sent = _latest("clientlab_connections_opened_total"), _latest("clientlab_requests_total")
    cpu, answered = _latest("clientlab_cpu_seconds_total"), _latest("clientlab_requests_total", more=', outcome="ok"')
    made = [
        bars(
            "How often is a connection used again?",
            "1 minus connections opened divided by requests: 100 % is one connection for all, 0 % one for each.",
            "percentunit",
            f"clamp_min(1 - {opened} / ({sent} > 0), 0)",
        ).max(1),
        bars(
            "What does a request cost in CPU time?",
            "CPU time of the client and all its child processes per successful request.",
            "s",
            f"{cpu} / ({answered} > 0)",
        ),
        bars(
            "How much memory did it take?",
            "Peak memory of the processes of its latest trial, all shards together.",
            "bytes",
            _latest("clientlab_memory_bytes", over="max_over_time"),
        ),
    ]
    return [panel.span(HALF).height(TALL + 4) for panel in made]
