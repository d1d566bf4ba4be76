"""Draws every chart with matplotlib: in two widths for a page, and below each other in
a picture file.

Lengths are pixels. Texts stay texts, and a page replaces the colours by those of its
style sheet.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from clientlab import units
from clientlab.errors import LabError
from clientlab.reports.charts import (
    HUES,
    RATIOS_NOTE,
    TIMES_NOTE,
    comparisons,
    log_limits,
    sweeps_of,
    times,
)
from clientlab.reports.rows import groups_of
from clientlab.reports.sections import ChartRow, RowChart, Sweep
from clientlab.results.document import Run
from clientlab.statistics.decisions import EQUAL
from clientlab.text import make_printable

INK, SOFT, GROUND, TRACK, GRID = "#1c2024", "#565e68", "#ffffff", "#f3f5f7", "#dde2e7"
_CSS_NAMES = {
    INK: "ink",
    SOFT: "soft",
    GROUND: "ground",
    TRACK: "track",
    GRID: "grid",
} | {hue: f"hue-{index}" for index, hue in enumerate(HUES)}
_WIDE, _NARROW = 1100, 360
_LETTER = 7.9
_TRACK_HEIGHT = 22
_PLOT_HEIGHT = 300
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 13.5,
    "text.color": INK,
    "grid.color": GRID,
    "axes.facecolor": TRACK,
    "axes.labelcolor": SOFT,
    "axes.labelsize": 12.5,
    "axes.axisbelow": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.spines.bottom": False,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
}


def svg(chart: RowChart | Sweep, *, narrow: bool) -> str:
    """Return a chart as an SVG element of a page."""
    width, height = _NARROW if narrow else _WIDE, _height(chart, narrow=narrow)
    with _style(salt=repr((chart, narrow))):
        figure = Figure((width / 72, height / 72), dpi=72)
        _draw(chart, figure, 0, narrow=narrow)
        file = io.StringIO()
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", facecolor="none", metadata=metadata)
    text = file.getvalue()
    text = re.sub(
        r"<defs>\s*<style.*?</defs>",
        "",
        text[text.index("<svg") :],
        count=1,
        flags=re.DOTALL,
    )
    text = re.sub(
        r' id="[A-Za-z.]+(2d)?_\d+"| (width|height)="[\d.]+pt"| xmlns:xlink="[^"]*"',
        "",
        text,
    )
    text = re.sub(
        "(?<=: )#[0-9a-f]{6}",
        lambda found: f"var(--{_CSS_NAMES.get(found[0], 'ink')})",
        text,
    )
    return re.sub(
        r"\s*\n\s*", " ", re.sub("'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", text)
    )


def write(run: Run, path: Path) -> None:
    """Draw how a run's arms compare, how long they take, and its sweeps, as PNG or SVG.

    Raises LabError, OSError.
    """
    groups = groups_of(run)
    charts: list[RowChart | Sweep] = [
        *comparisons(run, groups),
        *times(run, groups),
        *sweeps_of(run),
    ]
    if not charts:
        raise LabError(f"chart {path}: run {run.run} has no finished trial to draw")
    notes = [
        "\n".join(_folded(note, 160, 3) for note in chart.notes) for chart in charts
    ]
    rooms = [
        _height(one) + 70 + 18 * note.count("\n")
        for one, note in zip(charts, notes, strict=True)
    ]
    height = sum(rooms)
    with _style(salt=run.run):
        figure = Figure((_WIDE / 72, height / 72), dpi=72)
        figure.text(
            0,
            1 + 12 / height,
            _folded(run.experiment.question, 90, 3),
            fontsize=17,
            weight="bold",
        )
        top = 0.0
        for chart, note, room in zip(charts, notes, rooms, strict=True):
            figure.text(
                0,
                1 - (top + 20) / height,
                _folded(chart.title, 110),
                fontsize=14.5,
                weight="bold",
            )
            _draw(chart, figure, top + 30)
            figure.text(
                0,
                1 - (top + 34 + _height(chart)) / height,
                note,
                va="top",
                color=SOFT,
                fontsize=12.5,
            )
            top += room
        if any(isinstance(one, RowChart) for one in charts):
            figure.text(
                0,
                0,
                _folded(f"{RATIOS_NOTE} {TIMES_NOTE}", 160, 6),
                va="top",
                color=SOFT,
                fontsize=12.5,
            )
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(
            path,
            dpi=144,
            facecolor=GROUND,
            bbox_inches="tight",
            pad_inches=0.3,
            metadata=metadata,
        )
        if path.suffix == ".svg":  # no XML may hold a control character
            path.write_text(
                make_printable(path.read_text(encoding="utf-8")), encoding="utf-8"
            )


@contextmanager
def _style(salt: str) -> Iterator[None]:
    """Set colours and sizes.

    The same `salt` gives the elements of an SVG the same names.
    """
    with mpl.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph .* missing"
        )  # a browser has the glyph, a PNG has a box
        yield


def _height(chart: RowChart | Sweep, *, narrow: bool = False) -> int:
    """Return the height of a chart without its title and notes."""
    if isinstance(chart, RowChart):
        return _row_height(chart, narrow=narrow) * len(chart.rows) + 22
    return _PLOT_HEIGHT + 75 + (38 if narrow else 20) * len(chart.curves)


def _has_texts_beside(chart: RowChart, *, narrow: bool) -> bool:
    """Return whether texts stand beside the marks.

    On a phone, and if a name is long, they stand above.
    """
    return not narrow and max(len(row.name) for row in chart.rows) <= 34


def _row_height(chart: RowChart, *, narrow: bool) -> int:
    """Return the height of a row, with the room for the lines above its marks."""
    if _has_texts_beside(chart, narrow=narrow):
        return 30
    return 24 + 20 * max(len(_name_lines(row, narrow=narrow)) for row in chart.rows)


def _name_lines(row: ChartRow, *, narrow: bool) -> list[str]:
    """Return the lines of a name above the marks; the last one is empty if the row's
    text needs its own line.
    """
    letters = int((_NARROW if narrow else _WIDE) / _LETTER)
    lines = _folded(row.name, letters, 3).split("\n")
    return lines if len(lines[-1]) + len(row.text) <= letters - 3 else [*lines, ""]


def _draw(
    chart: RowChart | Sweep, figure: Figure, top: float, *, narrow: bool = False
) -> None:
    """Draw a chart below `top`."""
    across, down = _NARROW if narrow else _WIDE, figure.get_figheight() * 72
    if isinstance(chart, Sweep):
        place = (
            58 / across,
            1 - (top + 26 + _PLOT_HEIGHT) / down,
            1 - 72 / across,
            _PLOT_HEIGHT / down,
        )
        _draw_curves(figure.add_axes(place), chart)
        return
    left = right = 0.0
    if _has_texts_beside(chart, narrow=narrow):
        left, right = 280.0, 14 + _LETTER * max(len(row.text) for row in chart.rows)
    row_height = _row_height(chart, narrow=narrow)
    height = row_height * len(chart.rows)
    axes = figure.add_axes(
        (
            left / across,
            1 - (top + height) / down,
            1 - (left + right) / across,
            height / down,
        )
    )
    axes.set_xscale("log" if chart.log else "linear")
    axes.set_xlim(chart.low, chart.high)
    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.grid(axis="x")
    gap = row_height - _TRACK_HEIGHT
    places = [
        index * row_height + gap + _TRACK_HEIGHT / 2 for index in range(len(chart.rows))
    ]
    gaps = np.array(places) - row_height / 2
    axes.hlines(gaps, chart.low, chart.high, color=GROUND, linewidth=gap, zorder=0.8)
    _draw_texts(axes, chart, places, narrow=narrow)
    _draw_marks(axes, chart, places)
    _set_ticks(axes.xaxis, 4 if narrow else 7, chart.tick)
    _separate_labels(axes)


def _draw_texts(
    axes: Axes, chart: RowChart, places: list[float], *, narrow: bool
) -> None:
    """Draw name and text of each row."""
    above = _TRACK_HEIGHT / 2 + 11
    for row, place in zip(chart.rows, places, strict=True):
        style: dict[str, Any] = {
            "xycoords": axes.get_yaxis_transform(),
            "textcoords": "offset points",
            "annotation_clip": False,
            "va": "center",
            "weight": "bold" if row.first else "normal",
        }
        if _has_texts_beside(chart, narrow=narrow):
            axes.annotate(row.name, (0, place), (-10, 0), ha="right", **style)
            axes.annotate(row.text, (1, place), (10, 0), **style)
        else:
            for height, line in enumerate(reversed(_name_lines(row, narrow=narrow))):
                axes.annotate(line, (0, place), (0, above + 18 * height), **style)
            axes.annotate(row.text, (1, place), (0, above), ha="right", **style)


def _draw_marks(axes: Axes, chart: RowChart, places: list[float]) -> None:
    if chart.ratios:
        axes.axvspan(1 / EQUAL, EQUAL, color=SOFT, alpha=0.25, linewidth=0, zorder=0.6)
        axes.axvline(1, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=0.7)
    rows = list(zip(chart.rows, places, strict=True))
    for row, place in rows:
        if row.heights:
            bottom = place + _TRACK_HEIGHT / 2
            tops = bottom - _TRACK_HEIGHT * np.array(row.heights)
            axes.stairs(
                tops,
                chart.edges,
                baseline=bottom,
                fill=True,
                color=row.colour,
                alpha=0.75,
            )
    ends = [math.nan if row.bar is None else row.bar for row, _ in rows]
    axes.hlines(
        places,
        chart.low,
        ends,
        colors=[row.colour for row, _ in rows],
        linewidth=_TRACK_HEIGHT - 3,
    )
    intervals = np.array([row.interval or (math.nan, math.nan) for row, _ in rows])
    lows, highs = np.clip(intervals, 0.9 * chart.low, 1.1 * chart.high).T
    axes.hlines(places, lows, highs, color=INK, linewidth=1.5)
    axes.scatter(
        [*lows, *highs], [*places, *places], s=81, marker="|", color=INK, linewidths=1.5
    )
    dots = [
        (x, place, row.colour if row.bar is None else INK)
        for row, place in rows
        for x in row.dots
    ]
    rings = [(x, place, GROUND) for row, place in rows for x in row.rings]
    for marks, edge in ((dots, GROUND), (rings, INK)):
        if marks:
            x, y, colours = zip(*marks, strict=True)
            axes.scatter(
                x,
                y,
                s=70 if chart.ratios else 40,
                c=colours,
                edgecolors=edge,
                linewidths=1.3,
                zorder=3,
            )


def _draw_curves(axes: Axes, sweep: Sweep) -> None:
    seconds = [
        value
        for curve in sweep.curves
        for point in curve.points
        for value in point.rounds.values()
    ]
    x_log, y_log = sweep.numeric and _is_far(*sweep.ticks), _is_far(*seconds)
    axes.set_xscale("log" if x_log else "linear")
    axes.set_yscale("log" if y_log else "linear")
    axes.set_ylim(log_limits(seconds) if y_log else (0, 1.05 * max(seconds)))
    axes.margins(x=0.02)
    axes.grid()
    width = axes.get_window_extent().width
    for index, curve in enumerate(sweep.curves):
        style = ("-", "--", ":", "-.")[
            sum(one.colour == curve.colour for one in sweep.curves[:index]) % 4
        ]
        places = [point.place for point in curve.points]
        ends = np.array(
            [point.typical.interval or (math.nan, math.nan) for point in curve.points]
        )
        typical, label = (
            [point.typical.value for point in curve.points],
            _folded(curve.label, int(width / _LETTER), 2),
        )
        axes.plot(
            places, typical, style, color=curve.colour, linewidth=2.2, label=label
        )
        axes.fill_between(
            places, ends[:, 0], ends[:, 1], color=curve.colour, alpha=0.17, linewidth=0
        )
        dots = [
            (one.place, value) for one in curve.points for value in one.rounds.values()
        ]
        x, y = zip(*dots, strict=True)
        axes.scatter(x, y, s=20, color=curve.colour, zorder=3)
        if curve.knee:
            at = [curve.knee.place], [curve.knee.typical.value]
            axes.scatter(
                *at, facecolors="none", s=120, edgecolors=INK, linewidths=1.5, zorder=4
            )
    axes.set_xlabel(f"{sweep.axis}{' (logarithmic)' if x_log else ''}")
    title = f"{sweep.seconds}{' (logarithmic)' if y_log else ''}"
    axes.annotate(
        title,
        (0, 1),
        (-58, 8),
        "axes fraction",
        "offset points",
        color=SOFT,
        fontsize=12.5,
    )
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(-58 / width, -46 / _PLOT_HEIGHT),
        borderaxespad=0,
        borderpad=0,
    )
    _set_ticks(axes.yaxis, 6, units.time)
    texts = [
        _shortened(value) if sweep.numeric else _folded(value, 14)
        for value in sweep.ticks.values()
    ]
    axes.set_xticks(list(sweep.ticks), texts)
    axes.xaxis.set_minor_locator(NullLocator())
    _separate_labels(axes)


def _separate_labels(axes: Axes) -> None:
    """Draw the first and the last label of the x axis inward, and hide ticks whose
    labels would cover the next one.
    """
    track = axes.get_window_extent().width
    free = math.inf  # the pixels left of the labels that are shown
    ticks = zip(
        axes.get_xticks(), axes.get_xticklabels(), axes.get_xgridlines(), strict=True
    )
    for value, label, line in reversed([*ticks]):
        share = axes.transLimits.transform(axes.transScale.transform((value, 1)))[0]
        if share > 1.001:
            continue  # it is not drawn
        side = "left" if share < 0.07 else "right" if share > 0.93 else "center"
        width = _LETTER * max(map(len, label.get_text().split("\n")))
        left = share * track - width * {"left": 0.0, "center": 0.5, "right": 1.0}[side]
        is_free = left + width < free
        label.set(horizontalalignment=side, visible=is_free)
        line.set_visible(is_free)
        if is_free:
            free = left - _LETTER


def _is_far(*values: float) -> bool:
    """Return whether an axis for these values is better logarithmic."""
    return min(values) > 0 and max(values) >= 10 * min(values)


def _set_ticks(axis: Axis, most: int, text: Callable[[float], str]) -> None:
    """Set about `most` ticks at round values."""
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and high > 10 * low:
        decades = math.log10(high / low)
        steps = (
            (1.0, 2.0, 5.0)
            if 3 * decades < most + 2
            else (1.0, 3.0)
            if 2 * decades < most + 2
            else (1.0,)
        )
        axis.set_major_locator(LogLocator(subs=steps, numticks=most))
    else:
        axis.set_major_locator(MaxNLocator(most, steps=(1, 2, 5, 10)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: _shortened(text(value)))


def _shortened(number: str) -> str:
    """Return a number without trailing zeros: ``5 ms`` for ``5.00 ms``."""
    return re.sub(r"(\.\d*?[1-9])0+(?!\d)|\.0+(?!\d)", r"\1", number)


def _folded(text: str, letters: int, most: int = 1) -> str:
    """Return the text on at most `most` lines of that many letters."""
    lines = textwrap.wrap(text, letters)
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1][: letters - 1]}…"]
    return "\n".join(lines)
