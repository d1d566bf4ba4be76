"""Draws every chart with matplotlib, for pages in two widths and for picture files.

Lengths are pixels. Texts stay texts, and a page replaces the colours by those of its
style sheet.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
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
    RATIOS_NOTE,
    TIMES_NOTE,
    comparisons,
    log_limits,
    times,
)
from clientlab.reports.rows import groups_of
from clientlab.reports.sections import HUES, ChartRow, Curve, RowChart, Sweep
from clientlab.reports.sweeps import sweeps_of
from clientlab.results.document import Run
from clientlab.statistics.decisions import EQUAL
from clientlab.text import make_printable

INK = "#1c2024"
SOFT = "#565e68"
GROUND = "#ffffff"
TRACK = "#f3f5f7"
GRID = "#dde2e7"
_CSS_NAMES = {hue: f"hue-{index}" for index, hue in enumerate(HUES)} | {
    INK: "ink",
    SOFT: "soft",
    GROUND: "ground",
    TRACK: "track",
    GRID: "grid",
}
_DELETED = (
    r"(?s)<defs>\s*<style.*?</defs>"
    r'| id="[A-Za-z.]+(2d)?_\d+"| (width|height)="[\d.]+pt"| xmlns:xlink="[^"]*"'
)
_WIDE = 1100
_NARROW = 360
_LETTER = 7.9
_TRACK_HEIGHT = 22
_PLOT_HEIGHT = 300
_NO_INTERVAL = (math.nan, math.nan)
_SCALE_NOTES = {"log": " (logarithmic)", "linear": ""}
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
    width = _NARROW if narrow else _WIDE
    file = io.StringIO()
    with _style(salt=repr((chart, narrow))):
        figure = Figure((width / 72, _height(chart, width) / 72), dpi=72)
        _draw(chart, figure, 0, width)
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", facecolor="none", metadata=metadata)
    text = file.getvalue()
    _, tag, rest = text.partition("<svg")
    text = re.sub(_DELETED, "", tag + rest)
    text = re.sub("(?<=: )#[0-9a-f]{6}", _css_variable, text)
    text = re.sub("'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", text)
    return re.sub(r"\s*\n\s*", " ", text)


def _css_variable(colour: re.Match[str]) -> str:
    return f"var(--{_CSS_NAMES.get(colour[0], 'ink')})"


def write(run: Run, path: Path) -> None:
    """Draw how a run's arms compare, how long they take, and its sweeps.

    The file is a PNG or an SVG. Raises LabError, OSError.
    """
    groups = groups_of(run)
    charts: list[RowChart | Sweep] = [
        *comparisons(run, groups),
        *times(run, groups),
        *sweeps_of(run),
    ]
    if not charts:
        raise LabError(f"chart {path}: run {run.run} has no finished trial to draw")
    placed = []
    height = 0
    for chart in charts:
        note = "\n".join(_folded(note, 160, 3) for note in chart.notes)
        placed.append((chart, note, height))
        height += _height(chart, _WIDE) + 70 + 18 * note.count("\n")
    with _style(salt=run.run):
        figure = Figure((_WIDE / 72, height / 72), dpi=72)

        def write_text(text: str, top: float, size: float, **style: Any) -> None:
            figure.text(0, 1 - top / height, text, fontsize=size, **style)

        question = _folded(run.experiment.question, 90, 3)
        write_text(question, -12, 17, weight="bold")
        for chart, note, top in placed:
            write_text(_folded(chart.title, 110), top + 20, 14.5, weight="bold")
            _draw(chart, figure, top + 30, _WIDE)
            below = top + 34 + _height(chart, _WIDE)
            write_text(note, below, 12.5, va="top", color=SOFT)
        if isinstance(charts[0], RowChart):
            how_to_read = _folded(f"{RATIOS_NOTE} {TIMES_NOTE}", 160, 6)
            write_text(how_to_read, height, 12.5, va="top", color=SOFT)
        is_svg = path.suffix == ".svg"
        figure.savefig(
            path,
            dpi=144,
            facecolor=GROUND,
            bbox_inches="tight",
            pad_inches=0.3,
            metadata={"Date": None} if is_svg else None,
        )
    if is_svg:  # no XML may hold a control character
        text = make_printable(path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")


@contextmanager
def _style(salt: str) -> Iterator[None]:
    """Set colours and sizes.

    The same `salt` gives the elements of an SVG the same names.
    """
    with mpl.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # A browser has the glyph; a PNG has a box.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield


def _height(chart: RowChart | Sweep, width: int) -> int:
    """Return the height of a chart without its title and notes."""
    if isinstance(chart, RowChart):
        return _row_height(chart, width) * len(chart.rows) + 22
    label_height = 20 if width == _WIDE else 38
    return _PLOT_HEIGHT + 75 + label_height * len(chart.curves)


def _has_texts_beside(chart: RowChart, width: int) -> bool:
    """Return whether texts stand beside the marks.

    On a phone, and if a name is long, they stand above.
    """
    return width == _WIDE and max(len(row.name) for row in chart.rows) <= 34


def _row_height(chart: RowChart, width: int) -> int:
    """Return the height of a row, with the room for the lines above its marks."""
    if _has_texts_beside(chart, width):
        return 30
    return 24 + 20 * max(len(_name_lines(row, width)) for row in chart.rows)


def _name_lines(row: ChartRow, width: int) -> list[str]:
    """Return the lines of a name above the marks.

    The last one is empty if the row's text needs its own line.
    """
    letters = int(width / _LETTER)
    lines = _folded(row.name, letters, 3).split("\n")
    if len(lines[-1]) + len(row.text) > letters - 3:
        lines.append("")
    return lines


def _draw(
    chart: RowChart | Sweep,
    figure: Figure,
    top: float,
    width: int,
) -> None:
    """Draw a chart below `top`."""
    down = figure.get_figheight() * 72

    def add_axes(left: float, right: float, top: float, height: float) -> Axes:
        place = (
            left / width,
            1 - (top + height) / down,
            1 - (left + right) / width,
            height / down,
        )
        return figure.add_axes(place)

    if isinstance(chart, Sweep):
        _draw_curves(add_axes(58, 14, top + 26, _PLOT_HEIGHT), chart)
        return
    left = right = 0.0
    if _has_texts_beside(chart, width):
        left = 280.0
        right = 14 + _LETTER * max(len(row.text) for row in chart.rows)
    row_height = _row_height(chart, width)
    height = row_height * len(chart.rows)
    axes = add_axes(left, right, top, height)
    axes.set_xscale("log" if chart.log else "linear")
    axes.set_xlim(chart.low, chart.high)
    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.grid(axis="x")
    gap = row_height - _TRACK_HEIGHT
    rows = range(len(chart.rows))
    places = [row * row_height + gap + _TRACK_HEIGHT / 2 for row in rows]
    gaps = np.array(places) - row_height / 2
    axes.hlines(
        gaps,
        chart.low,
        chart.high,
        color=GROUND,
        linewidth=gap,
        zorder=0.8,
    )
    _draw_texts(axes, chart, places, width)
    _draw_marks(axes, chart, places)
    _set_ticks(axes.xaxis, 7 if width == _WIDE else 4, chart.tick)
    _separate_labels(axes)


def _draw_texts(
    axes: Axes,
    chart: RowChart,
    places: list[float],
    width: int,
) -> None:
    """Draw name and text of each row."""
    above = _TRACK_HEIGHT / 2 + 11
    for row, place in zip(chart.rows, places, strict=True):
        texts = [
            (row.name, 0, (-10.0, 0.0), "right"),
            (row.text, 1, (10.0, 0.0), "left"),
        ]
        if not _has_texts_beside(chart, width):
            lines = enumerate(reversed(_name_lines(row, width)))
            texts = [(line, 0, (0.0, above + 18 * up), "left") for up, line in lines]
            texts.append((row.text, 1, (0.0, above), "right"))
        for text, x, offset, side in texts:
            axes.annotate(
                text,
                (x, place),
                offset,
                axes.get_yaxis_transform(),
                "offset points",
                annotation_clip=False,
                ha=side,
                va="center",
                weight="bold" if row.first else "normal",
            )


def _draw_marks(axes: Axes, chart: RowChart, places: list[float]) -> None:
    """Draw areas, bars, intervals, dots and rings of the rows."""
    if chart.ratios:
        axes.axvspan(1 / EQUAL, EQUAL, color=SOFT, alpha=0.25, linewidth=0, zorder=0.6)
        axes.axvline(1, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=0.7)
    for begin, end in chart.bands:
        axes.axvspan(begin, end, color=SOFT, alpha=0.35, linewidth=0, zorder=0.6)
    dots = []
    rings = []
    for row, place in zip(chart.rows, places, strict=True):
        if row.heights:
            bottom = place + _TRACK_HEIGHT / 2
            axes.stairs(
                bottom - _TRACK_HEIGHT * np.array(row.heights),
                chart.edges,
                baseline=bottom,
                fill=True,
                color=row.colour,
                alpha=0.75,
            )
        _draw_segments(axes, row, chart.low, place)
        colour = row.colour if row.bar is None else INK
        dots += [(value, place, colour) for value in row.dots]
        rings += [(value, place, GROUND) for value in row.rings]
    bars = [math.nan if row.bar is None else row.bar for row in chart.rows]
    colours = [row.colour for row in chart.rows]
    thickness = _TRACK_HEIGHT - 3
    axes.hlines(places, chart.low, bars, colors=colours, linewidth=thickness)
    intervals = np.array([row.interval or _NO_INTERVAL for row in chart.rows])
    lows, highs = np.clip(intervals, 0.9 * chart.low, 1.1 * chart.high).T
    axes.hlines(places, lows, highs, color=INK, linewidth=1.5)
    ends = [*lows, *highs]
    axes.scatter(ends, places * 2, s=81, marker="|", color=INK, linewidths=1.5)
    size = 70 if chart.ratios else 40
    _draw_dots(axes, dots, size, GROUND)
    _draw_dots(axes, rings, size, INK)


def _draw_segments(axes: Axes, row: ChartRow, begin: float, place: float) -> None:
    """Draw one segment after the other, in their order."""
    for length, colour in row.segments:
        end = begin + length
        axes.hlines(place, begin, end, colors=colour, linewidth=_TRACK_HEIGHT - 3)
        begin = end


def _draw_dots(
    axes: Axes,
    dots: Sequence[tuple[float, float, str]],
    size: float,
    edge: str,
) -> None:
    """Draw dots at x, y in a colour."""
    if dots:
        x, y, colours = zip(*dots, strict=True)
        axes.scatter(
            x,
            y,
            s=size,
            c=colours,
            edgecolors=edge,
            linewidths=1.3,
            zorder=3,
        )


def _draw_curves(axes: Axes, sweep: Sweep) -> None:
    """Draw the curves of a sweep with their legend."""
    seconds: list[float] = []
    for curve in sweep.curves:
        for point in curve.points:
            seconds += point.rounds.values()
    x_scale = _scale_for(sweep.ticks) if sweep.numeric else "linear"
    y_scale = _scale_for(seconds)
    axes.set_xscale(x_scale)
    axes.set_yscale(y_scale)
    limits = (0.0, 1.05 * max(seconds))
    if y_scale == "log":
        limits = log_limits(seconds)
    axes.set_ylim(limits)
    axes.margins(x=0.02)
    axes.grid()
    drawn = Counter[str]()
    for curve in sweep.curves:
        line = ("-", "--", ":", "-.")[drawn[curve.colour] % 4]
        drawn[curve.colour] += 1
        _draw_curve(axes, curve, line)
    axes.set_xlabel(sweep.axis + _SCALE_NOTES[x_scale])
    axes.annotate(
        sweep.seconds + _SCALE_NOTES[y_scale],
        (0, 1),
        (-58, 8),
        "axes fraction",
        "offset points",
        color=SOFT,
        fontsize=12.5,
    )
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(-58 / _width(axes), -46 / _PLOT_HEIGHT),
        borderaxespad=0,
        borderpad=0,
    )
    _set_ticks(axes.yaxis, 6, units.time)
    if sweep.numeric:
        texts = [_shortened(text) for text in sweep.ticks.values()]
    else:
        texts = [_folded(text, 14) for text in sweep.ticks.values()]
    axes.set_xticks(list(sweep.ticks), texts)
    axes.xaxis.set_minor_locator(NullLocator())
    _separate_labels(axes)


def _draw_curve(axes: Axes, curve: Curve, line: str) -> None:
    """Draw the line, the intervals, the rounds and the knee of a curve."""
    colour = curve.colour
    places = [point.place for point in curve.points]
    typical = [point.typical.value for point in curve.points]
    label = _folded(curve.label, int(_width(axes) / _LETTER), 2)
    axes.plot(
        places,
        typical,
        line,
        color=colour,
        linewidth=2.2,
        label=label,
    )
    intervals = [point.typical.interval or _NO_INTERVAL for point in curve.points]
    lows, highs = np.array(intervals).T
    axes.fill_between(
        places,
        lows,
        highs,
        color=colour,
        alpha=0.17,
        linewidth=0,
    )
    dots = []
    for point in curve.points:
        dots += [(point.place, value) for value in point.rounds.values()]
    x, y = zip(*dots, strict=True)
    axes.scatter(x, y, s=20, color=colour, zorder=3)
    if curve.knee:
        axes.scatter(
            [curve.knee.place],
            [curve.knee.typical.value],
            facecolors="none",
            s=120,
            edgecolors=INK,
            linewidths=1.5,
            zorder=4,
        )


def _width(axes: Axes) -> float:
    return axes.get_window_extent().width


def _separate_labels(axes: Axes) -> None:
    """Keep the labels of the x axis apart.

    The first and the last one are drawn inward. Ticks whose labels would cover the next
    one are hidden.
    """
    track = _width(axes)
    free = math.inf  # the pixels left of the labels that are shown
    ticks = zip(
        axes.get_xticks(), axes.get_xticklabels(), axes.get_xgridlines(), strict=True
    )
    for value, label, line in reversed([*ticks]):
        scaled = axes.transScale.transform((value, 1))
        share, _ = axes.transLimits.transform(scaled)
        if share > 1.001:
            continue  # it is not drawn
        lines = label.get_text().split("\n")
        width = _LETTER * max(map(len, lines))
        side = "center"
        left = share * track - width / 2
        if share < 0.07:
            side = "left"
            left = share * track
        elif share > 0.93:
            side = "right"
            left = share * track - width
        is_free = left + width < free
        label.set(horizontalalignment=side, visible=is_free)
        line.set_visible(is_free)
        if is_free:
            free = left - _LETTER


def _scale_for(values: Collection[float]) -> str:
    """Return the scale of an axis on which these values are best told apart."""
    least = min(values)
    return "log" if least > 0 and max(values) >= 10 * least else "linear"


def _set_ticks(axis: Axis, most: int, text: Callable[[float], str]) -> None:
    """Set about `most` ticks at round values."""
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and high > 10 * low:
        decades = math.log10(high / low)
        steps: tuple[float, ...] = (1.0,)
        if 3 * decades < most + 2:
            steps = (1.0, 2.0, 5.0)
        elif 2 * decades < most + 2:
            steps = (1.0, 3.0)
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
