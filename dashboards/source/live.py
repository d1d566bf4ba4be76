"""The live dashboard: which strategy is ahead now, what is its bottleneck, and what the servers do meanwhile."""

from __future__ import annotations

import string
from collections.abc import Iterator

from dashboards.source import panels
from dashboards.source.panels import HALF, TALL, WHOLE, Panel, bars, lines, query, variable
from grafana_foundation_sdk.builders import bargauge
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks

from clientlab.results.figures import EXPORTED

CHOICES = ("experiment", "strategy", "upstream", "route", "link")
ARMS = ", ".join(('run="$run"', *(f'{name}=~"${name}"' for name in CHOICES)))
"""Labels of the selected arms."""


def make_dashboard() -> board.Dashboard:
    """Return the home dashboard."""
    made = panels.start_dashboard(
        "clientlab-live", "clientlab: live", "Which strategy is ahead now, and what is its bottleneck?", "2s", "now-2m"
    )
    for choice in _choices():
        made = made.with_variable(choice)
    for panel in (*_now(), _race(), _standings(), *_costs(), _failures(), *_over_time()):
        made = made.with_panel(panel)
    row = board.Row("Open load: requests that arrive at a planned rate").collapsed(collapsed=True)
    for panel in _open_load():
        row = row.with_panel(panel)
    made = made.with_row(row)
    row = board.Row("Streams: responses that arrive event by event").collapsed(collapsed=True)
    for panel in _streams():
        row = row.with_panel(panel)
    made = made.with_row(row).with_row(board.Row("Upstreams and proxy: is the server the bottleneck?"))
    for panel in (*_upstreams(), *_proxy()):
        made = made.with_panel(panel)
    return made


def _choices() -> Iterator[board.QueryVariable]:
    """Yield the choices. The runs are those that workers measure, and those whose files are stored."""
    seen = '__name__=~"clientlab_requests_total|clientlab_(run|present)_rounds"'
    yield variable("experiment", "Experiment", f"label_values({{{seen}}}, experiment)")
    runs = f'label_values({{{seen}, experiment=~"$experiment"}}, run)'
    yield variable("run", "Run", runs, multi=False, newest=True)
    for name in CHOICES[1:]:
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


def _per_measured_second(counter: str, more: str = "") -> str:
    """Return a rate over the measured time: pauses between trials do not count."""

    def rate(name: str, more: str = "") -> str:
        return f"sum by (legend) (rate({name}{{{ARMS}{more}}}[10s]))"

    return f"{rate(counter, more)} / ({rate('clientlab_measured_seconds_total')} > 0)"


def _now() -> Iterator[Panel]:
    none = 'label_replace(vector(0), "legend", "no trial", "", "")'
    # Over the last seconds, because a trial may be shorter than the time between two scrapes.
    begun = f"max by (legend) (last_over_time(clientlab_trial_started_timestamp_seconds{{{ARMS}}}[5s]))"
    latest = query(f"topk(1, {begun}) or on () {none}").instant()
    arm = panels.number("What is measured now?", "The arm of the latest trial.", latest)
    yield arm.text_mode(looks.BigValueTextMode.NAME)
    schedule = query('sum by (state) (clientlab_schedule_trials{run="$run"})', "{{state}}").instant()
    yield panels.number("How far is the run?", "Trials that are done, failed, or left.", schedule).no_value("finished")


def _race() -> bargauge.Panel:
    """Return the first picture, which can be read from across a room and fills a screen of 900 pixels."""
    return (
        bars(
            "Who is ahead? Successful requests per second, longer is better",
            "The median over the rounds so far; a stream counts as one request. Beside each name: requests in flight "
            "(c), its 95 % confidence interval (from three rounds on), and rounds (n).",
            "reqps",
            _requests_per_second(),
        )
        .max_viz_height(42)  # the names do not fit beside thicker bars
        .span(WHOLE)
        .height(15)
        .no_value("no trial has ended yet")
    )


