"""Charts with a row for each arm: ratios to the fastest, times and other costs, and latencies. `drawing` draws them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clientlab import units
from clientlab.analysis.decisions import EQUAL, EQUAL_SHARE, decision_of
from clientlab.analysis.histogram import Distribution, decoded, merged
from clientlab.analysis.ratios import Ratio, typical_figure
from clientlab.judging.contrasts import contrasts, environment_pairs, link_pairs, route_contrasts
from clientlab.reports import rows as tables
from clientlab.reports.colours import colours_of
from clientlab.reports.sweeps import charted_seconds, sweeps_of
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, FIGURES

RATIOS_NOTE = (
    "A point is the ratio, the line its 95 % confidence interval; all intervals of a chart hold together. An interval "
    f"right of 1 is slower; another within the grey band is equal within {EQUAL_SHARE}. Else it is undecided."
)
TIMES_NOTE = (
    "The bar is the typical time over the rounds, the line on it its 95 % confidence interval, a dot one round. "
    "With fewer than three rounds, no interval is computed. The fastest arm without errors is in bold, of those with "
    "equal c (requests in flight)."
)
LATENCY_NOTE = (
    "Latency from just before the send to the last byte of the body; of an open load, from the planned start of the "
    "request. An area shows the successful requests of all rounds up to their 99.9 % quantile and fills the height of "
    "its row. Rings and numbers are p50 · p99 · p99.9 of all requests, medians of the rounds. A failed request ranks "
    'after every successful one: "≥" marks a lower bound, which has no ring.'
)
_UNLIKE = "Compare arms of equal c: where arms wait for the server, one with twice the c takes half the time."
_LOGARITHMIC = "The axis is logarithmic, so dots replace the bars. The text beside them is the typical value."
_FAR_APART = 20.0
"""If the largest value of a chart is this many times the least, dots on a logarithmic axis replace the bars."""
_QUANTILES = [BY_KEY[key] for key in ("p50", "p99", "p999")]
_BINS = 90


@dataclass(frozen=True)
class Row:
    """A row of a chart with its marks, in the units of the axis. `text` stands at the right end.

    `heights`: a distribution between the `edges` of the chart, as shares of the highest. `first`: printed in bold.
    """

    name: str
    text: str
    colour: str
    bar: float | None = None
    interval: tuple[float, float] | None = None
    dots: Sequence[float] = ()
    rings: Sequence[float] = ()
    heights: Sequence[float] = ()
    first: bool = False


@dataclass(frozen=True)
class RowChart:
    """Rows over one axis from `low` to `high`, which the first note names. `ratios`: beside 1 and what equals 1."""

    title: str
    rows: Sequence[Row]
    notes: Sequence[str]
    low: float
    high: float
    tick: Callable[[float], str] = field(repr=False)
    log: bool = False
    ratios: bool = False
    edges: Sequence[float] = ()

    @property
    def summary(self) -> str:
        """A description for readers who can't see the chart."""
        return f"{self.notes[0]}: {'; '.join(f'{row.name} {row.text}' for row in self.rows)}"


def log_limits(values: Iterable[float], ends: Iterable[float] = ()) -> tuple[float, float]:
    """Return the ends of a logarithmic axis. The `ends` of intervals extend it by at most one half."""
    positive = [value for value in values if value > 0]
    low, high = min(positive), max(positive)
    shown = [*positive, *(min(max(end, low / 1.5), high * 1.5) for end in ends)]
    return min(shown) / 1.08, max(shown) * 1.08


