"""The style that all panels share, so that a reader who knows one panel knows all.

The title of a panel is a question or its answer. The description states how the number is computed. A series is named
by the arm's legend. `colours` has the colour of each strategy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from dashboards.source import colours
from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    prometheus,
    stat,
    table,
    timeseries,
    trend,
)
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as prom

from clientlab.units import Unit

Panel = Builder[model.Panel]
Coloured = TypeVar("Coloured", timeseries.Panel, bargauge.Panel, trend.Panel)
SOURCE = looks.DataSourceRef(type_val="prometheus", uid="clientlab-prometheus")
TAG = "clientlab"
BY_ARM = "{{legend}}"
UNITS: dict[Unit, str] = {
    "seconds": "s",
    "per-second": "reqps",
    "bytes": "bytes",
    "bytes-per-second": "binBps",
    "count": "short",
    "share": "percentunit",
}
"""A figure's unit → Grafana's."""
WHOLE, HALF, THIRD, QUARTER = 24, 12, 8, 6
TALL, LOW = 9, 4


def as_json(made: board.Dashboard) -> str:
    """The text of a dashboard's file."""
    return json.dumps(made.build(), cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def dashboard(uid: str, title: str, description: str, refresh: str, since: str) -> board.Dashboard:
    """An empty dashboard that links to the others. `since`: the start of its time range at first, such as now-15m."""
    links = (
        board.DashboardLink("Dashboards").type(model.DashboardLinkType.DASHBOARDS).tags([TAG]).keep_time(keep_time=True)
    )
    return (
        board.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .readonly()
        .refresh(refresh)
        .time(since, "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(links)
    )


def query(expression: str, legend: str = BY_ARM, ref: str = "A", *, now: bool = False) -> prometheus.Dataquery:
    """A PromQL query over the time range. `now`: of this moment, as a table."""
    made = prometheus.Dataquery().datasource(SOURCE).expr(expression).legend_format(legend).ref_id(ref)
    return made.instant().format(prom.PromQueryFormat.TABLE) if now else made.range()


def by_name() -> board.FieldColor:
    """A colour by the series' name, for every series that is no listed strategy."""
    return board.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def coloured(panel: Coloured, *, dashes: bool = False) -> Coloured:
    """The panel with the colours of the strategies. `dashes`: lines of proxied routes are dashed."""
    for pattern, properties in colours.overrides(dashes=dashes):
        panel = panel.override_by_regexp(pattern, properties)
    return panel


def legend_below() -> common.VizLegendOptions:
    """A list of names below the panel."""
    return (
        common.VizLegendOptions()
        .display_mode(looks.LegendDisplayMode.LIST)
        .placement(looks.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
    )


def no_legend() -> common.VizLegendOptions:
    """No legend, for panels whose colours a bar of the same dashboard explains. The tooltip has the names."""
    return (
        common.VizLegendOptions()
        .display_mode(looks.LegendDisplayMode.HIDDEN)
        .placement(looks.LegendPlacement.RIGHT)
        .show_legend(show_legend=False)
    )


def lines(title: str, description: str, unit: str, *queries: prometheus.Dataquery) -> timeseries.Panel:
    """One line per series over time. Trials are short, so points are shown, and gaps are not bridged."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .min(0)
        .span(HALF)
        .height(TALL)
        .interval("1s")
        .color_scheme(by_name())
        .line_width(2)
        .fill_opacity(8)
        .show_points(looks.VisibilityMode.AUTO)
        .span_nulls(span_nulls=False)
        .legend(legend_below())
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI).sort(looks.SortOrder.DESCENDING))
    )
    for made in queries:
        panel = panel.with_target(made)
    return panel


def number(title: str, description: str, unit: str, *queries: prometheus.Dataquery) -> stat.Panel:
    """One value in large letters."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(QUARTER)
        .height(LOW)
        .color_mode(looks.BigValueColorMode.NONE)
        .graph_mode(looks.BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
    )
    for made in queries:
        panel = panel.with_target(made)
    return panel


def grid(title: str, description: str, *queries: prometheus.Dataquery) -> table.Panel:
    """A table. `joined` and `columns` merge several queries into one table."""
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(WHOLE)
        .height(TALL)
        .cell_height(looks.TableCellHeight.SM)
        .min_width(90)  # Grafana's 150 would push the last columns out of sight
        .filterable(filterable=False)
    )
    for made in queries:
        panel = panel.with_target(made)
    return panel


def thresholds(*steps: tuple[float | None, str]) -> board.ThresholdsConfig:
    """Colours from a value upwards; the first step's value is None."""
    return (
        board.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps([model.Threshold(value=value, color=colour) for value, colour in steps])
    )


def transformation(name: str, **options: Any) -> model.DataTransformerConfig:
    """One of Grafana's transformations."""
    return model.DataTransformerConfig(id_val=name, options=options)


def joined(field: str) -> model.DataTransformerConfig:
    """One row for each value of `field`, with the columns of all queries."""
    return transformation("joinByField", byField=field, mode="outer")


def columns(
    shown: Sequence[tuple[str, str]], ordered_by: str, *, descending: bool
) -> list[model.DataTransformerConfig]:
    """Transformations that keep these columns (field, heading) in this order, sorted by one of the headings."""
    return [
        transformation("filterFieldsByName", include={"names": [field for field, _ in shown]}),
        transformation(
            "organize",
            indexByName={field: place for place, (field, _) in enumerate(shown)},
            renameByName=dict(shown),
        ),
        transformation("sortBy", fields={}, sort=[{"field": ordered_by, "desc": descending}]),
    ]


def looks_like(unit: str, **custom: Any) -> list[model.DynamicConfigValue]:
    """Properties of one column: its unit, and others as keyword arguments, with ``_`` for ``.``."""
    values = [model.DynamicConfigValue(id_val="unit", value=unit)] if unit else []
    return values + [model.DynamicConfigValue(id_val=name.replace("_", "."), value=v) for name, v in custom.items()]


def ratio(**custom: Any) -> list[model.DynamicConfigValue]:
    """Properties of a column of ratios: an unknown one is an en dash.

    Without `decimals`, Grafana shows three significant digits, as the lab's reports do (@grafana/data, toFixed).
    """
    dash = model.SpecialValueMap(
        model.DashboardSpecialValueMapOptions(model.SpecialValueMatch.NULL_AND_NAN, model.ValueMappingResult(text="–"))
    )
    return looks_like("none", mappings=[dash], **custom)