def _requests_per_second() -> str:
    """Return PromQL with legends such as "aiohttp: c=32, 812–835, n=5". An arm may have no interval.

    `count_values` turns a value into a label.
    """

    def as_label(name: str, expression: str) -> str:
        return f'count_values by (legend) ("{name}", {expression})'

    def three_digits(expression: str) -> str:
        scale = f"10 ^ clamp_min(2 - floor(log10({expression})), 0)"
        return f"round({expression} * {scale}) / {scale}"

    value, low, high = (_so_far(f"requests_per_second{end}") for end in ("", "_low", "_high"))
    ends = [as_label(name, three_digits(end)) for name, end in (("low", low), ("high", high))]
    known = f"{value} * on (legend) group_left (low) {ends[0]} * on (legend) group_left (high) {ends[1]}"
    interval = f'label_join({known}, "interval", "–", "low", "high")'
    both = f"({interval} or {value} unless on (legend) {low})"
    for name in ("rounds", "concurrency"):
        both = f"{both} * on (legend) group_left ({name}) {as_label(name, _so_far(name))}"
    for name, text in (("rounds", "n=$1"), ("concurrency", "c=$1")):
        both = f'label_replace({both}, "{name}", "{text}", "{name}", "(.+)")'
    text = f'label_join({both}, "text", ", ", "concurrency", "interval", "rounds")'
    text = f'label_replace({text}, "text", "$1, $2", "text", "(.*), , (.*)")'  # an arm without an interval
    return f'label_join({text}, "legend", ": ", "legend", "text")'


def _standings() -> tables.Panel:
    panel = panels.grid(
        "What are the figures so far?",
        "Medians of the trials that have ended, from the run file. Arms that differ only in the strategy are ranked "
        "by time; streams by CPU time per event (see the row Streams); an open load by the p99 from the planned start. "
        "A percentile that falls on failed requests is empty. Bottleneck: what limits it.",
        query(_so_far("rank"), ref="Y", now=True),
        query(_so_far("verdict", by="legend, verdict"), ref="Z", now=True),
    )
    # The columns that a report's table always has, or has if they are known.
    queries = [
        (
            _so_far(metric.name, f', quantile="{metric.quantile}"' if metric.quantile else ""),
            figure.column.heading,
            panels.UNITS[figure.unit],
        )
        for figure, metric in EXPORTED
        if figure.column is not None and figure.column.when in {"always", "known"} and figure.needs != "stream"
    ]
    queries.append((_so_far("errors"), "errors", "short"))
    shown = [("Value #Y", "rank"), ("legend", "strategy")]
    for ref, (expression, heading, unit) in zip(string.ascii_uppercase, queries, strict=False):
        panel = panel.with_target(query(expression, ref=ref, now=True))
        panel = panel.override_by_name(heading, panels.looks_like(unit))
        shown.append((f"Value #{ref}", heading))
    return (
        panel.transformations(panels.columns([*shown, ("verdict", "bottleneck")], "rank", joined_by="legend"))
        .override_by_name("rank", panels.looks_like("none", custom_width=60))
        .override_by_name("strategy", panels.looks_like(custom_width=260))
        .height(TALL + 5)
    )


def _costs() -> Iterator[Panel]:
    unseen = "none in this time range"
    opened, sent = _latest("clientlab_connections_opened_total"), _latest("clientlab_requests_total")
    yield (
        bars(
            "How often is a connection used again?",
            "1 minus connections opened divided by requests: 100 % is one connection for all, 0 % one for each.",
            "percentunit",
            f"clamp_min(1 - {opened} / ({sent} > 0), 0)",
        )
        .max(1)
        .no_value(unseen)
    )
    cpu, answered = _latest("clientlab_cpu_seconds_total"), _latest("clientlab_requests_total", more=', outcome="ok"')
    yield bars(
        "What does a request cost in CPU time?",
        "CPU time of the client and its child processes per successful request.",
        "s",
        f"{cpu} / ({answered} > 0)",
    ).no_value(unseen)
    memory = _latest("clientlab_memory_bytes", over="max_over_time")
    peak = bars("How much memory did it take?", "Peak of its latest trial, all processes together.", "bytes", memory)
    yield peak.no_value(unseen)


