"""The live dashboard: which strategy is ahead now, what is its bottleneck, and what the servers do meanwhile."""

from __future__ import annotations

import string
from collections.abc import Iterator

from dashboards.source import panels, servers
from dashboards.source.panels import HALF, TALL, WHOLE, Panel, bars, lines, query, variable
from grafana_foundation_sdk.builders import bargauge
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks

from clientlab.results.figures import EXPORTED

ARMS = ", ".join(
    ('run="$run"', *(f'{name}=~"${name}"' for name in ("experiment", "strategy", "upstream", "route", "link")))
)
"""Labels of the selected arms."""


def dashboard() -> board.Dashboard:
    """Return the home dashboard."""
    made = panels.dashboard(
        "clientlab-live", "clientlab: live", "Which strategy is ahead now, and what is its bottleneck?", "2s", "now-2m"
    )
    for choice in _choices():
        made = made.with_variable(choice)
    for panel in (*_now(), _race(), _standings(), *_costs(), _failures(), *_over_time()):
        made = made.with_panel(panel)
    row = board.Row("Open load: requests that arrive at a planned rate").collapsed(collapsed=True)
    for panel in _open_load():
        row = row.with_panel(panel)
    made = made.with_row(row).with_row(board.Row("Upstreams and proxy: is the server the bottleneck?"))
    for panel in servers.panels():
        made = made.with_panel(panel)
    return made


def _choices() -> Iterator[board.QueryVariable]:
    """Yield the choices. The runs are those that workers measure, and those whose files are stored."""
    seen = '__name__=~"clientlab_requests_total|clientlab_(run|present)_rounds"'
    yield variable("experiment", "Experiment", f"label_values({{{seen}}}, experiment)")
    runs = f'label_values({{{seen}, experiment=~"$experiment"}}, run)'
    yield variable("run", "Run", runs, multi=False, newest=True)
    for name in ("strategy", "upstream", "route", "link"):
        yield variable(name, name.capitalize(), f'label_values({{{seen}, run="$run"}}, {name})')


def _so_far(metric: str, more: str = "", by: str = "legend") -> str:
    """Return a figure of the run file, whether the run is in progress or finished."""
    return f'max by ({by}) ({{__name__=~"clientlab_(run|present)_{metric}", {ARMS}{more}}})'


def _latest(counter: str, by: str = "legend", more: str = "", over: str = "last_over_time") -> str:
    """Return a counter at the end of each arm's latest trial. It starts at zero with each trial, in any worker.

    The shards of a trial have the same start, and are added.
    """
    began = f"last_over_time(clientlab_trial_started_timestamp_seconds{{{ARMS}}}[$__range])"
    latest = f"({began} == on (legend) group_left () max by (legend) ({began}))"
    return f"sum by ({by}) ({over}({counter}{{{ARMS}{more}}}[$__range]) and on (legend, instance) {latest})"


def _rate(counter: str, more: str = "") -> str:
    return f"sum by (legend) (rate({counter}{{{ARMS}{more}}}[10s]))"


def _per_measured_second(counter: str, more: str = "") -> str:
    """Return a rate over the measured time: pauses between trials do not count."""
    return f"{_rate(counter, more)} / ({_rate('clientlab_measured_seconds_total')} > 0)"


def _now() -> Iterator[Panel]:
    none = 'label_replace(vector(0), "legend", "no trial", "", "")'
    # Over the last seconds, because a trial may be shorter than the time between two scrapes.
    begun = f"max by (legend) (last_over_time(clientlab_trial_started_timestamp_seconds{{{ARMS}}}[5s]))"
    latest = query(f"topk(1, {begun}) or on () {none}").instant()
    arm = panels.number("What is measured now?", "The arm of the latest trial.", latest)
    yield arm.text_mode(looks.BigValueTextMode.NAME)
    schedule = query('sum by (state) (clientlab_schedule_trials{run="$run"})', "{{state}}").instant()
    yield panels.number("How far is the run?", "Trials that are done, failed, or left.", schedule)


def _race() -> bargauge.Panel:
    """Return the first picture, which can be read from across a room and fills a screen of 900 pixels."""
    return (
        bars(
            "Who is ahead? Successful requests per second, longer is better",
            "The median over the rounds so far. Beside each name: requests in flight (c), the 95 % confidence interval "
            "of the median, and rounds (n). An interval needs three rounds.",
            "reqps",
            panels.with_interval(_so_far),
        )
        .max_viz_height(42)  # the names do not fit beside thicker bars
        .span(WHOLE)
        .height(15)
    )


def _standings() -> tables.Panel:
    panel = panels.grid(
        "What are the figures so far?",
        "Medians of the trials that have ended, from the run file. The rank is that of the run's own figure: its time, "
        "or in an open load the p99 from the planned start. A percentile that falls on failed requests is empty: it is "
        "only known to be at least as long as they took. Bottleneck: what limited the trial.",
        query(_so_far("rank"), ref="Y", now=True),
        query(_so_far("verdict", by="legend, verdict"), ref="Z", now=True),
    )
    shown = [("Value #Y", "rank"), ("legend", "strategy")]
    for ref, (name, more, heading, unit) in zip(string.ascii_uppercase, _figures(), strict=False):
        panel = panel.with_target(query(_so_far(name, more), ref=ref, now=True))
        panel = panel.override_by_name(heading, panels.looks_like(unit))
        shown.append((f"Value #{ref}", heading))
    return (
        panel.transformations(panels.columns([*shown, ("verdict", "bottleneck")], "rank", joined_by="legend"))
        .override_by_name("rank", panels.looks_like("none", custom_width=60))
        .override_by_name("strategy", panels.looks_like(custom_width=340))
        .height(TALL + 5)
    )


