"""What the panels of both dashboards share: their types, units, colours and choices.

The title of a panel is a question. Its description says how the number is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from grafana_foundation_sdk.builders import (
    common,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as prom
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale

Panel = Builder[model.Panel]
Styled = TypeVar("Styled", timeseries.Panel, stat.Panel, table.Panel, heatmap.Panel)
SOURCE = looks.DataSourceRef(type_val="prometheus", uid="clientlab-prometheus")
WHOLE, HALF, TALL, LOW = 24, 12, 9, 4
RUN = 'run="$run"'
COLOURED: dict[str, Any] = {"custom_cellOptions": {"type": "color-text"}}
"""Of a column whose texts have the colours of `coloured`."""
_COLOURS = [
    *("#3cb44b", "#4363d8", "#f58231", "#e6194b", "#42d4f4", "#911eb4", "#e8b600"),
    *("#f032e6", "#9a6324", "#469990", "#808000", "#a9a9a9", "#dc8fb5", "#7a86ff"),
    *("#ff9f80", "#00c896"),
]
"""Of arms: unlike each other, on dark and on light pages."""
_MOST_COLOURED = 2 * len(_COLOURS)
_REFRESHES = ["1s", "2s", "5s", "10s", "30s", "1m", "5m"]
_DASHES = model.DynamicConfigValue(
    id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]}
)


def start_dashboard(
    name: str, description: str, refresh: str, since: str
) -> board.Dashboard:
    """Return an empty dashboard. Its time range starts at `since`, such as now-15m."""
    return (
        board.Dashboard(f"clientlab: {name}")
        .uid(f"clientlab-{name}")
        .description(description)
        .tags(["clientlab"])
        .readonly()
        # Grafana sets no timer for an interval that its picker does not offer.
        .timepicker(board.TimePicker().refresh_intervals(_REFRESHES))
        .refresh(refresh)
        .time(since, "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
    )


def link(title: str, url: str) -> board.DashboardLink:
    """Return a link of a dashboard. Grafana fills in variables such as ${run}."""
    return board.DashboardLink(title).type(model.DashboardLinkType.LINK).url(url)


def query(
    expression: str, legend: str = "{{legend}}", ref: str = "A", *, now: bool = False
) -> prometheus.Dataquery:
    """Return a PromQL query over the time range or, with `now`, of its end
    as a table.
    """
    made = prometheus.Dataquery().datasource(SOURCE).expr(expression)
    made = made.legend_format(legend).ref_id(ref)
    return made.instant().format(prom.PromQueryFormat.TABLE) if now else made.range()


def styled(
    panel: Styled,
    title: str,
    description: str,
    *queries: prometheus.Dataquery,
    unit: str = "",
    span: int = HALF,
) -> Styled:
    """Set title, description, queries, unit and size of a panel."""
    panel = panel.title(title).description(description).datasource(SOURCE)
    panel = panel.span(span).height(TALL).unit(unit)
    for one in queries:
        panel = panel.with_target(one)
    return panel


def lines(
    title: str, description: str, unit: str, *queries: prometheus.Dataquery
) -> timeseries.Panel:
    """Return a panel with one line per series, dashed if the route is proxied.

    Trials are short, so it shows points and does not bridge gaps.
    """
    panel = styled(timeseries.Panel(), title, description, *queries, unit=unit)
    modes = common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI)
    legend = (
        common.VizLegendOptions()
        .display_mode(looks.LegendDisplayMode.LIST)
        .placement(looks.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
    )
    return (
        panel.min(0)
        .interval("1s")
        .color_scheme(board.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC))
        .line_width(2)
        .fill_opacity(8)
        .show_points(looks.VisibilityMode.AUTO)
        .span_nulls(span_nulls=False)
        .legend(legend)
        .override_by_regexp(r"/\(([^)]*, )?proxy(-tls)?\)/", [_DASHES])
        .tooltip(modes.sort(looks.SortOrder.DESCENDING))
    )


def arm_lines(
    title: str, description: str, unit: str, expression: str
) -> timeseries.Panel:
    """Return a panel with a line for each arm of the run, from an expression by legend.

    The number of an arm decides its colour, so that it has one colour on all panels.
    """
    arms = f"max by (legend, number) (clientlab_run_arm_info{{{RUN}}})"
    numbered = f"({expression}) * on (legend) group_left (number) {arms}"
    legend = "{{number}} {{legend}}"
    panel = lines(
        title, description, unit, query(f"{numbered} or {arms} * NaN", legend)
    )
    for place in range(_MOST_COLOURED):
        colour = _COLOURS[place % len(_COLOURS)]
        fixed = looks_like(color={"mode": "fixed", "fixedColor": colour})
        panel = panel.override_by_regexp(f"/^{place + 1:02} /", fixed)
    return panel


def heat(title: str, description: str, buckets: str) -> heatmap.Panel:
    """Return a heat map over time of a histogram of seconds, from a query of its
    buckets.
    """
    one = query(buckets, "{{le}}").format(prom.PromQueryFormat.HEATMAP)
    panel = styled(heatmap.Panel(), title, description, one)
    # In this scheme, rare values are visible on dark and on light pages.
    colours = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Cool")
    colours = colours.steps(64).scale(HeatmapColorScale.EXPONENTIAL).exponent(0.3)
    return (
        panel.calculate(calculate=False)
        .y_axis(heatmap.YAxisConfig().unit("s"))
        .color(colours)
        .cell_gap(0)
        .cell_values(heatmap.CellValues().unit("eps").decimals(2))
    )


def grid(
    title: str,
    description: str,
    shown: Sequence[tuple[str, str]],
    *queries: prometheus.Dataquery,
    by: str = "",
    descending: bool = False,
) -> table.Panel:
    """Return a table of these columns (field, heading), ordered by the first of them.

    `by`: a field by which several queries become one row.
    """
    panel = styled(table.Panel(), title, description, *queries, span=WHOLE)
    places = {name: place for place, (name, _) in enumerate(shown)}
    steps = [_step("joinByField", byField=by, mode="outer")] if by else []
    steps += [
        _step("filterFieldsByName", include={"names": list(places)}),
        _step("organize", indexByName=places, renameByName=dict(shown)),
        _step("sortBy", fields={}, sort=[{"field": shown[0][1], "desc": descending}]),
    ]
    return _plain(panel).transformations(steps)


def matrix(
    title: str, description: str, shown: tuple[str, str, str], one: prometheus.Dataquery
) -> table.Panel:
    """Return a table from a query. `shown`: labels of its rows, columns and cells."""
    row, column, cell = shown
    panel = styled(table.Panel(), title, description, one, span=WHOLE)
    steps = [
        _step("groupingToMatrix", rowField=row, columnField=column, valueField=cell),
        _step("organize", renameByName={f"{row}\\{column}": row}),
    ]
    return _plain(panel).transformations(steps)


def _plain(panel: table.Panel) -> table.Panel:
    # Grafana's minimum of 150 pixels would push the last columns out of sight.
    return (
        panel.cell_height(looks.TableCellHeight.SM)
        .min_width(60)
        .filterable(filterable=False)
    )


def _step(name: str, **options: Any) -> model.DataTransformerConfig:
    """Return one of Grafana's transformations."""
    return model.DataTransformerConfig(id_val=name, options=options)


