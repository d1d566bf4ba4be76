"""The live dashboard: what runs now, who is ahead, what is wrong, and whether the
server is the limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.source import panels
from dashboards.source.panels import (
    COLOURED,
    LOW,
    RUN,
    TALL,
    Panel,
    arm_lines,
    coloured,
    grid,
    lines,
    looks_like,
    query,
    variable,
)
from grafana_foundation_sdk.builders import common, stat
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model

STATUS = {"running": "blue", "done": "green", "interrupted|incomplete": "red"}
"""How runs are coloured."""


def make_dashboard() -> board.Dashboard:
    """Return the home dashboard.

    It follows the newest run unless the reader chooses one.
    """
    made = panels.start_dashboard(
        "live",
        "Which arm is ahead now, is anything wrong, and what is the limit?",
        "2s",
        "now-5m",
    )
    compared = "/d/clientlab-comparison?var-experiment=${experiment}&var-run=${run}"
    made = made.link(panels.link("Compare this run", compared))
    for choice in _choices():
        made = made.with_variable(choice)
    for panel in (*_state(), _problems(), _standings(), *_over_time()):
        made = made.with_panel(panel)
    closed = {
        "Open load: requests that arrive at a planned rate": _open_load(),
        "Streams: responses that arrive event by event": _streams(),
        "Faults and retries: how often calls are sent": [_attempts()],
        "All runs": [_runs()],
    }
    made = made.with_row(board.Row("Is the server the limit?"))
    for panel in _servers():
        made = made.with_panel(panel)
    for title, of_row in closed.items():
        row = board.Row(title).collapsed(collapsed=True)
        for panel in of_row:
            row = row.with_panel(panel)
        made = made.with_row(row)
    return made


def _choices() -> Iterator[board.QueryVariable]:
    """Yield the reader's choice, and the run and the experiment that it stands for."""
    choices = "query_result(sort_desc(clientlab_run_choice))"
    yield variable("choice", "Run", choices, regex='/choice="([^"]+)"/')
    # An instant query: label_values would also return runs that were the newest before.
    for name in ("run", "experiment"):
        chosen = 'query_result(clientlab_run_choice{choice="$choice"})'
        yield variable(name, "", chosen, regex=f'/[{{ ,]{name}="([^"]+)"/')


def _rate(counter: str, more: str = "", by: str = "legend") -> str:
    """Return how fast a counter of the run's trials grows."""
    return f"sum by ({by}) (rate(clientlab_{counter}{{{RUN}{more}}}[10s]))"


def _per_measured_second(counter: str, more: str = "") -> str:
    """Return a rate over the measured time: pauses between trials do not count."""
    return f"{_rate(counter, more)} / ({_rate('measured_seconds_total')} > 0)"


def _quantile(share: float, histogram: str) -> str:
    """Return a quantile over the last ten seconds; nothing beyond the last bucket."""
    buckets = _rate(f"{histogram}_bucket", by="legend, le")
    return f"histogram_quantile({share}, {buckets}) < 60"


def _state() -> Iterator[Panel]:
    queries = [
        query(f"clientlab_run_info{{{RUN}}}", ref="A", now=True),
        *(
            query(f'clientlab_run_trials{{{RUN}, state="{state}"}}', ref=ref, now=True)
            for ref, state in (("B", "done"), ("C", "failed"), ("D", "left"))
        ),
    ]
    shown = [
        *(("run", "run"), ("experiment 1", "experiment"), ("status", "status")),
        *(("Value #B", "trials done"), ("Value #C", "failed"), ("Value #D", "left")),
    ]
    table = grid(
        "Which run is this?",
        "The newest run, or your choice.",
        shown,
        *queries,
        by="run",
    )
    yield (
        table.span(18)
        .height(LOW)
        .override_by_name("status", _as_text(STATUS))
        .override_by_name("failed", looks_like(thresholds=_RED_FROM_1, **COLOURED))
        .no_value("no run has begun")
    )
    # The one that was seen last, because a trial may end before the page is refreshed.
    seen = f"timestamp(clientlab_trial_running{{{RUN}}} == 1)[5s:1s]"
    none = 'label_replace(vector(0), "legend", "no trial", "", "")'
    running = f"topk(1, max by (legend) (max_over_time({seen}))) or on () {none}"
    now = panels.styled(
        stat.Panel(),
        "What is measured now?",
        "The arm of the present trial.",
        query(running).instant(),
    )
    yield (
        now.span(6)
        .height(LOW)
        .text_mode(looks.BigValueTextMode.NAME)
        .color_mode(looks.BigValueColorMode.NONE)
        .graph_mode(looks.BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["last"]).values(values=False))
    )


_HIDDEN = looks_like(custom_hidden=True)
_RED_FROM_1 = {
    "mode": "absolute",
    "steps": [{"value": None, "color": "text"}, {"value": 1, "color": "red"}],
}