def _failures() -> tables.Panel:
    failed = _latest("clientlab_requests_total", by="legend, outcome", more=', outcome!="ok"') + " > 0"
    shown = [("legend", "strategy"), ("outcome", "kind of error"), ("Value", "requests")]
    return (
        panels.grid("What went wrong?", "Failed requests of each arm's latest trial, by kind.", query(failed, now=True))
        .transformations(panels.columns(shown, "requests", descending=True))
        .unit("short")
        .no_value("no failed request in this time range")
        .span(HALF)
        .height(TALL + 4)
    )


def _arm_lines(title: str, description: str, unit: str, expression: str) -> Panel:
    return lines(title, description, unit, query(expression)).no_value("none in this time range")


def _over_time() -> Iterator[Panel]:
    yield _arm_lines(
        "How many requests a second?",
        "Successful requests per measured second. Pauses between trials do not count.",
        "reqps",
        _per_measured_second("clientlab_requests_total", ', outcome="ok"'),
    )
    in_flight = f"sum by (legend) (clientlab_requests_in_flight{{{ARMS}}})"
    description = "The mean over the last scrapes, by Little's law from requests that have ended."
    yield _arm_lines("How many requests are in flight?", description, "short", in_flight)
    for figure, metric in EXPORTED:
        if metric.quantile and metric.name == "latency_seconds":
            yield _arm_lines(
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
    yield lines(
        "Are requests sent at the planned rate?",
        "Requests per measured second. Planned: those that were due. An arm: those that were sent and have ended.",
        "reqps",
        query(f"{sent} and on (legend) {planned}"),
        query(f"max({planned})", "planned", "B"),
    ).height(TALL + 4)
    late = f"sum by (legend, le) (rate(clientlab_lateness_seconds_bucket{{{ARMS}}}[10s]))"
    description = "Time from the planned to the real start, by histogram_quantile over the last ten seconds."
    p99_late = f"histogram_quantile(0.99, {late}) < 60"
    yield _arm_lines("How late do requests start (p99)?", description, "s", p99_late)
    waiting = f"sum by (legend) (clientlab_backlog_requests{{{ARMS}}})"
    description = "Requests that are due and have not ended, beyond those that may be in flight (c)."
    yield _arm_lines("How many requests wait to be sent?", description, "short", waiting)


def _streams() -> Iterator[Panel]:
    yield (
        bars(
            "What does an event cost in CPU time? Shorter is better",
            "The median over the rounds so far: CPU time of the client per event, by which streams are ranked.",
            "s",
            _so_far("cpu_seconds_per_event"),
            order="sort",
        )
        .span(WHOLE)
        .height(TALL)
        .no_value("none in this run")
    )
    yield (
        bars(
            "How long do clients hold an event back? Median lag, shorter is better",
            "The median over the rounds so far: from the server's write of an event until the client hands it over.",
            "s",
            _so_far("lag_seconds", ', quantile="0.5"'),
            order="sort",
        )
        .span(WHOLE)
        .height(TALL)
        .no_value("none in this run")
    )
    yield _arm_lines(
        "How many events a second?",
        "Events per measured second. Pauses between trials do not count.",
        "eps",
        _per_measured_second("clientlab_events_total"),
    )
    yield panels.heat(
        "How long are the gaps between events?",
        "Gaps of the chosen strategies over the last ten seconds, as the clients get the events.",
        f"sum by (le) (rate(clientlab_gap_seconds_bucket{{{ARMS}}}[10s]))",
    )
    first, late = (_so_far(f"{name}_seconds", f', quantile="{share}"')
                   for name, share in (("first_event", "0.5"), ("write_error", "0.99")))  # fmt: skip
    yield bars(
        "How long until the first event? Shorter is better",
        "Median over all streams; median of the rounds so far.",
        "s",
        first,
        order="sort",
    ).no_value("none in this run")
    yield bars(
        "How late does the upstream write events (p99)?",
        "Its write error is part of gaps, and not of the lag.",
        "s",
        late,
    ).no_value("none in this run")


def _upstreams() -> Iterator[Panel]:
    chosen, name = 'upstream=~"$upstream"', "{{upstream}}"

    def rate(metric: str, by: str = "upstream") -> str:
        return f"sum by ({by}) (rate({metric}{{{chosen}}}[5s]))"

    cpu, requests = rate("mockupstream_cpu_seconds_total"), rate("mockupstream_requests_total")
    workers = f"sum by (upstream) (mockupstream_workers{{{chosen}}})"
    yield lines(
        "How close is the upstream to its ceiling?",
        "CPU time of its workers divided by wall time and workers. Near 100 % the upstream is the bottleneck, and "
        "the figures describe it, not the client.",
        "percentunit",
        query(f"{cpu} / {workers}", name),
    ).max(1)
    yield lines(
        "How many requests a second, and how many could it serve?",
        "The ceiling is workers divided by CPU seconds per request, at the current cost of a request.",
        "reqps",
        query(requests, f"{name}: served"),
        query(f"{workers} * {requests} / ({cpu} > 0)", f"{name}: ceiling", "B"),
    )
    holding = query(f"sum by (upstream) (mockupstream_requests_in_flight{{{chosen}}})", name)
    yield lines("How many requests does it hold?", "Requests that have begun and not ended.", "short", holding)
    held, asked = rate("mockupstream_hold_seconds_sum"), rate("mockupstream_asked_delay_seconds_total")
    count = f"({rate('mockupstream_hold_seconds_count')} > 0)"
    yield lines(
        "Does it hold them for the requested delay?",
        "Mean time held, and mean requested delay. The difference is the upstream's own time.",
        "s",
        query(f"{held} / {count}", f"{name}: held"),
        query(f"{asked} / {count}", f"{name}: requested", "B"),
    )
    accepted = query(rate("mockupstream_connections_accepted_total"), name)
    description = "On a proxied route, these are the connections of the proxy, which keeps them."
    yield lines("How many connections does it accept a second?", description, "cps", accepted)
    by_status = query(rate("mockupstream_requests_total", by="upstream, status"), f"{name}: {{{{status}}}}")
    yield lines("Which answers does it give?", "Responses by status code.", "reqps", by_status)


def _proxy() -> Iterator[Panel]:
    def rate(part: str, by: str) -> str:
        chosen = 'job="proxy", handler="reverse_proxy"'
        return f"sum{by} (rate(caddy_http_request_duration_seconds_{part}{{{chosen}}}[5s]))"

    by_code = query(rate("count", " by (code)"), "{{code}}")
    title = "How many requests a second does the proxy pass on?"
    yield lines(title, "By the status code of the response.", "reqps", by_code)
    buckets = rate("bucket", " by (le)")
    yield lines(
        "How long does the upstream take, as the proxy sees it?",
        "By histogram_quantile over Caddy's own buckets.",
        "s",
        query(f"histogram_quantile(0.5, {buckets})", "p50"),
        query(f"histogram_quantile(0.99, {buckets})", "p99", "B"),
    )
    # Upstreams do not know who connects, so this is known only while nearly all requests come through the proxy.
    alone = f"({rate('count', '')} > 0.99 * sum(rate(mockupstream_requests_total[5s])))"
    accepted = "sum(rate(mockupstream_connections_accepted_total[5s]))"
    yield lines(
        "Does the proxy keep its connections to the upstreams?",
        "1 minus connections that upstreams accept divided by requests that the proxy passes on. No value while trials "
        "use the direct route.",
        "percentunit",
        query(f"clamp_min(1 - {accepted} / {alone}, 0)", "used again"),
    ).max(1)
    busy = query('rate(process_cpu_seconds_total{job="proxy"}[5s])', "proxy")
    yield lines("How busy is the proxy?", "CPU seconds per second: 100 % is one core.", "percentunit", busy)
