"""Bars: one per arm with its value, in the colour of its strategy, and with its interval as text."""

from __future__ import annotations

from collections.abc import Callable

from dashboards.source import house
from grafana_foundation_sdk.builders import bargauge, common
from grafana_foundation_sdk.models import common as looks

THICK = 26
"""Pixels of a bar at most."""


def bars(title: str, description: str, unit: str, expression: str, order: str = "sort_desc") -> bargauge.Panel:
    """One bar per arm with its value, the longest first, as in the articles; the shortest with `order` ``sort``.

    `expression` gives one value per legend. Each becomes a field of that name, so that a bar has the colour of the line
    with the same name.
    """
    named = house.transformation(
        "rowsToFields",
        mappings=[
            {"fieldName": "legend", "handlerKey": "field.name"},
            {"fieldName": "Value", "handlerKey": "field.value"},
        ],
    )
    panel = (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(house.SOURCE)
        .unit(unit)
        .min(0)
        .span(house.HALF)
        .height(house.TALL)
        .orientation(looks.VizOrientation.HORIZONTAL)
        .display_mode(looks.BarGaugeDisplayMode.BASIC)
        .value_mode(looks.BarGaugeValueMode.TEXT)
        .show_unfilled(show_unfilled=False)
        .name_placement(looks.BarGaugeNamePlacement.LEFT)
        .sizing(looks.BarGaugeSizing.MANUAL)  # few bars stay as slim as many
        .min_viz_height(16)
        .max_viz_height(THICK)  # Grafana makes letters as large as this allows
        .color_scheme(house.by_name())
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
        .transformations([house.transformation("filterFieldsByName", include={"names": ["legend", "Value"]}), named])
        .with_target(house.query(f"{order}({_with_room(expression)})", now=True))
    )
    return house.coloured(panel)


def _with_room(expression: str) -> str:
    """The expression with spaces behind its legends.

    Grafana measures a bar's name without the space between letters, and would cut off the end of a long one. It
    measures the trailing spaces, but a browser does not show them.
    """
    return f'label_replace(({expression}), "legend", "$1      ", "legend", "(.*)")'


def with_interval(metric: Callable[[str], str]) -> str:
    """Requests per second of each legend; concurrency, interval and number of rounds become part of the legend.

    A bar has one value, so all else is text beside it: "aiohttp: c=32, 812–835, n=5". `count_values` turns a number
    into a label. `metric` returns, for the name of a metric of the run, an expression with one value per legend. An arm
    may have no interval.
    """
    value, low, high = (metric(f"requests_per_second{end}") for end in ("", "_low", "_high"))
    ends = [_as_label(name, _three_digits(end)) for name, end in (("low", low), ("high", high))]
    known = f"{value} * on (legend) group_left (low) {ends[0]} * on (legend) group_left (high) {ends[1]}"
    interval = f'label_join({known}, "interval", "–", "low", "high")'
    both = f"({interval} or {value} unless on (legend) {low})"
    for name in ("rounds", "concurrency"):
        both = f"{both} * on (legend) group_left ({name}) {_as_label(name, metric(name))}"
    for name, text in (("rounds", "n=$1"), ("concurrency", "c=$1")):
        both = f'label_replace({both}, "{name}", "{text}", "{name}", "(.+)")'
    text = f'label_join({both}, "text", ", ", "concurrency", "interval", "rounds")'
    text = f'label_replace({text}, "text", "$1, $2", "text", "(.*), , (.*)")'  # without an interval
    return f'label_join({text}, "legend", ": ", "legend", "text")'


def _as_label(name: str, expression: str) -> str:
    """The value of each legend as a label of that name."""
    return f'count_values by (legend) ("{name}", {expression})'


def _three_digits(expression: str) -> str:
    """Values rounded to three significant digits. Digits before the decimal point are never cut: 1234 stays 1234."""
    scale = f"10 ^ clamp_min(2 - floor(log10({expression})), 0)"
    return f"round({expression} * {scale}) / {scale}"
