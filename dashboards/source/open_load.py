"""Panels of the live dashboard about open loads: who is ahead, and who keeps to the schedule."""

from __future__ import annotations

from dashboards.source import house
from dashboards.source.bars import bars
from dashboards.source.house import HALF, TALL, WHOLE, Panel, query
from grafana_foundation_sdk.builders import bargauge, timeseries

_OVER = "[10s]"
_NONE = "no open load in this run"


def panels(chosen: str) -> list[Panel]:
    """All of them. `chosen`: the labels of the arms that the dashboard shows."""
    return [_race(chosen), _rates(chosen), *_lateness(chosen)]


def _race(chosen: str) -> bargauge.Panel:
    """The schedule decides the rate of all arms alike, so a race of rates says nothing."""
    p99 = f'max by (legend) ({{__name__=~"clientlab_(run|present)_latency_seconds", quantile="0.99", {chosen}}})'
    scheduled = f'{{__name__=~"clientlab_(run|present)_planned_requests_per_second", {chosen}}}'
    return (
        bars(
            "Open load: who is ahead? p99 from the planned start, shorter is better",
            "The median over the rounds so far. No bar where the p99 falls on failed or dropped requests.",
            "s",
            f"{p99} and on (legend) {scheduled}",
            order="sort",
        )
        .span(WHOLE)
        .height(TALL + 3)
        .no_value(_NONE)
    )


def _rates(chosen: str) -> timeseries.Panel:
    measured, planned = _measured(chosen), _rate(f"clientlab_planned_requests_total{{{chosen}}}")
    sent = _rate(f'clientlab_requests_total{{{chosen}, outcome!="dropped"}}')
    panel = house.lines(
        "Open load: are requests sent at the planned rate?",
        "Requests per measured second. Planned: those whose planned start is past. An arm: those that were sent and "
        "have ended.",
        "reqps",
        query(f"{sent} / {measured} and on (legend) {planned}"),
        query(f"max({planned} / {measured})", "planned", "B"),
    )
    return house.coloured(panel.legend(house.no_legend()).no_value(_NONE), dashes=True)


def _lateness(chosen: str) -> list[timeseries.Panel]:
    late = f"sum by (legend, le) (rate(clientlab_lateness_seconds_bucket{{{chosen}}}{_OVER}))"
    dropped = _rate(f'clientlab_requests_total{{{chosen}, outcome="dropped"}}')
    made = (
        (
            "Open load: how late do requests begin (p99)?",
            "Time from the planned to the real start, by histogram_quantile over the last ten seconds.",
            "s",
            f"histogram_quantile(0.99, {late}) < 60",
        ),
        (
            "Open load: how many requests wait to be sent?",
            "Requests that are due and have not ended, beyond those that may be in flight (c).",
            "short",
            f"sum by (legend) (clientlab_backlog_requests{{{chosen}}})",
        ),
        (
            "Open load: how many requests are dropped a second?",
            "Requests that were not sent, because they were later than --max-late.",
            "reqps",
            f"{dropped} / {_measured(chosen)}",
        ),
    )
    return [
        house.coloured(
            house.lines(title, text, unit, query(expression)).legend(house.no_legend()).span(HALF).no_value(_NONE),
            dashes=True,
        )
        for title, text, unit, expression in made
    ]


def _measured(chosen: str) -> str:
    """Measured seconds per second: pauses between trials do not count."""
    return f"({_rate(f'clientlab_measured_seconds_total{{{chosen}}}')} > 0)"


def _rate(counter: str) -> str:
    return f"sum by (legend) (rate({counter}{_OVER}))"
