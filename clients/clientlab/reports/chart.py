"""The chart of the articles: a bar a strategy, its seconds on the bar, and every round as a dot."""

from __future__ import annotations

import warnings
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clientlab.errors import LabError
from clientlab.reports import units
from clientlab.reports.rows import Group, groups_of
from clientlab.runs.document import Run

FORMATS = (".png", ".svg")

# Okabe and Ito's palette, which colour-blind people can tell apart (jfly.uni-koeln.de/color).
_BAR, _BEST, _DOT, _INK = "#56B4E9", "#009E73", "#000000", "#222222"
_WIDTH_INCHES = 9.0
_BAR_INCHES = 0.36
_HEAD_INCHES = 1.1
_DPI = 144
_REQUESTS = 1000  # where trials did unlike numbers of requests


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
    """One panel a group, one below the other, all with the same scale."""
    heights = [len(group.rows) * _BAR_INCHES + _HEAD_INCHES for group in groups]
    drawing = Figure(figsize=(_WIDTH_INCHES, sum(heights) + 0.4), layout="constrained")
    drawing.suptitle(run.experiment.question, fontsize=11, fontweight="bold", wrap=True)
    panels = drawing.subplots(len(groups), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    counts = {group.requests for group in groups}
    requests = groups[0].requests or _REQUESTS if len(counts) == 1 else _REQUESTS
    longest = max(max(row.costs) for group in groups for row in group.rows) * requests
    for panel, group in zip(panels, groups, strict=True):
        _panel(panel, group, requests, longest)
    what = f"seconds for {requests:,} requests"
    panels[-1].set_xlabel(f"{what}: the bar is the median, a dot is a round; shorter is better")
    return drawing


def _panel(panel: Axes, group: Group, requests: int, longest: float) -> None:
    names = [f"{row.name}  (c={row.concurrency})" for row in group.rows]
    places = range(len(names))
    colours = [_BEST if row.fastest else _BAR for row in group.rows]
    seconds = [[cost * requests for cost in row.costs] for row in group.rows]
    panel.barh(places, [median(rounds) for rounds in seconds], color=colours, height=0.72)
    for place, row, rounds in zip(places, group.rows, seconds, strict=True):
        panel.plot(rounds, [place] * len(rounds), ".", color=_DOT, markersize=3.5, alpha=0.7)
        failed = "  with errors" if row.errors else ""
        text = units.time(median(rounds)) + failed
        panel.text(max(rounds) + longest * 0.012, place, text, va="center", color=_INK)
    panel.set_yticks(list(places), names)
    panel.invert_yaxis()
    panel.set_xlim(0, longest * 1.16)
    panel.set_title(group.title, loc="left", fontsize=9.5)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="x", alpha=0.25)
    panel.set_axisbelow(True)
