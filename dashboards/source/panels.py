"""What the panels of both dashboards share: their types, units, colours and choices.

The title of a panel is a question. Its description says how the number is computed. A series is named by its arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from grafana_foundation_sdk.builders import barchart, bargauge, common, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as prom
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale

from clientlab.units import Unit

Panel = Builder[model.Panel]
Styled = TypeVar("Styled", timeseries.Panel, bargauge.Panel, stat.Panel, table.Panel, barchart.Panel, heatmap.Panel)
SOURCE = looks.DataSourceRef(type_val="prometheus", uid="clientlab-prometheus")
UNITS: dict[Unit, str] = {
    "seconds": "s",
    "per-second": "reqps",
    "bytes": "bytes",
    "bytes-per-second": "binBps",
    "count": "short",
    "share": "percentunit",
}
"""A figure's unit and Grafana's name for it."""
WHOLE, HALF, TALL, LOW = 24, 12, 9, 4
GREY = "#8e8e8e"
_DASHES = model.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]})


def start_dashboard(uid: str, title: str, description: str, refresh: str, since: str) -> board.Dashboard:
    """Return an empty dashboard with a link to the other one. Its time range starts at `since`, such as now-15m."""
    links = board.DashboardLink("Dashboards").type(model.DashboardLinkType.DASHBOARDS).tags(["clientlab"])
    return (
        board.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["clientlab"])
        .readonly()
        .refresh(refresh)
        .time(since, "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(links.keep_time(keep_time=True))
    )


def query(expression: str, legend: str = "{{legend}}", ref: str = "A", *, now: bool = False) -> prometheus.Dataquery:
    """Return a PromQL query over the time range or, with `now`, of this moment as a table."""
    made = prometheus.Dataquery().datasource(SOURCE).expr(expression).legend_format(legend).ref_id(ref)
    return made.instant().format(prom.PromQueryFormat.TABLE) if now else made.range()


def styled(
    panel: Styled, title: str, description: str, *queries: prometheus.Dataquery, unit: str = "", span: int = HALF
) -> Styled:
    """Set title, description, queries, unit and size of a panel."""
    panel = panel.title(title).description(description).datasource(SOURCE).span(span).height(TALL).unit(unit)
    for one in queries:
        panel = panel.with_target(one)
    return panel


def lines(title: str, description: str, unit: str, *queries: prometheus.Dataquery) -> timeseries.Panel:
    """Return a panel with one line per series, dashed if the route is proxied.

    Trials are short, so it shows points and does not bridge gaps.
    """
    panel = styled(timeseries.Panel(), title, description, *queries, unit=unit)
    return (
        panel.min(0)
        .interval("1s")
        .color_scheme(board.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
        .line_width(2)
        .fill_opacity(8)
        .show_points(looks.VisibilityMode.AUTO)
        .span_nulls(span_nulls=False)
        .legend(legend_below())
        .override_by_regexp(r"/\(([^)]*, )?proxy(-tls)?\)/", [_DASHES])
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI).sort(looks.SortOrder.DESCENDING))
    )


def heat(title: str, description: str, buckets: str) -> heatmap.Panel:
    """Return a heat map over time of a histogram of seconds, from a query of its buckets."""
    one = query(buckets, "{{le}}").format(prom.PromQueryFormat.HEATMAP)
    panel = styled(heatmap.Panel(), title, description, one)
    # In this scheme, rare values are visible on dark and on light pages.
    colours = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Cool").steps(64)
    return (
        panel.calculate(calculate=False)
        .y_axis(heatmap.YAxisConfig().unit("s"))
        .color(colours.scale(HeatmapColorScale.EXPONENTIAL).exponent(0.3))
        .cell_gap(0)
        .cell_values(heatmap.CellValues().unit("eps").decimals(2))
    )


def legend_below() -> common.VizLegendOptions:
    """Return a list of names below the panel."""
    return (
        common.VizLegendOptions()
        .display_mode(looks.LegendDisplayMode.LIST)
        .placement(looks.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
    )


def number(title: str, description: str, value: prometheus.Dataquery) -> stat.Panel:
    """Return a panel with each value of the query in large letters."""
    return (
        styled(stat.Panel(), title, description, value, unit="none")
        .height(LOW - 1)
        .color_mode(looks.BigValueColorMode.NONE)
        .graph_mode(looks.BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
    )


def grid(title: str, description: str, *queries: prometheus.Dataquery) -> table.Panel:
    """Return a table. Use `columns` to merge several queries."""
    panel = styled(table.Panel(), title, description, *queries, span=WHOLE)
    # Grafana's minimum of 150 pixels would push the last columns out of sight.
    return panel.cell_height(looks.TableCellHeight.SM).min_width(90).filterable(filterable=False)


def bars(title: str, description: str, unit: str, expression: str, order: str = "sort_desc") -> bargauge.Panel:
    """Return a panel with one bar per arm, the longest first or, with `order` ``sort``, the shortest.

    The expression has one value per legend, and each becomes a field of that name. Spaces are added to each name,
    because Grafana would cut off the end of a long one.
    """
    padded = f'label_replace(({expression}), "legend", "$1      ", "legend", "(.*)")'
    field = {"legend": "field.name", "Value": "field.value"}
    mappings = [{"fieldName": name, "handlerKey": key} for name, key in field.items()]
    panel = styled(bargauge.Panel(), title, description, query(f"{order}({padded})", now=True), unit=unit)
    return (
        panel.min(0)
        .height(TALL + 4)
        .orientation(looks.VizOrientation.HORIZONTAL)
        .display_mode(looks.BarGaugeDisplayMode.BASIC)
        .value_mode(looks.BarGaugeValueMode.TEXT)
        .show_unfilled(show_unfilled=False)
        .name_placement(looks.BarGaugeNamePlacement.LEFT)
        .sizing(looks.BarGaugeSizing.MANUAL)  # a few bars are as slim as many
        .min_viz_height(16)
        .max_viz_height(26)  # Grafana makes letters as large as this allows
        .color_scheme(board.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color("#56B4E9"))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
        .transformations(
            [
                transformation("filterFieldsByName", include={"names": list(field)}),
                transformation("rowsToFields", mappings=mappings),
            ]
        )
    )


def variable(name: str, label: str, query: str, *, multi: bool = True, newest: bool = False) -> board.QueryVariable:
    """Return a choice of label values. `multi` allows several or all; `newest` lists the latest first.

    Grafana selects the first value until the reader selects another.
    """
    made = (
        board.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": f"variable-{name}"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_DESC if newest else model.VariableSort.ALPHABETICAL_ASC)
        .multi(multi)
        .include_all(multi)
    )
    every = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    return made.current(every).all_value(".*") if multi else made


def thresholds(*steps: tuple[float | None, str]) -> board.ThresholdsConfig:
    """Return colours from a value upwards. The first step's value is None."""
    return (
        board.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps([model.Threshold(value=value, color=colour) for value, colour in steps])
    )