def _as_text(colours: dict[str, str]) -> list[model.DynamicConfigValue]:
    return looks_like(mappings=coloured(colours), **COLOURED)


_COLUMNS = {
    "place": ("#", 40),
    "legend": ("arm", 260),
    "workload": ("workload", 130),
    "upstream": ("server", 75),
    "route": ("route", 65),
    "concurrency": ("c", 50),
    "Value": ("speed", 110),
    "figure": ("figure", 120),
    "ratio": ("x fastest (95 %)", 170),
    "p50": ("p50", 80),
    "p99": ("p99", 80),
    "cpu": ("CPU/request", 105),
    "errors": ("errors", 70),
    "bottleneck": ("bottleneck", 0),
}
"""Label or value of a standing → heading and width of its column; 0: what is left."""


def _standings() -> tables.Panel:
    table = grid(
        "Who is ahead?",
        "As in the report of the run so far: arms of one group with the same c are"
        " ranked with each other. The bar is the speed beside that of the fastest of"
        " them. Errors are a share of the requests; ≥ marks a lower bound, because"
        " requests failed. The bottleneck limits the arm.",
        [(name, heading) for name, (heading, _) in _COLUMNS.items()],
        query(f"clientlab_run_standing{{{RUN}}}", now=True),
    )
    for heading, width in _COLUMNS.values():
        if width:
            table = table.override_by_name(heading, looks_like(custom_width=width))
    gauge = {"type": "gauge", "mode": "basic", "valueDisplayMode": "hidden"}
    blue = {"mode": "fixed", "fixedColor": "#56B4E9"}
    bar = looks_like(custom_cellOptions=gauge, max=1, min=0, color=blue)
    return (
        table.override_by_name("#", _HIDDEN)  # it gives the order
        .override_by_name("speed", bar)
        .override_by_name("errors", _as_text({".+": "red"}))
        .height(TALL + 9)
        .no_value("no trial has succeeded yet")
    )


def _problems() -> tables.Panel:
    shown = [("kind", "kind"), ("text", "what"), ("Value", "times")]
    table = grid(
        "Is anything wrong?",
        "Failed trials with their reason, and each reason to doubt a figure with"
        " advice.",
        shown,
        query(f"clientlab_run_problem{{{RUN}}}", now=True),
    )
    return (
        table.override_by_name(
            "kind",
            [
                *_as_text({"! failed": "red", ".*": "orange"}),
                *looks_like(custom_width=220),
            ],
        )
        .override_by_name(
            "what", looks_like(custom_cellOptions={"type": "auto", "wrapText": True})
        )
        .override_by_name("times", looks_like(custom_width=70))
        .height(TALL - 3)
        .no_value("nothing so far")
    )


def _over_time() -> Iterator[Panel]:
    pauses = "Per measured second: pauses between trials do not count."
    yield arm_lines(
        "How many requests a second succeed?",
        pauses,
        "reqps",
        _per_measured_second("requests_total", ', outcome="ok"'),
    )
    failed, every = _rate("requests_total", ', outcome!="ok"'), _rate("requests_total")
    yield arm_lines(
        "Which share of the requests fails?",
        "Of those that end.",
        "percentunit",
        f"{failed} / {every}",
    ).max(1)
    text = (
        "Over the last ten seconds, by histogram_quantile; the report has exact"
        " quantiles. There is no line if the quantile falls on failed requests."
    )
    for name, rule in (("median", "p50"), ("p99", "p99")):
        title = f"How long does a request take ({name})?"
        recorded = f"max by (legend) (clientlab:request_seconds:{rule}{{{RUN}}})"
        yield arm_lines(title, text, "s", recorded)


def _servers() -> Iterator[Panel]:
    def rate(metric: str, by: str = "upstream") -> str:
        return f"sum by ({by}) (rate({metric}[5s]))"

    cpu = rate("mockupstream_cpu_seconds_total")
    workers = "sum by (upstream) (mockupstream_workers)"
    of_proxy = 'rate(process_cpu_seconds_total{job="proxy"}[5s])'
    of_client = _per_measured_second("cpu_seconds_total")
    yield lines(
        "Which part is busy?",
        "CPU time per second: of each worker of the upstream, of the proxy, and of the"
        " client while it is measured. Near 100 %, a part of one core is the limit.",
        "percentunit",
        query(f"{cpu} / {workers}", "{{upstream}} upstream"),
        query(of_proxy, "proxy", "B"),
        query(f"max({of_client})", "client", "C"),
    )
    held, asked = (
        rate("mockupstream_hold_seconds_sum"),
        rate("mockupstream_asked_delay_seconds_total"),
    )
    count = f"({rate('mockupstream_hold_seconds_count')} > 0)"
    yield lines(
        "Does the upstream hold requests for the requested delay?",
        "Mean time held, and mean requested delay. The difference is the upstream's own"
        " time.",
        "s",
        query(f"{held} / {count}", "{{upstream}}: held"),
        query(f"{asked} / {count}", "{{upstream}}: requested", "B"),
    )
    yield lines(
        "Which answers does it give?",
        "Responses a second by status code.",
        "reqps",
        query(
            rate("mockupstream_requests_total", "upstream, status"),
            "{{upstream}}: {{status}}",
        ),
    )
    yield lines(
        "How many connections does it accept a second?",
        "On a proxied route, these are the connections of the proxy, which keeps them.",
        "cps",
        query(rate("mockupstream_connections_accepted_total"), "{{upstream}}"),
    )


