"""The chart of the articles: a bar a strategy with its seconds, a dot a round; a curve for a sweep, with its knee."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clientlab.errors import LabError
from clientlab.reports import units
from clientlab.reports.curves import Curve, Sweep, is_far, sweeps_of
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.runs.document import Run

FORMATS = (".png", ".svg")

# Okabe and Ito's palette, which colour-blind people can tell apart (jfly.uni-koeln.de/color).
_BAR, _BEST, _DOT, _INK = "#56B4E9", "#009E73", "#000000", "#222222"
_WIDTH_INCHES = 9.0
_BAR_INCHES = 0.36
_HEAD_INCHES = 1.1
_SWEEP_INCHES = 3.6
_DPI = 144
_REQUESTS = 1000  # where trials did unlike numbers of requests
_DOT_SIZE = 3.5
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


@dataclass(frozen=True)
class Bars:
    """Arms that stand in one panel, the fastest first."""

    title: str
    workload: str
    requests: int | None
    rows: list[Row]

    @property
    def fastest(self) -> float:
        return min(median(row.costs) for row in self.rows)


def check(path: Path) -> None:
    """Raises LabError for a path that no chart can be written to; to be asked before anything is measured."""
    if path.suffix not in FORMATS:
        raise LabError(f"chart {path}: the ending is to be one of {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise LabError(f"chart {path}: there is no folder {path.parent}; make it or name another with --chart")


def write(run: Run, path: Path) -> None:
    """Draw a run's chart as PNG or SVG, by the path's ending. Raises LabError."""
    check(path)
    groups = groups_of(run)
    if not groups:
        raise LabError(f"chart {path}: run {run.run} has no finished trial to draw")
    try:
        with (
            mpl.rc_context({"svg.hashsalt": run.run, "font.size": 9.5, "text.parse_math": False}),
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", "Glyph .* missing")  # a box stands for it, as the reader sees
            figure(run, groups).savefig(path, dpi=_DPI, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise LabError(f"chart {path}: {error.strerror}; name another place with --chart") from error


def figure(run: Run, groups: list[Group]) -> Figure:
    """Panels of bars, those of one workload with the same scale; below them the sweeps."""
    sweeps = sweeps_of(run)
    bars = list(_bars(run, groups, sweeps))
    inches = [len(panel.rows) * _BAR_INCHES + _HEAD_INCHES for panel in bars] + [_SWEEP_INCHES] * len(sweeps)
    drawing = Figure(figsize=(_WIDTH_INCHES, sum(inches) + 0.4), layout="constrained")
    drawing.suptitle(run.experiment.question, fontsize=11, fontweight="bold", wrap=True)
    panels = list(drawing.subplots(len(inches), 1, squeeze=False, gridspec_kw={"height_ratios": inches})[:, 0])
    for workload, ways in itertools.groupby(zip(panels, bars, strict=False), lambda one: one[1].workload):
        _workload(list(ways), last=not sweeps and workload == bars[-1].workload)
    for panel, sweep in zip(panels[len(bars) :], sweeps, strict=True):
        _curves(panel, sweep)
    return drawing


def _bars(run: Run, groups: list[Group], sweeps: list[Sweep]) -> Iterator[Bars]:
    """The panels: ways on which no name comes twice share one; what is on curves only has none."""
    curved = {arm.name for arm in run.experiment.arms if arm.axes} if sweeps else set()
    for workload, found in itertools.groupby(groups, lambda group: group.workload):
        ways = list(found)
        rows = [row for group in ways for row in group.rows]
        if all(trial.arm in curved for row in rows for trial in row.trials):
            continue
        if len(ways) > 1 and len({row.name for row in rows}) == len(rows):
            requests = {group.requests for group in ways}
            rows.sort(key=lambda row: median(row.costs))
            yield Bars(workload, workload, requests.pop() if len(requests) == 1 else None, rows)
        else:
            yield from (Bars(group.title, workload, group.requests, group.rows) for group in ways)


def _workload(ways: Sequence[tuple[Axes, Bars]], *, last: bool) -> None:
    """The panels of one workload, on one scale."""
    counts = {bars.requests for _, bars in ways}
    requests = ways[0][1].requests or _REQUESTS if len(counts) == 1 else _REQUESTS
    longest = max(max(row.costs) for _, bars in ways for row in bars.rows) * requests
    for panel, bars in ways:
        _panel(panel, bars, requests, longest)
    for panel, _ in ways[:-1]:
        panel.tick_params(labelbottom=False)
    what = f"seconds for {requests:,} requests"
    ways[-1][0].set_xlabel(f"{what}: the bar is the median, a dot is a round; shorter is better" if last else what)


def _panel(panel: Axes, bars: Bars, requests: int, longest: float) -> None:
    names = [f"{row.name}  (c={row.concurrency})" for row in bars.rows]
    places = range(len(names))
    colours = [_BEST if median(row.costs) == bars.fastest else _BAR for row in bars.rows]
    seconds = [[cost * requests for cost in row.costs] for row in bars.rows]
    panel.barh(places, [median(rounds) for rounds in seconds], color=colours, height=0.72)
    for place, row, rounds in zip(places, bars.rows, seconds, strict=True):
        panel.plot(rounds, [place] * len(rounds), ".", color=_DOT, markersize=_DOT_SIZE, alpha=0.7)
        failed = "  with errors" if row.errors else ""
        text = units.time(median(rounds)) + failed
        panel.text(max(rounds) + longest * 0.012, place, text, va="center", color=_INK)
    panel.set_yticks(list(places), names)
    panel.invert_yaxis()
    panel.set_xlim(0, longest * 1.16)
    _frame(panel, bars.title)
    panel.grid(axis="x", alpha=0.25)


def _curves(panel: Axes, sweep: Sweep) -> None:
    """Time against the axis: medians joined, a dot a round, the knee ringed."""
    words = any(isinstance(value, str) for value in sweep.values)
    across = {value: place if words else float(value) for place, value in enumerate(sweep.values)}
    for number, curve in enumerate(sweep.curves):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [across[place.at] for place in curve.places]
        panel.plot(places, [place.middle for place in curve.places], color=colour, label=_label(curve))
        for at, place in zip(places, curve.places, strict=True):
            panel.plot([at] * len(place.rounds), place.rounds, ".", color=colour, markersize=_DOT_SIZE, alpha=0.7)
        panel.plot(across[curve.knee.at], curve.knee.middle, "o", color=colour, markersize=11, fillstyle="none")
    if not words and is_far(list(across.values())):
        panel.set_xscale("log")
    if is_far(sorted(value for curve in sweep.curves for place in curve.places for value in place.rounds)):
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)
    panel.set_xticks(list(across.values()), [str(value) for value in across])
    panel.minorticks_off()
    panel.set_xlabel(f"{sweep.axis}: the line joins medians, a dot is a round, the ring is the knee")
    panel.set_ylabel(f"seconds for {sweep.requests:,} requests")
    panel.yaxis.set_major_formatter(lambda value, _: units.time(value))
    panel.legend(frameon=False)
    _frame(panel, f"{sweep.axis} · {sweep.where}")
    panel.grid(alpha=0.25)


def _label(curve: Curve) -> str:
    return f"{curve.name}: knee at {curve.knee.at}"


def _frame(panel: Axes, title: str) -> None:
    panel.set_title(title, loc="left", fontsize=9.5)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_axisbelow(True)
