"""Costs of a strategy besides time: a small chart for each figure that is a cost."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from clientlab import units
from clientlab.reports.charts.scale import Scale, even, logarithmic
from clientlab.reports.charts.shapes import Bar, BarChart
from clientlab.reports.html.chart_data import ChartArm, ChartGroup
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import FIGURES

_FAR = 50.0
"""If the largest value is this many times the least, dots on a logarithmic axis replace the bars."""

_TICK_SIZES: dict[units.Unit, int] = {"bytes": 1 << 20}
"""Ticks are round multiples of this size. Without a size: of the unit itself."""


def charts(group: ChartGroup) -> list[BarChart]:
    """A chart of each cost that the trials of a group have."""
    shown = (one for one in FIGURES if one.cost and (one.column is None or group.shows(one, one.column.when)))
    return [bars for figure in shown if (bars := _chart(group, figure))]


def _chart(group: ChartGroup, figure: Figure) -> BarChart | None:
    size = _TICK_SIZES.get(figure.unit, 1)
    found = [(arm, [value / size for value in values]) for arm in group.arms if (values := figure.values(arm.trials))]
    if not found:
        return None

    def text(value: float) -> str:
        return units.of_unit(value * size, figure.unit)

    positive = [value for _, values in found for value in values if value > 0]
    far = bool(positive) and max(positive) / min(positive) > _FAR
    scale = (logarithmic(positive) if far else None) or even(positive)
    return BarChart(
        title=figure.title,
        rows=[_bar(arm, values, text, scale) for arm, values in found],
        ticks=scale.ticks_across(text),
        axis=f"{figure.description}{' (logarithmic)' if scale.log else ''}",
    )


def _bar(arm: ChartArm, values: list[float], text: Callable[[float], str], scale: Scale) -> Bar:
    median_value = median(values)
    rounds = ", ".join(map(text, values))
    return Bar(
        name=arm.name,
        look=arm.look,
        value=text(median_value),
        title=f"{arm.name}: median {text(median_value)} of {len(values)} rounds ({rounds})",
        length=None if scale.log else scale.place(median_value),
        dots=[scale.place(value) for value in values],
        first=arm.row.first,
    )