def _figures() -> Iterator[tuple[str, str, str, str]]:
    """Yield metric, labels, heading and unit of the columns that a report's table always has, or has if known."""
    for figure, metric in EXPORTED:
        if figure.column is not None and figure.column.when in {"always", "known"}:
            more = f', quantile="{metric.quantile}"' if metric.quantile else ""
            yield metric.name, more, figure.column.heading, panels.UNITS[figure.unit]
    yield "errors", "", "errors", "short"


def _costs() -> Iterator[Panel]:
    opened, sent = _latest("clientlab_connections_opened_total"), _latest("clientlab_requests_total")
    yield bars(
        "How often is a connection used again?",
        "1 minus connections opened divided by requests: 100 % is one connection for all, 0 % one for each.",
        "percentunit",
        f"clamp_min(1 - {opened} / ({sent} > 0), 0)",
    ).max(1)
    cpu, answered = _latest("clientlab_cpu_seconds_total"), _latest("clientlab_requests_total", more=', outcome="ok"')
    yield bars(
        "What does a request cost in CPU time?",
        "CPU time of the client and its child processes per successful request.",
        "s",
        f"{cpu} / ({answered} > 0)",
    )
    yield bars(
        "How much memory did it take?",
        "Peak memory of the processes of its latest trial, all shards together.",
        "bytes",
        _latest("clientlab_memory_bytes", over="max_over_time"),
    )


def _failures() -> tables.Panel:
    failed = _latest("clientlab_requests_total", by="legend, outcome", more=', outcome!="ok"') + " > 0"
    shown = [("legend", "strategy"), ("outcome", "kind of error"), ("Value", "requests")]
    return (
        panels.grid("What went wrong?", "Failed requests of each arm's latest trial, by kind.", query(failed, now=True))
        .transformations(panels.columns(shown, "requests", descending=True))
        .unit("short")
        .no_value("no request failed")
        .span(HALF)
        .height(TALL + 4)
    )


def _lines(title: str, description: str, unit: str, expression: str) -> Panel:
    return lines(title, description, unit, query(expression)).no_value("none in this run")


def _over_time() -> Iterator[Panel]:
    yield _lines(
        "How many requests a second?",
        "Successful requests per measured second. Pauses between trials do not count.",
        "reqps",
        _per_measured_second("clientlab_requests_total", ', outcome="ok"'),
    )
    yield _lines(
        "How many requests are in flight?",
        "The mean over the last scrapes, by Little's law from requests that have ended.",
        "short",
        f"sum by (legend) (clientlab_requests_in_flight{{{ARMS}}})",
    )
    for figure, metric in EXPORTED:
        if metric.quantile and metric.name == "latency_seconds":
            yield _lines(
                f"How long is the {figure.label} ({figure.key})?",
                "By histogram_quantile over the last ten seconds; the run file has exact quantiles. A failed request "
                "ranks after every successful one: there is no line if the quantile is one of them.",
                "s",
                f"clientlab:request_seconds:{figure.key}{{{ARMS}}}",
            )


def _open_load() -> Iterator[Panel]:
    p99, scheduled = _so_far("latency_seconds", ', quantile="0.99"'), _so_far("planned_requests_per_second")
    yield bars(
        "Who is ahead? p99 from the planned start, shorter is better",
        "The median over the rounds so far. No bar if the p99 falls on failed or dropped requests.",
        "s",
        f"{p99} and on (legend) {scheduled}",
        order="sort",
    ).no_value("none in this run")
    planned = _per_measured_second("clientlab_planned_requests_total")
    sent = _per_measured_second("clientlab_requests_total", ', outcome!="dropped"')
    panel = lines(
        "Are requests sent at the planned rate?",
        "Requests per measured second. Planned: those whose planned start has passed. An arm: those that were sent and "
        "have ended.",
        "reqps",
        query(f"{sent} and on (legend) {planned}"),
        query(f"max({planned})", "planned", "B"),
    )
    yield panel.height(TALL + 4)
    late = f"sum by (legend, le) (rate(clientlab_lateness_seconds_bucket{{{ARMS}}}[10s]))"
    yield _lines(
        "How late do requests start (p99)?",
        "Time from the planned to the real start, by histogram_quantile over the last ten seconds.",
        "s",
        f"histogram_quantile(0.99, {late}) < 60",
    )
    yield _lines(
        "How many requests wait to be sent?",
        "Requests that are due and have not ended, beyond those that may be in flight (c).",
        "short",
        f"sum by (legend) (clientlab_backlog_requests{{{ARMS}}})",
    )