def transformation(name: str, **options: Any) -> model.DataTransformerConfig:
    """Return one of Grafana's transformations."""
    return model.DataTransformerConfig(id_val=name, options=options)


def columns(
    shown: Sequence[tuple[str, str]], ordered_by: str, *, descending: bool = False, joined_by: str = ""
) -> list[model.DataTransformerConfig]:
    """Keep these columns (field, heading) in this order, and sort the rows by one of the headings.

    `joined_by` merges all queries into one row per value of that field.
    """
    places = {field: place for place, (field, _) in enumerate(shown)}
    return [
        *([transformation("joinByField", byField=joined_by, mode="outer")] if joined_by else []),
        transformation("filterFieldsByName", include={"names": list(places)}),
        transformation("organize", indexByName=places, renameByName=dict(shown)),
        transformation("sortBy", fields={}, sort=[{"field": ordered_by, "desc": descending}]),
    ]


def looks_like(unit: str = "", **custom: Any) -> list[model.DynamicConfigValue]:
    """Return properties of a column: its unit, and others as keyword arguments with ``_`` for ``.``."""
    values = [model.DynamicConfigValue(id_val="unit", value=unit)] if unit else []
    return values + [model.DynamicConfigValue(id_val=name.replace("_", "."), value=v) for name, v in custom.items()]
