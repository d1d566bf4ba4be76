"""Forest plots: ratios with their intervals, a row each, against 1 and the band in which two arms are called equal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.decisions import EQUAL, EQUAL_SHARE, decision_of
from clientlab.analysis.ratios import Ratio
from clientlab.judging.contrasts import Contrast, contrasts, environment_pairs, link_pairs, route_contrasts
from clientlab.reports.charts.chart_data import NEUTRAL, ChartArm, ChartGroup, Look, looks_of
from clientlab.reports.charts.shapes import Bar, BarChart, Scale, logarithmic
from clientlab.reports.rows import further_figures
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure

NOTE = (
    "A point is the ratio, the line its 95 % confidence interval; all intervals of a chart hold together. An interval "
    f"right of 1 is slower; another within the grey band is equal within {EQUAL_SHARE}. Else it is undecided."
)

_REACH = 1.5
"""How far beyond the largest and the least ratio an interval is drawn."""


@dataclass(frozen=True)
class Entry:
    """A row: a ratio, and a word on what it says. `first`: what the others are compared with.

    `quoted`: the text of the ratio; None for the ratio with its interval.
    """

    name: str
    look: Look
    ratio: float
    interval: tuple[float, float] | None
    word: str
    first: bool = False
    quoted: str | None = None

    @property
    def text(self) -> str:
        quoted = units.ratio(self.ratio, self.interval) if self.quoted is None else self.quoted
        return "1" if self.first else f"{quoted} {self.word}".strip()


def forest(title: str, entries: Sequence[Entry], axis: str) -> BarChart | None:
    """The entries in their order. None where none has a ratio that can be drawn."""
    ratios = [1.0, *(entry.ratio for entry in entries)]
    least, most = min(ratios) / _REACH, max(ratios) * _REACH
    ends = (end for entry in entries for end in entry.interval or ())
    scale = logarithmic([*ratios, 1 / EQUAL, EQUAL, *(min(max(end, least), most) for end in ends)])
    if not entries or scale is None:
        return None
    beyond = [
        entry.name for entry in entries if any(not scale.low <= end <= scale.high for end in entry.interval or ())
    ]
    return BarChart(
        title=title,
        rows=[_row(entry, scale) for entry in entries],
        ticks=scale.ticks_across(lambda value: f"{units.digits(value, 3)}×"),
        axis=axis,
        notes=[f"The interval ends beyond the chart for {', '.join(beyond)}."] if beyond else [],
        line=scale.position(1.0),
        band=(scale.position(1 / EQUAL), scale.position(EQUAL)),
    )


def _row(entry: Entry, scale: Scale) -> Bar:
    return Bar(
        name=entry.name,
        look=entry.look,
        value=entry.text,
        title=f"{entry.name}: {entry.text}",
        span=None if entry.interval is None or entry.first else _positions(entry.interval, scale),
        dots=[scale.position(entry.ratio)],
        first=entry.first,
    )


def _positions(interval: tuple[float, float], scale: Scale) -> tuple[float, float]:
    return scale.position(interval[0]), scale.position(interval[1])


def comparisons(run: Run, groups: Iterable[ChartGroup]) -> list[BarChart]:
    """The arms of each group and load beside the fastest of them; arms beside those of another environment or link."""
    return [*_of_contrasts(run), *_of_groups(groups, _swept(run))]


def further_comparisons(run: Run, groups: Iterable[ChartGroup]) -> list[BarChart]:
    """p99 and CPU time of the arms of each group beside those of the fastest arm of their load."""
    swept = _swept(run)
    return [
        chart
        for group in groups
        if not all(trial.arm in swept for row in group.rows for trial in row.trials)
        for chart in _of_further(group)
    ]


def _swept(run: Run) -> set[str]:
    """Arms that lie on an axis. Where all do, the lines of the sweep compare them, point by point."""
    return {arm.name for arm in run.experiment.arms if arm.axes}


def _of_groups(groups: Iterable[ChartGroup], swept: Collection[str]) -> Iterator[BarChart]:
    for group in groups:
        by_load = itertools.groupby(group.arms, lambda arm: arm.row.load)
        for _, found in by_load:
            arms = list(found)
            entries = [entry for arm in arms if (entry := _of_arm(arm))]
            if len(entries) < 2 or all(arm.row.trials[0].arm in swept for arm in arms):
                continue
            place = group.place_of(arms[0].row) if group.mixed else ""
            what = "p99 from the planned start" if group.open_load else "time per request"
            axis = f"{what}, times that of the fastest (logarithmic)"
            chart = forest(f"{group.title}{f' · {place}' if place else ''}", entries, axis)
            if chart is not None:
                yield chart


def _of_further(group: ChartGroup) -> Iterator[BarChart]:
    """p99 and CPU time beside those of the fastest arm of each load."""
    for figure in further_figures(open_load=group.open_load):
        entries = [entry for arm in group.arms if (entry := _beside(arm, figure, arm.row.ratios.get(figure.key)))]
        if len(entries) < 2:
            continue
        axis = f"{figure.label}, times that of the fastest arm (logarithmic)"
        chart = forest(f"{group.title} · {figure.label}", entries, axis)
        if chart is not None:
            yield chart


def _beside(arm: ChartArm, figure: Figure, ratio: Ratio | None) -> Entry | None:
    if arm.row.first:
        return Entry(arm.name, arm.look, 1.0, None, "", first=True)
    if ratio is None or not math.isfinite(ratio.value):
        return None
    return Entry(arm.name, arm.look, ratio.value, ratio.interval, _word(figure, ratio))


def _word(figure: Figure, ratio: Ratio) -> str:
    word = decision_of(ratio).word
    return {"slower": figure.direction.worse, "faster": figure.direction.better}.get(word, word)


def _of_arm(arm: ChartArm) -> Entry | None:
    row, ratio = arm.row, arm.row.ratio
    if ratio is None or not math.isfinite(ratio.value):
        return None
    word = "" if row.fastest else decision_of(ratio).word
    return Entry(row.name, arm.look, ratio.value, ratio.interval, word, first=row.fastest)


def _of_contrasts(run: Run) -> Iterator[BarChart]:
    arms, looks = run.experiment.arms, looks_of(run)
    for title, every in (
        ("Environments", contrasts(run, environment_pairs(arms))),
        ("Links", contrasts(run, link_pairs(arms))),
        ("Routes", route_contrasts(run)),
    ):
        # What lies on an axis has the lines of its sweep; a row for each point would be pages long.
        found = [one for one in every if not one.arm.axes]
        for label, ratios in (
            (found[0].figure.label if found else "", [(one, one.time) for one in found]),
            ("CPU time per request", [(one, one.cpu) for one in found]),
        ):
            entries = [_of_contrast(one, ratio, looks) for one, ratio in ratios if ratio is not None]
            chart = forest(f"{title}: {label}", entries, "times that of the first one (logarithmic)")
            if chart is not None:
                yield chart


def _of_contrast(one: Contrast, ratio: Ratio, looks: dict[str, Look]) -> Entry:
    look = looks.get(one.arm.strategy, NEUTRAL)
    return Entry(f"{one.arm.name} over {one.base.name}", look, ratio.value, ratio.interval, decision_of(ratio).word)