def _open_load() -> Iterator[Panel]:
    planned = _per_measured_second("planned_requests_total")
    sent = _per_measured_second("requests_total", ', outcome!="dropped"')
    grey = looks_like(color={"mode": "fixed", "fixedColor": "#8e8e8e"})
    yield lines(
        "Are requests sent at the planned rate?",
        "Per measured second. Planned: those that were due. An arm: those that have"
        " ended.",
        "reqps",
        query(f"{sent} and on (legend) {planned}"),
        query(f"max({planned}) > 0", "planned", "B"),
    ).override_by_name("planned", grey)
    late = _quantile(0.99, "lateness_seconds")
    text = "From the planned to the real start, over the last ten seconds."
    yield arm_lines("How late do requests start (p99)?", text, "s", late)
    waiting = f"sum by (legend) (clientlab_backlog_requests{{{RUN}}})"
    text = (
        "Requests that are due and have not ended, beyond those that may be in flight"
        " (c)."
    )
    yield arm_lines("How many requests wait to be sent?", text, "short", waiting)


def _streams() -> Iterator[Panel]:
    yield arm_lines(
        "How many events a second?",
        "Per measured second: pauses between trials do not count.",
        "eps",
        _per_measured_second("events_total"),
    )
    yield arm_lines(
        "What does an event cost in CPU time?",
        "CPU time of the client by events. Streams are ranked by it.",
        "s",
        f"{_rate('cpu_seconds_total')} / ({_rate('events_total')} > 0)",
    )
    yield arm_lines(
        "How long do clients hold an event back (p99)?",
        "From the server's write of an event until the client hands it over.",
        "s",
        _quantile(0.99, "lag_seconds"),
    )
    yield panels.heat(
        "How long are the gaps between events?",
        "Over the last ten seconds, as the clients get the events.",
        _rate("gap_seconds_bucket", by="le"),
    )


def _attempts() -> tables.Panel:
    names = {
        "attempts_per_call": "attempts per call",
        "duplicates_per_call": "duplicates per call",
        "densest_attempts_share": "attempts in the densest 100 ms",
    }
    queries = []
    shown = [("legend", "arm")]
    for ref, (name, heading) in zip("ABC", names.items(), strict=True):
        expression = f"max by (legend) (clientlab_run_{name}{{{RUN}}})"
        queries.append(query(expression, ref=ref, now=True))
        shown.append((f"Value #{ref}", heading))
    table = grid(
        "What do retries cost the server?",
        "By the upstream's own count. Duplicates: times that the work of a call was"
        " done again.",
        shown,
        *queries,
        by="legend",
    )
    return (
        table.override_by_name("attempts per call", looks_like(decimals=2))
        .override_by_name("duplicates per call", looks_like("percentunit"))
        .override_by_name(names["densest_attempts_share"], looks_like("percentunit"))
        .height(TALL)
        .no_value("no call was sent again")
    )


def _runs() -> tables.Panel:
    shown = [
        *(("Value #B", "began"), ("run", "run"), ("experiment 1", "experiment")),
        *(("status", "status"), ("Value #C", "ended"), ("Value #D", "failed trials")),
    ]
    table = grid(
        "Which runs are there?",
        "A run's name leads to the time in which it was measured.",
        shown,
        query("clientlab_run_info", ref="A", now=True),
        query(
            "round(clientlab_run_created_timestamp_seconds * 1000)", ref="B", now=True
        ),
        query(
            "round(clientlab_run_ended_timestamp_seconds * 1000) + 15000",
            ref="C",
            now=True,
        ),
        query('clientlab_run_trials{state="failed"}', ref="D", now=True),
        by="run",
        descending=True,
    )
    chosen = "var-choice=${__data.fields.run}"
    time = "from=${__data.fields.began.numeric}&to=${__data.fields.ended.numeric}"
    links = [{"title": "Show it", "url": f"/d/clientlab-live?{chosen}&{time}"}]
    return (
        table.override_by_name("ended", _HIDDEN)  # the link needs it
        .override_by_name("run", looks_like(links=links, custom_width=320))
        .override_by_name("began", looks_like("dateTimeAsIso", custom_width=180))
        .override_by_name("status", _as_text(STATUS))
        .override_by_name(
            "failed trials", looks_like(thresholds=_RED_FROM_1, **COLOURED)
        )
        .height(TALL)
    )
