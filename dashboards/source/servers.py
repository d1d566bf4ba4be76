"""Panels of the live dashboard about the upstreams and the proxy, by their own counters."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.source.panels import Panel, lines, query

_UP = 'upstream=~"$upstream"'
_NAME = "{{upstream}}"


def panels() -> Iterator[Panel]:
    """Yield all of them."""
    yield from _upstreams()
    yield from _proxy()


def _rate(metric: str, by: str = "upstream") -> str:
    return f"sum by ({by}) (rate({metric}{{{_UP}}}[5s]))"


def _upstreams() -> Iterator[Panel]:
    cpu, requests = _rate("mockupstream_cpu_seconds_total"), _rate("mockupstream_requests_total")
    workers = f"sum by (upstream) (mockupstream_workers{{{_UP}}})"
    yield lines(
        "How close is the upstream to its ceiling?",
        "CPU time of its workers divided by wall time and workers. Near 100 % the upstream is the bottleneck, and "
        "the figures describe it, not the client.",
        "percentunit",
        query(f"{cpu} / {workers}", _NAME),
    ).max(1)
    yield lines(
        "How many requests a second, and how many could it serve?",
        "The ceiling is workers divided by CPU seconds per request, at the current cost of a request.",
        "reqps",
        query(requests, f"{_NAME}: served"),
        query(f"{workers} * {requests} / ({cpu} > 0)", f"{_NAME}: ceiling", "B"),
    )
    yield lines(
        "How many requests does it hold?",
        "Requests that have begun and are not answered yet.",
        "short",
        query(f"sum by (upstream) (mockupstream_requests_in_flight{{{_UP}}})", _NAME),
    )
    held, asked = _rate("mockupstream_hold_seconds_sum"), _rate("mockupstream_asked_delay_seconds_total")
    count = f"({_rate('mockupstream_hold_seconds_count')} > 0)"
    yield lines(
        "Does it hold them for the requested delay?",
        "Mean time held, and mean requested delay. The difference is the upstream's own time.",
        "s",
        query(f"{held} / {count}", f"{_NAME}: held"),
        query(f"{asked} / {count}", f"{_NAME}: requested", "B"),
    )
    yield lines(
        "How many connections does it accept a second?",
        "On a proxied route, these are the connections of the proxy, which keeps them.",
        "cps",
        query(_rate("mockupstream_connections_accepted_total"), _NAME),
    )
    yield lines(
        "Which answers does it give?",
        "Responses by status code.",
        "reqps",
        query(_rate("mockupstream_requests_total", by="upstream, status"), f"{_NAME}: {{{{status}}}}"),
    )


def _proxy() -> Iterator[Panel]:
    def rate(part: str, by: str) -> str:
        chosen = 'job="proxy", handler="reverse_proxy"'
        return f"sum{by} (rate(caddy_http_request_duration_seconds_{part}{{{chosen}}}[5s]))"

    yield lines(
        "How many requests a second does the proxy pass on?",
        "By the status code of the response.",
        "reqps",
        query(rate("count", " by (code)"), "{{code}}"),
    )
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
    yield lines(
        "How busy is the proxy?",
        "CPU seconds per second: 100 % is one core.",
        "percentunit",
        query('rate(process_cpu_seconds_total{job="proxy"}[5s])', "proxy"),
    )
