"""Upstreams and proxy: whether the server is the bottleneck."""

from __future__ import annotations

from dashboards.source import colours, house, variables
from dashboards.source.house import Panel, query
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import prometheus, timeseries
from grafana_foundation_sdk.models import dashboard as model

UID = "clientlab-servers"

_OVER = "[5s]"
_UP = 'upstream=~"$upstream"'
_NAME = "{{upstream}}"
_COLOURS = {"aiohttp": "#0072B2", "flask": "#E69F00"}
_PROXY_COLOURS = {"p50": "#56B4E9", "p99": "#D55E00", "used again": "#009E73"}
"""Grafana's colours by name are three similar reds."""


def dashboard() -> board.Dashboard:
    """Upstreams and proxy, by their own counters."""
    made = house.dashboard(UID, "clientlab: upstreams and proxy", "Is the server the bottleneck?", "2s", "now-5m")
    made = made.with_variable(
        variables.variable("upstream", "Upstream", "label_values(mockupstream_workers, upstream)")
    )
    for panel in (*_upstreams(), *_proxy()):
        made = made.with_panel(panel)
    return made


def lines(title: str, description: str, unit: str, *queries: prometheus.Dataquery) -> timeseries.Panel:
    """Lines in the upstreams' colours. The reference line of a pair is dashed."""
    panel = house.lines(title, description, unit, *queries)
    for upstream, colour in _COLOURS.items():
        panel = panel.override_by_regexp(f"/^{upstream}\\b/", [_fixed(colour)])
    return panel.override_by_regexp("/: (ceiling|requested|workers|written)$/", [colours.DASHES])


def _fixed(colour: str) -> model.DynamicConfigValue:
    return model.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})


def _coloured(panel: timeseries.Panel, *names: str) -> timeseries.Panel:
    """The panel with the colours of these series of the proxy."""
    for name in names:
        panel = panel.override_by_name(name, [_fixed(_PROXY_COLOURS[name])])
    return panel


def _rate(metric: str, labels: str = _UP, by: str = "upstream") -> str:
    return f"sum by ({by}) (rate({metric}{{{labels}}}{_OVER}))"


def _upstreams() -> list[Panel]:
    cpu, requests = _rate("mockupstream_cpu_seconds_total"), _rate("mockupstream_requests_total")
    workers = f"sum by (upstream) (mockupstream_workers{{{_UP}}})"
    held, asked = _rate("mockupstream_hold_seconds_sum"), _rate("mockupstream_asked_delay_seconds_total")
    count = _rate("mockupstream_hold_seconds_count")
    return [
        lines(
            "How close is the upstream to its ceiling?",
            "CPU time of its workers divided by wall time and workers. Near 100 % the upstream is the bottleneck, and "
            "the figures describe it, not the client.",
            "percentunit",
            query(f"{cpu} / {workers}", _NAME),
        )
        .max(1)
        .thresholds(house.thresholds((None, "green"), (0.7, "orange"), (0.9, "red"))),
        lines(
            "How many requests a second, and how many could it serve?",
            "The ceiling is workers divided by CPU seconds per request, at the current cost of a request.",
            "reqps",
            query(requests, f"{_NAME}: served"),
            query(f"{workers} * {requests} / ({cpu} > 0)", f"{_NAME}: ceiling", "B"),
        ),
        lines(
            "How many requests does it hold?",
            "Requests that have begun and are not answered yet.",
            "short",
            query(f"sum by (upstream) (mockupstream_requests_in_flight{{{_UP}}})", _NAME),
        ),
        lines(
            "Does it hold them for the requested delay?",
            "Mean time held, and mean requested delay. The difference is the upstream's own time.",
            "s",
            query(f"{held} / ({count} > 0)", f"{_NAME}: held"),
            query(f"{asked} / ({count} > 0)", f"{_NAME}: requested", "B"),
        ),
        lines(
            "How many connections does it accept a second?",
            "On a proxied route, the connections of the proxy, which keeps them.",
            "cps",
            query(_rate("mockupstream_connections_accepted_total"), _NAME),
        ),
        lines(
            "Which answers does it give?",
            "Responses by status code.",
            "reqps",
            query(_rate("mockupstream_requests_total", by="upstream, status"), f"{_NAME}: {{{{status}}}}"),
        ),
        lines(
            "How much does it read and write?",
            "Bodies of requests and of responses.",
            "Bps",
            query(_rate("mockupstream_request_body_bytes_total"), f"{_NAME}: read"),
            query(_rate("mockupstream_response_body_bytes_total"), f"{_NAME}: written", "B"),
        ),
        lines(
            "How many of its workers are busy?",
            "Workers with a request at each second's scrape, and all workers.",
            "short",
            query(f"sum by (upstream) (mockupstream_workers_busy{{{_UP}}})", f"{_NAME}: busy"),
            query(workers, f"{_NAME}: workers", "B"),
        ),
    ]


def _proxy() -> list[Panel]:
    took = "caddy_http_request_duration_seconds"
    chosen = 'job="proxy", handler="reverse_proxy"'
    passed = f"sum by (code) (rate({took}_count{{{chosen}}}{_OVER}))"
    buckets = f"sum by (le) (rate({took}_bucket{{{chosen}}}{_OVER}))"
    proxied = f"sum(rate({took}_count{{{chosen}}}{_OVER}))"
    accepted = f"sum(rate(mockupstream_connections_accepted_total{_OVER}))"
    # Upstreams do not know who connects. So this is known only while nearly all requests come through the proxy.
    alone = f"({proxied} > 0.99 * sum(rate(mockupstream_requests_total{_OVER})))"
    return [
        lines(
            "How many requests a second does the proxy pass on?", "By the status code of the response.", "reqps",
            query(passed, "{{code}}"),
        ),
        _coloured(
            lines(
                "How long does the upstream take, as the proxy sees it?",
                "By histogram_quantile over Caddy's own buckets.",
                "s",
                query(f"histogram_quantile(0.5, {buckets})", "p50"),
                query(f"histogram_quantile(0.99, {buckets})", "p99", "B"),
            ),
            "p50",
            "p99",
        ),
        _coloured(
            lines(
                "Does the proxy keep its connections to the upstreams?",
                "1 minus connections that upstreams accept divided by requests that the proxy passes on. No value "
                "while trials use the direct route.",
                "percentunit",
                query(f"clamp_min(1 - {accepted} / {alone}, 0)", "used again"),
            ).max(1),
            "used again",
        ),
        lines(
            "How busy is the proxy?",
            "CPU seconds per second: 100 % is one core.",
            "percentunit",
            query(f'rate(process_cpu_seconds_total{{job="proxy"}}{_OVER})', "proxy"),
        ),
    ]  # fmt: skip
