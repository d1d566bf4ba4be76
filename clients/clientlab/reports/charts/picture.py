"""The charts of times and sweeps as a picture file: PNG or SVG, drawn by matplotlib."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from clientlab.analysis.typical import Floats
from clientlab.errors import LabError
from clientlab.reports.charts import bars, forest, sweeps
from clientlab.reports.charts.chart_data import DASHES, HUES, Look, chart_groups
from clientlab.reports.charts.shapes import BarChart, Line, LineChart, Tick
from clientlab.reports.files import CHART
from clientlab.reports.rows import groups_of
from clientlab.results.document import Run

_INK, _SOFT = "#1c2024", "#565e68"
_WIDTH_INCHES = 9.0
_BAR_INCHES = 0.32
_LINE_INCHES = 0.17
_HEAD_INCHES = 0.65
_PLOT_INCHES = 3.3
_LETTERS = 115  # of a note on one line
_NOTE_LINES = 6
_NAME_LETTERS = 36  # of a bar's name on one of its two lines
_TICK_LETTERS = 14
_TITLE_LETTERS = 85
_DPI = 144
_DOT: dict[str, Any] = {"markersize": 4, "markeredgecolor": "white", "markeredgewidth": 0.7}


def write(run: Run, path: Path) -> None:
    """Draw a run's charts as PNG or SVG, by the path's ending. Raises LabError."""
    drawn = charts_of(run)
    if not drawn:
        raise LabError(f"chart {path}: run {run.run} has no finished trial to draw")
    save(run.experiment.question, drawn, path, run.run)


def save(title: str, drawn: list[BarChart | LineChart], path: Path, salt: str) -> None:
    """Draw charts below each other. `salt`: of names within an SVG, which are the same each time. Raises LabError."""
    with (
        CHART.writing(path),
        mpl.rc_context({"svg.hashsalt": salt, "font.size": 9.5, "text.parse_math": False}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the picture has a box instead
        metadata = {"Date": None} if path.suffix == ".svg" else None
        drawing(title, drawn).savefig(path, dpi=_DPI, metadata=metadata)


def charts_of(run: Run) -> list[BarChart | LineChart]:
    """Who is slower, how long each arm takes, and the sweeps."""
    compared = forest.comparisons(run, chart_groups(run))
    return [*compared, *bars.times(run, groups_of(run)), *sweeps.charts(run)]


def drawing(title: str, charts: list[BarChart | LineChart]) -> Drawing:
    """The charts below each other. The last of the bars, and of the ratios, explains what it shows."""
    last = {chart.band is None: index for index, chart in enumerate(charts) if isinstance(chart, BarChart)}
    below = [_below(chart, explained=index in last.values()) for index, chart in enumerate(charts)]
    inches = [_inches(chart) + len(lines) * _LINE_INCHES for chart, lines in zip(charts, below, strict=True)]
    found = Drawing(figsize=(_WIDTH_INCHES, sum(inches) + 0.4), layout="constrained")
    found.suptitle(_folded(title, _TITLE_LETTERS, 3), fontsize=11, fontweight="bold")
    panels = found.subplots(len(charts), 1, squeeze=False, gridspec_kw={"height_ratios": inches})[:, 0]
    for panel, chart, lines in zip(panels, charts, below, strict=True):
        if isinstance(chart, LineChart):
            _lines(panel, chart, lines)
        else:
            _bars(panel, chart, lines)
    return found


def _below(chart: BarChart | LineChart, *, explained: bool) -> list[str]:
    """The lines of text below a chart: its axis and its notes."""
    if isinstance(chart, LineChart):
        axis, explanation = chart.x_axis, ""
    else:
        axis, explanation = chart.axis, bars.NOTE if chart.band is None else forest.NOTE
    notes = " ".join([*chart.notes, *([explanation] if explained else [])])
    return [_folded(axis, _LETTERS, 1), *_folded(notes, _LETTERS, _NOTE_LINES).splitlines()]


def _inches(chart: BarChart | LineChart) -> float:
    if isinstance(chart, LineChart):
        return _PLOT_INCHES + len(chart.lines) * _LINE_INCHES
    return _HEAD_INCHES + len(chart.rows) * _BAR_INCHES


def _bars(panel: Axes, chart: BarChart, below: list[str]) -> None:
    _frame(panel, chart.title, chart.ticks, below)
    if chart.band:
        panel.axvspan(*chart.band, color=_SOFT, alpha=0.25, linewidth=0)
    if chart.line is not None:
        panel.axvline(chart.line, color=_INK, linewidth=1, linestyle="--")
    for index, row in enumerate(chart.rows):
        panel.barh(index, row.length or 0.0, color=_colour(row.look), height=0.72)
        if row.span:
            panel.plot(row.span, [index] * 2, color=_INK, linewidth=1, marker="|", markersize=6)
        panel.plot(row.dots, [index] * len(row.dots), "o", color=_INK, **_DOT)
        weight = "bold" if row.first else "normal"
        name = _folded(row.name, _NAME_LETTERS, 2)
        panel.text(-1, index, name, va="center", ha="right", color=_INK, fontweight=weight)
        panel.text(101, index, row.value, va="center", color=_INK, fontweight=weight)
    panel.set_yticks([])
    panel.set_ylim(len(chart.rows) - 0.4, -0.6)


def _lines(panel: Axes, chart: LineChart, below: list[str]) -> None:
    _frame(panel, chart.title, chart.x_ticks, below, above=len(chart.lines))
    for line in chart.lines:
        _line(panel, line)
    panel.set_ylim(0, 100)
    panel.set_yticks([tick.position for tick in chart.y_ticks], [tick.text for tick in chart.y_ticks])
    panel.set_ylabel(chart.y_axis)
    panel.grid(axis="y", alpha=0.25)
    # Above the plot, a line for each: within it, the names of many lines would hide them.
    panel.legend(
        frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0, fontsize=8.5, labelspacing=0.2
    )


def _line(panel: Axes, line: Line) -> None:
    colour, dash = _colour(line.look), DASHES[line.look.dash]
    draw = partial(panel.plot, color=colour, clip_on=False)
    draw(*_columns(line.points), linestyle=(0, dash) if dash else "-", label=_folded(line.name, _LETTERS, 1))
    draw(*_columns(line.dots), "o", **_DOT)
    if line.ring:
        draw(*_columns([line.ring]), "o", markersize=11, fillstyle="none")
    if line.band:
        across, low, high = _columns(line.band)
        panel.fill_between(across, low, high, color=colour, alpha=0.17, linewidth=0)


def _columns(points: Sequence[tuple[float | None, ...]]) -> list[Floats]:
    return list(np.array(points, dtype=np.float64).T)


def _frame(panel: Axes, title: str, ticks: list[Tick], below: list[str], above: int = 0) -> None:
    """Title, x axis and the lines of text below it. `above`: how many lines of a legend the title leaves room for."""
    pad = 6 + above * _LINE_INCHES * 72
    panel.set_title(_folded(title, _LETTERS, 1), loc="left", fontsize=9.5, fontweight="bold", pad=pad)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_axisbelow(True)
    panel.set_xlim(0, 100)
    panel.set_xticks([tick.position for tick in ticks], [_folded(tick.text, _TICK_LETTERS, 2) for tick in ticks])
    panel.grid(axis="x", alpha=0.25)
    panel.set_xlabel("\n".join(below), color=_SOFT, fontsize=8.5)


def _folded(text: str, letters: int, most: int) -> str:
    """The text on at most so many lines: long names would leave no room for the chart."""
    lines = textwrap.wrap(text, letters)
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1][: letters - 1]}…"]
    return "\n".join(lines)


def _colour(look: Look) -> str:
    return HUES[look.colour].light