def coloured(colours: Mapping[str, str]) -> list[model.ValueMapping]:
    """Return value mappings that colour texts that match a pattern."""
    options = [
        model.DashboardRegexMapOptions(
            pattern=pattern, result=model.ValueMappingResult(color=colour, index=place)
        )
        for place, (pattern, colour) in enumerate(colours.items())
    ]
    return [model.RegexMap(options=one) for one in options]


def looks_like(unit: str = "", **custom: Any) -> list[model.DynamicConfigValue]:
    """Return properties of a column: its unit, and others with ``_`` for ``.``."""
    values = [model.DynamicConfigValue(id_val="unit", value=unit)] if unit else []
    return values + [
        model.DynamicConfigValue(id_val=name.replace("_", "."), value=value)
        for name, value in custom.items()
    ]


def variable(name: str, label: str, query: str, regex: str = "") -> board.QueryVariable:
    """Return a choice, in the order of the query.

    Without a label, readers do not see it.

    Grafana selects the first value until the reader selects another.
    """
    hide = model.VariableHide.DONT_HIDE if label else model.VariableHide.HIDE_VARIABLE
    made = board.QueryVariable(name).label(label or name).hide(hide).datasource(SOURCE)
    made = made.query({"query": query, "refId": f"variable-{name}"}).regex(regex)
    made = made.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return made.sort(model.VariableSort.DISABLED)
