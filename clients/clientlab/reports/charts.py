"""Charts with a row for each arm: ratios, times, costs, latencies and courses.

`sweeps` has the curves along an axis, and `drawing` draws all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product

import numpy as np

from clientlab import units
from clientlab.judging.comparison import Comparison
from clientlab.judging.ranking import PARTS, contrasts_by
from clientlab.reports.rows import WAITS, Group, Row
from clientlab.reports.sections import GREY, HUES, ChartRow, RowChart, colours_of
from clientlab.reports.sweeps import charted_seconds, ranking_label, sweeps_of
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figures import BY_KEY, FIGURES, HIGHEST_RATE, Figure, cost_of
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE, decide
from clientlab.statistics.histogram import SLICES, Floats
from clientlab.statistics.ratios import Estimate, Ratio, typical_figure

RATIOS_NOTE = (
    "A point is the ratio, the line its 95 % confidence interval; all intervals of a"
    " chart hold together. An interval right of 1 is slower; another within the grey"
    f" band is equal within {EQUAL_SHARE}. Else it is undecided."
)
TIMES_NOTE = (
    "The bar is the typical time over the rounds, the line on it its 95 % confidence"
    " interval, a dot one round. With fewer than three rounds, no interval is computed."
    " The fastest arm without errors is in bold, of those with equal c (requests in"
    " flight)."
)
_UNLIKE = (
    "Compare arms of equal c: where arms wait for the server, one with twice the c"
    " takes half the time."
)
_LOGARITHMIC = (
    "The axis is logarithmic, so dots replace the bars. The text beside them is the"
    " typical value."
)

LATENCY_NOTE = (
    "Latency from just before the send to the last byte of the body; of an open load,"
    " from the planned start of the request. An area shows the successful requests of"
    " all rounds up to their 99.9 % quantile and fills the height of its row. Rings and"
    " numbers are p50 · p99 · p99.9 of all requests, medians of the rounds. A failed"
    ' request ranks after every successful one: "≥" marks a lower bound, which has no'
    " ring."
)
COURSE_NOTE = (
    "The measured time of each arm, its rounds one after the other. An area is filled"
    " to the largest value of its row; the text has the least and the largest. A p99 is"
    " the longest of those in its part of the time."
)
ChartMaker = Callable[[Run, Sequence[Group]], Iterator[RowChart]]

# From this ratio of the largest to the least value on, dots on a logarithmic axis
# replace the bars.
_FAR_APART = 20.0
_QUANTILES = [BY_KEY[key] for key in ("p50", "p99", "p999")]
_BINS = 90
# The parts into which a chart divides the measured time.
_MOST_PARTS = 120
_FEWEST_PARTS = 24
_REQUESTS_OF_PART = 20  # at least, on average, unless there are too few parts
_COURSES = {
    "Requests per second": units.rate,
    "Errors": units.share,
    "p99": units.time,
}
_MAIN_FIGURES = frozenset({"highest_rate", "throughput", "p99", "cpu"})


def log_limits(
    values: Iterable[float], ends: Iterable[float] = ()
) -> tuple[float, float]:
    """Return the ends of a logarithmic axis.

    The `ends` of intervals extend it by at most one half.
    """
    shown = [value for value in values if value > 0]
    low = min(shown) / 1.5
    high = max(shown) * 1.5
    shown += [min(max(end, low), high) for end in ends]
    return min(shown) / 1.08, max(shown) * 1.08


def comparisons(run: Run, groups: Sequence[Group]) -> Iterator[RowChart]:
    """Compare arms that differ in one part, and those of each load with the fastest.

    Arms on an axis are left out: the lines of their sweep compare them.
    """
    colours = colours_of(run)
    for part in PARTS:
        contrasts = contrasts_by(part, run)
        rows = []
        for contrast in contrasts:
            if contrast.time is not None and not contrast.arm.axes:
                arm = contrast.arm.name
                name = f"{arm} over {contrast.base.name}"
                row = _ratio_row(name, colours[arm], contrast.time, contrast.figure)
                rows.append(row)
        if rows:
            title = f"{part.capitalize()}s: {contrasts[0].figure.label}"
            yield _forest_plot(title, rows, "times that of the second one")
    swept = {arm.name for arm in run.experiment.arms if arm.axes}
    for group in groups:
        for load in group.by_load:
            if not swept.issuperset(row.planned.arm for row in load):
                yield from _ratios_of_load(group, load, colours)


def _ratios_of_load(
    group: Group, load: Sequence[Row], colours: Mapping[str, str]
) -> Iterator[RowChart]:
    """Compare the arms of a load with the fastest, if several have a ratio."""
    rows = []
    for row in load:
        if row.ratio is not None and math.isfinite(row.ratio.value):
            colour = colours[row.planned.arm]
            ratio = None if row.fastest else row.ratio
            rows.append(_ratio_row(row.name, colour, ratio, group.ranks_by))
    if len(rows) > 1:
        title = group.title
        if group.mixed:
            title += f" · {group.place_of(load[0])}"
        axis = f"{ranking_label(group.ranks_by)}, times that of the fastest arm"
        if group.searched:
            axis = f"{HIGHEST_RATE.label} of the fastest arm, times that of each arm"
        yield _forest_plot(title, rows, axis)


def claim_ratios(claims: Iterable[ClaimResult]) -> Iterator[RowChart]:
    """Draw the ratio of every claim with its confidence interval, against 1."""
    rows = [
        ChartRow(
            claim.name,
            f"{units.ratio(claim.ratio, claim.interval)} {claim.verdict}",
            GREY,
            interval=claim.interval,
            dots=[claim.ratio],
        )
        for claim in claims
        if claim.ratio
    ]
    if rows:
        title = "Ratios with their 95 % confidence intervals"
        axis = "figure of the second arm over that of the first"
        yield _forest_plot(title, rows, axis)


def changes(comparison: Comparison) -> Iterator[RowChart]:
    """Draw the ratios of all runs to the baseline, by arm and main figure."""
    figures = [figure for figure in comparison.figures if figure.key in _MAIN_FIGURES]
    for arm, figure in product(comparison.compared_arms(), figures):
        rows = []
        for compared in comparison.others:
            change = compared.changes.get(arm, {}).get(figure.key)
            if change is not None and change.ratio is not None:
                name = compared.run.run
                rows.append(_interval_row(name, HUES[0], change.ratio, change.word))
        if rows:
            title = f"{arm}: {figure.label}"
            yield _forest_plot(title, rows, "times that of the baseline")


def _ratio_row(name: str, colour: str, ratio: Ratio | None, figure: Figure) -> ChartRow:
    """Return the row of a figure's ratio and what it says.

    Without one, it is the arm that others are compared with.
    """
    if ratio is None:
        return ChartRow(name, "1", colour, dots=[1.0], first=True)
    words = {"slower": figure.direction.worse, "faster": figure.direction.better}
    word = decide(ratio).word
    return _interval_row(name, colour, ratio, words.get(word, word))


def _interval_row(name: str, colour: str, ratio: Estimate, word: str) -> ChartRow:
    text = f"{units.ratio_of(ratio)} {word}"
    return ChartRow(name, text, colour, interval=ratio.interval, dots=[ratio.value])


def _forest_plot(title: str, rows: Sequence[ChartRow], axis: str) -> RowChart:
    """Return the chart of at least one row, each with a ratio above 0 as its dot."""
    ratios = chain.from_iterable(row.dots for row in rows)
    ends = chain.from_iterable(row.interval or () for row in rows)
    low, high = log_limits([1 / EQUAL, EQUAL, *ratios], ends)
    notes = [f"{axis} (logarithmic)"]
    tick = "{:g}×".format
    return RowChart(title, rows, notes, low, high, tick, log=True, ratios=True)


def times(run: Run, groups: Sequence[Group]) -> Iterator[RowChart]:
    """Draw the time of each arm, in a chart for each group.

    Groups that lie on the curves of sweeps have none.
    """
    on_curves: set[str] = set()
    for curve in chain.from_iterable(sweep.curves for sweep in sweeps_of(run)):
        on_curves |= {point.arm for point in curve.points}
    colours = colours_of(run)
    for group in groups:
        if on_curves.issuperset(row.planned.arm for row in group.rows):
            continue
        factor, label = charted_seconds(group.requests, group.ranks_by)
        rows = []
        for row in group.rows:
            level = row.standing.level
            rounds = [cost_of(trial) for trial in row.trials]
            typical = typical_figure(dict(enumerate(rounds)))
            interval = typical.with_value(level).interval if typical else None
            if interval:
                low, high = interval
                interval = (low * factor, high * factor)
            text = units.time(level * factor)
            if row.errors:
                text += " ⚠ errors"
            chart_row = ChartRow(
                group.name_of(row),
                text,
                colours[row.planned.arm],
                level * factor,
                interval,
                [seconds * factor for seconds in rounds],
                first=row.first,
            )
            rows.append(chart_row)
        if not group.mixed:
            label += f", c={group.rows[0].planned.concurrency}"
        notes = [f"{label}; less is better"]
        if len({row.planned.concurrency for row in group.rows}) > 1:
            notes.append(_UNLIKE)
        yield _bars(group.title, rows, notes)


def costs(run: Run, groups: Sequence[Group]) -> Iterator[RowChart]:
    """Draw every cost besides time that the trials of a group have."""
    colours = colours_of(run)
    figures = [figure for figure in FIGURES if figure.cost]
    for group, figure in product(groups, figures):
        if not group.shows(figure):
            continue
        # Ticks are round numbers of MiB.
        size = 1 << 20 if figure.unit == "bytes" else 1
        rows = []
        for row in group.rows:
            typical = row.figures[figure.key]
            if typical is not None:
                chart_row = ChartRow(
                    group.name_of(row),
                    row.text(figure),
                    colours[row.planned.arm],
                    typical / size,
                    dots=[value / size for value in figure.values(row.trials)],
                    first=row.first,
                )
                rows.append(chart_row)
        if rows:
            title = figure.title
            if len(groups) > 1:
                title += f" · {group.title}"
            yield _bars(title, rows, [figure.description], figure.unit, size)


def _bars(
    title: str,
    rows: Sequence[ChartRow],
    notes: Sequence[str],
    unit: units.Unit = "seconds",
    size: int = 1,
) -> RowChart:
    """Return a chart of bars, or of dots if the values are far apart.

    `size`: of a unit of the axis in the figure's `unit`.
    """

    def tick(value: float) -> str:
        return units.of_unit(value * size, unit)

    values = [row.bar or 0.0 for row in rows]
    values += chain.from_iterable(row.dots for row in rows)
    ends = list(chain.from_iterable(row.interval or () for row in rows))
    most = max(values)
    least = min((value for value in values if value > 0), default=math.inf)
    if most >= _FAR_APART * least:
        low, high = log_limits(values, ends)
        rows = [replace(row, bar=None) for row in rows]
        notes = [*notes, _LOGARITHMIC]
        return RowChart(title, rows, notes, low, high, tick, log=True)
    shown = max(most, min(max(ends, default=0.0), 1.5 * most))
    return RowChart(title, rows, notes, 0.0, 1.04 * shown or 1.0, tick)


def distributions(run: Run, groups: Sequence[Group]) -> Iterator[RowChart]:
    """Draw the latencies of the arms of each group as areas."""
    colours = colours_of(run)
    for group in groups:
        known = [(row, row.answered) for row in group.rows if row.answered is not None]
        if not known:
            continue
        shown: list[float] = []
        for row, answered in known:
            shown += answered.quantiles(np.array([0.0, 0.999])).tolist()
            shown += _rings_of(row)
        low, high = log_limits(shown)
        edges = np.geomspace(low, high, _BINS + 1)
        rows = []
        for row, answered in known:
            shares = answered.shares(edges)
            chart_row = ChartRow(
                group.name_of(row),
                " · ".join(map(row.text, _QUANTILES)),
                colours[row.planned.arm],
                rings=_rings_of(row),
                heights=(shares / shares.max()).tolist(),
                first=row.first,
            )
            rows.append(chart_row)
        axis = "latency (logarithmic)"
        workload = run.experiment.workloads[group.rows[0].planned.workload]
        if workload.delay is not None:
            axis += f", with the requested delay of {workload.delay}"
        notes = [axis]
        if any(row.waits for row, _ in known):
            notes.append(f"{WAITS} holds the wait for a free connection.")
        yield RowChart(
            group.title,
            rows,
            notes,
            low,
            high,
            units.time,
            log=True,
            edges=edges.tolist(),
        )


def _rings_of(row: Row) -> list[float]:
    """Return the quantiles of an arm that are no lower bounds."""
    known = [figure.key for figure in _QUANTILES if figure.key not in row.bounds]
    return [seconds for key in known if (seconds := row.figures[key])]


def courses(run: Run, groups: Sequence[Group]) -> Iterator[RowChart]:
    """Draw requests per second, errors and p99 of each arm over its measured time."""
    colours = colours_of(run)
    for group in groups:
        yield from _courses_of(group, colours)


def _courses_of(group: Group, colours: Mapping[str, str]) -> Iterator[RowChart]:
    timed = [
        row
        for row in group.rows
        if any(trial.figures.over_time for trial in row.trials)
    ]
    if not timed:
        return
    rounds = max(len(row.trials) for row in timed)
    slices = rounds * SLICES
    trials = list(chain.from_iterable(row.trials for row in timed))
    fewest = min(trial.figures.requests for trial in trials) * rounds
    parts = max(_FEWEST_PARTS, fewest // _REQUESTS_OF_PART)
    parts = min(slices, _MOST_PARTS, parts)
    walls = [trial.wall_seconds for trial in trials]
    tick: Callable[[float], str] = units.time
    end = max(walls) * slices / SLICES
    # A number of requests takes another time in each arm.
    if max(walls) > 1.1 * min(walls):
        tick = "{:g} rounds".format
        end = float(rounds)
    edges = np.linspace(0.0, end, parts + 1).tolist()
    by_row = [(row, _course_of(row, parts, slices)) for row in timed]
    for title, text in _COURSES.items():
        rows = []
        for row, course in by_row:
            values = course[title]
            least = np.nanmin(values, initial=math.inf)
            most = np.nanmax(values, initial=0.0)
            if most:
                chart_row = ChartRow(
                    group.name_of(row),
                    f"{text(least)} to {text(most)}",
                    colours[row.planned.arm],
                    heights=(np.nan_to_num(values) / most).tolist(),
                )
                rows.append(chart_row)
        if rows:
            full_title = f"{title} · {group.title}"
            yield RowChart(full_title, rows, [title], 0.0, end, tick, edges=edges)


def _course_of(row: Row, parts: int, slices: int) -> dict[str, Floats]:
    """Return the figures of `_COURSES` in each part of an arm's time; NaN if unknown.

    `slices`: those of an arm with all rounds.
    """
    measured = []
    seconds: list[float] = []
    for trial in row.trials:
        over_time = trial.figures.over_time
        measured += over_time
        seconds += [trial.wall_seconds / SLICES] * len(over_time)
    places = np.arange(len(measured)) * parts // slices
    ended = np.bincount(places, [part.requests for part in measured], parts)
    failed = np.bincount(places, [part.errors for part in measured], parts)
    spent = np.bincount(places, seconds, parts)
    p99s = np.full(parts, np.nan)
    np.fmax.at(p99s, places, np.array([part.p99 for part in measured], np.float64))
    with np.errstate(invalid="ignore"):
        rates = (ended - failed) / spent
        shares = failed / ended
    return dict(zip(_COURSES, (rates, shares, p99s), strict=True))
