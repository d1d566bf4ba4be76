"""Panels about streams: when their events come, and what an event costs the client."""

from __future__ import annotations

from dashboards.source import house
from dashboards.source.bars import bars
from dashboards.source.house import TALL, THIRD, WHOLE, Panel, query
from grafana_foundation_sdk.builders import bargauge, heatmap, timeseries
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import heatmap as heat
from grafana_foundation_sdk.models import prometheus as prom

_OVER = "[10s]"
_NONE = "no streams in this run"
_LAG = "Only where client and upstream are on one machine, and so have one clock."


def panels(chosen: str) -> list[Panel]:
    """Those of the live dashboard. `chosen`: the labels of the arms that it shows."""
    race = _race("Streams: who is ahead? CPU time of an event, shorter is better", "(run|present)", chosen)
    return [race, *_events(chosen), *_times(chosen), _gaps(chosen)]


def of_run(chosen: str) -> list[bargauge.Panel]:
    """Those of a finished run. `chosen`: its label."""
    return [
        _race("Streams: what does an event cost? CPU time, shorter is better", "run", chosen),
        _bars(
            "Streams: how late are events? Median of the lag, shorter is better",
            f"The median over the rounds of the time from the write of an event to its arrival. {_LAG}",
            f'max by (legend) (clientlab_run_event_lag_seconds{{quantile="0.5", {chosen}}})',
        ),
        _bars(
            "Streams: how late are the latest events? p99 of the lag, shorter is better",
            f"The median over the rounds of the 99th percentile. {_LAG}",
            f'max by (legend) (clientlab_run_event_lag_seconds{{quantile="0.99", {chosen}}})',
        ),
    ]


def _race(title: str, stem: str, chosen: str) -> bargauge.Panel:
    """The server decides when events come, so a race of rates would show nothing."""
    return _bars(
        title,
        "CPU time of the client and all its child processes per event: the median over the rounds so far.",
        f'max by (legend) ({{__name__=~"clientlab_{stem}_cpu_seconds_per_event", {chosen}}})',
    )


def _bars(title: str, description: str, expression: str) -> bargauge.Panel:
    panel = bars(title, description, "s", expression, order="sort")
    return panel.span(WHOLE).height(TALL + 3).no_value(_NONE)


def _events(chosen: str) -> list[timeseries.Panel]:
    measured = f"({_rate(f'clientlab_measured_seconds_total{{{chosen}}}')} > 0)"
    events = _rate(f"clientlab_stream_events_total{{{chosen}}}")
    together = _rate(f"clientlab_stream_events_together_total{{{chosen}}}")
    return [
        _lines(
            "Streams: how many events a second?",
            "Events that arrived, of all streams, per measured second. Pauses between trials do not count.",
            "cps",
            f"{events} / {measured}",
        ).span(THIRD),
        _lines(
            "Streams: how many are open?",
            "Streams that have begun and not ended.",
            "short",
            f"sum by (legend) (clientlab_streams_open{{{chosen}}})",
        ).span(THIRD),
        _lines(
            "Streams: how many events come together?",
            f"Share of events that had been written when the one before was handed over. {_LAG}",
            "percentunit",
            f"{together} / ({events} > 0)",
        )
        .max(1)
        .span(THIRD),
    ]


def _times(chosen: str) -> list[timeseries.Panel]:
    lag = f"From the write of an event by the upstream to its arrival at the client. {_LAG}"
    made = (
        ("Streams: how long until the first event (p50)?", "From the send.", "first_event", "0.5"),
        ("Streams: how long until the first event (p99)?", "From the send.", "first_event", "0.99"),
        ("Streams: how late are events (lag p99)?", lag, "lag", "0.99"),
    )
    return [
        _lines(
            title,
            f"{text} By histogram_quantile over the last ten seconds; the run file has exact quantiles.",
            "s",
            f"histogram_quantile({quantile}, sum by (legend, le) "
            f"(rate(clientlab_stream_{name}_seconds_bucket{{{chosen}}}{_OVER}))) < 60",
        ).span(THIRD)
        for title, text, name, quantile in made
    ]


def _gaps(chosen: str) -> heatmap.Panel:
    """A heat map of one arm: gaps of several strategies in one picture would belong to none of them."""
    buckets = f'sum by (le) (rate(clientlab_stream_gap_seconds_bucket{{{chosen}, legend="$arm"}}{_OVER}))'
    return (
        heatmap.Panel()
        .title("Streams: where do the gaps of $arm lie?")
        .description(
            "Events per second by the time since the event before, of the last ten seconds. A client that hands over "
            "events together has gaps near 0 beside long ones."
        )
        .datasource(house.SOURCE)
        .span(WHOLE)
        .height(TALL + 3)
        .interval("1s")
        .calculate(calculate=False)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heat.HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .fill("dark-orange")
            .exponent(0.5)
            .steps(64)
            .reverse(reverse=False)
        )
        .cell_gap(1)
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .y_axis(heatmap.YAxisConfig().unit("s").axis_placement(looks.AxisPlacement.LEFT))
        .show_legend()
        .show_value(looks.VisibilityMode.NEVER)
        .mode(looks.TooltipDisplayMode.SINGLE)
        .no_value(_NONE)
        .with_target(query(buckets, "{{le}}").format(prom.PromQueryFormat.HEATMAP))
    )


def _lines(title: str, description: str, unit: str, expression: str) -> timeseries.Panel:
    panel = house.lines(title, description, unit, query(expression))
    return house.coloured(panel.legend(house.no_legend()).no_value(_NONE), dashes=True)


def _rate(counter: str) -> str:
    return f"sum by (legend) (rate({counter}{_OVER}))"
