"""The table of docs/figures.md, from the list of figures."""

from __future__ import annotations

from clientlab.cli.listing import markdown
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import FIGURES


def figure_table() -> str:
    """Every figure: its names, meaning, unit, direction, column of the run's table, and metric."""
    return markdown([_row(figure) for figure in FIGURES])


def _row(figure: Figure) -> dict[str, str]:
    return {
        "key": f"`{figure.key}`",
        "full name": f"`{figure.name}`",
        "meaning": figure.description,
        "unit": figure.unit,
        "better": "less" if figure.less_is_better else "more",
        "column": _column(figure),
        "metric": _metric(figure),
    }


def _column(figure: Figure) -> str:
    if figure.column is None:
        return "–"
    when = {
        "always": "",
        "known": ", where it is known",
        "large bodies": ", for bodies of 1 MiB or more",
        "durations": ", for trials of a duration",
        "retries": ", beside strategies that retry",
    }
    return figure.column.heading + when[figure.column.when]


def _metric(figure: Figure) -> str:
    if figure.metric is None:
        return "–"
    quantile = f'{{quantile="{figure.metric.quantile}"}}' if figure.metric.quantile else ""
    return f"`clientlab_run_{figure.metric.name}{quantile}`"