def comparisons(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Compare arms with those of another environment, link or route, and the arms of each load with the fastest.

    Arms on an axis are left out: the lines of their sweep compare them.
    """
    arms, colours = run.experiment.arms, colours_of(run)
    for title, pairs in (
        ("Environments", contrasts(run, environment_pairs(arms))),
        ("Links", contrasts(run, link_pairs(arms))),
        ("Routes", route_contrasts(run)),
    ):
        found = [one for one in pairs if one.time is not None and not one.arm.axes]
        names = [f"{one.arm.name} over {one.base.name}" for one in found]
        rows = [_ratio_row(name, colours[one.arm.strategy], one.time) for name, one in zip(names, found, strict=True)]
        if rows:
            yield forest_plot(f"{title}: {found[0].figure.label}", rows, "times that of the first one")
    swept = {arm.name for arm in arms if arm.axes}
    for group in groups:
        what = "p99 from the planned start" if group.open_load else "time per request"
        for load in group.by_load:
            ranked = [row for row in load if row.ratio is not None and math.isfinite(row.ratio.value)]
            if len(ranked) < 2 or all(row.trials[0].arm in swept for row in load):
                continue
            rows = [_ratio_row(row.name, colours[row.strategy], None if row.fastest else row.ratio) for row in ranked]
            place = f" · {group.place_of(load[0])}" if group.mixed else ""
            yield forest_plot(f"{group.title}{place}", rows, f"{what}, times that of the fastest arm")


def _ratio_row(name: str, colour: str, ratio: Ratio | None) -> Row:
    """Return the row of a ratio and what it says. None: the arm that the others are compared with."""
    if ratio is None:
        return Row(name, "1", colour, dots=[1.0], first=True)
    text = f"{units.ratio_of(ratio)} {decision_of(ratio).word}"
    return Row(name, text, colour, interval=ratio.interval, dots=[ratio.value])


def forest_plot(title: str, rows: Sequence[Row], axis: str) -> RowChart:
    """Return the chart of one row or more, each with a ratio above 0 as its dot."""
    ends = [end for row in rows for end in row.interval or ()]
    low, high = log_limits([1 / EQUAL, EQUAL, *(ratio for row in rows for ratio in row.dots)], ends)
    notes = [f"{axis} (logarithmic)"]
    return RowChart(title, rows, notes, low, high, lambda ratio: f"{ratio:g}×", log=True, ratios=True)


def times(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Draw the time of each arm, in a chart for each group. Groups that lie on the curves of sweeps have none."""
    on_curves = {point.arm for sweep in sweeps_of(run) for curve in sweep.curves for point in curve.points}
    colours = colours_of(run)
    for group in groups:
        if all(trial.arm in on_curves for row in group.rows for trial in row.trials):
            continue
        factor, label = charted_seconds(group.requests, open_load=group.open_load)
        rows = []
        for row in group.rows:
            name, seconds = group.name_of(row), row.level * factor
            text = units.time(seconds) + (" ⚠ errors" if row.errors else "")
            found = typical_figure(dict(enumerate(row.costs)))
            ends = found.with_value(row.level).interval if found else None
            interval = ends and (ends[0] * factor, ends[1] * factor)
            rounds = [cost * factor for cost in row.costs]
            rows.append(Row(name, text, colours[row.strategy], seconds, interval, rounds, first=row.first))
        load = "" if group.mixed else f", c={group.rows[0].concurrency}"
        notes = [f"{label}{load}; less is better"]
        notes += [_UNLIKE] if len({row.concurrency for row in group.rows}) > 1 else []
        yield _bars(group.title, rows, notes)


def costs(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Draw every cost besides time that the trials of a group have."""
    colours = colours_of(run)
    for group, figure in itertools.product(groups, FIGURES):
        if not figure.cost or (figure.column is not None and not group.shows(figure, figure.column.when)):
            continue
        size = 1 << 20 if figure.unit == "bytes" else 1  # so that ticks are round numbers of MiB
        rows = []
        for row in group.rows:
            typical, rounds = row.figures[figure.key], [value / size for value in figure.values(row.trials)]
            if typical is not None:
                name, text, bar = group.name_of(row), row.text(figure), typical / size
                rows.append(Row(name, text, colours[row.strategy], bar, dots=rounds, first=row.first))
        if rows:
            title = figure.title if len(groups) == 1 else f"{figure.title} · {group.title}"
            yield _bars(title, rows, [figure.description], figure.unit, size)


def _bars(
    title: str, rows: Sequence[Row], notes: Sequence[str], unit: units.Unit = "seconds", size: int = 1
) -> RowChart:
    def tick(value: float) -> str:
        return units.of_unit(value * size, unit)

    values = [value for row in rows for value in (*row.dots, row.bar or 0.0)]
    ends = [end for row in rows for end in row.interval or ()]
    positive = [value for value in values if value > 0]
    if positive and max(positive) >= _FAR_APART * min(positive):
        low, high = log_limits(positive, ends)
        rows = [replace(row, bar=None) for row in rows]
        return RowChart(title, rows, [*notes, _LOGARITHMIC], low, high, tick, log=True)
    most = max(values)
    high = 1.04 * max(most, min(max(ends, default=0.0), 1.5 * most)) or 1.0
    return RowChart(title, rows, notes, 0.0, high, tick)


def distributions(run: Run, groups: Iterable[tables.Group]) -> Iterator[RowChart]:
    """Draw the latencies of the arms as areas, in a chart for each group that has latencies."""
    colours = colours_of(run)
    for group in groups:
        found = [(row, answered) for row in group.rows if (answered := _answered(row)) is not None]
        if not found:
            continue
        rings = [
            [ring for figure in _QUANTILES if figure.key not in row.bounds and (ring := row.figures[figure.key])]
            for row, _ in found
        ]
        ends = [seconds for _, answered in found for seconds in answered.quantiles(np.array([0.0, 0.999])).tolist()]
        low, high = log_limits([*ends, *itertools.chain.from_iterable(rings)])
        edges = np.geomspace(low, high, _BINS + 1)
        rows = []
        for (row, answered), marks in zip(found, rings, strict=True):
            shares = answered.shares(edges)
            name, text = group.name_of(row), " · ".join(row.text(figure) for figure in _QUANTILES)
            heights = (shares / shares.max()).tolist()
            rows.append(Row(name, text, colours[row.strategy], rings=marks, heights=heights, first=row.first))
        delay = run.experiment.workloads[group.rows[0].trials[0].workload].delay
        notes = [f"latency (logarithmic){'' if delay is None else f', with the requested delay of {delay}'}"]
        notes += [f"{tables.WAITS} holds the wait for a free connection."] if any(row.waits for row, _ in found) else []
        yield RowChart(group.title, rows, notes, low, high, units.time, log=True, edges=edges.tolist())


def _answered(row: tables.Row) -> Distribution | None:
    """Return the latencies of the successful requests of all rounds; None if they are unknown or there are none."""
    histograms = [trial.histogram for trial in row.trials if trial.histogram is not None]
    found = [one for one in (decoded(of.encoded, of.unit_seconds) for of in histograms) if one.total]
    return merged(found) if found else None
