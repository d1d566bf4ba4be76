"""Charts of the single requests of each arm: how latencies are distributed, and how
rates, errors and p99 change over the measured time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from clientlab import units
from clientlab.reports.charts import log_limits
from clientlab.reports.palette import colours_of
from clientlab.reports.rows import WAITS, Group, Row
from clientlab.reports.sections import ChartRow, RowChart
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.statistics.histogram import SLICES, Floats

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
        delay = run.experiment.workloads[group.rows[0].planned.workload].delay
        if delay is not None:
            axis += f", with the requested delay of {delay}"
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
    known = [
        row.figures[figure.key] for figure in _QUANTILES if figure.key not in row.bounds
    ]
    return [seconds for seconds in known if seconds]


def courses(run: Run, groups: Sequence[Group]) -> Iterator[RowChart]:
    """Draw requests per second, errors and p99 of each arm over its measured time."""
    colours = colours_of(run)
    for group in groups:
        timed = [
            row
            for row in group.rows
            if any(trial.figures.over_time for trial in row.trials)
        ]
        if timed:
            yield from _courses_of(group, timed, colours)


def _courses_of(
    group: Group, timed: Sequence[Row], colours: Mapping[str, str]
) -> Iterator[RowChart]:
    """Draw the arms of a group whose course is known."""
    rounds = max(len(row.trials) for row in timed)
    slices = rounds * SLICES
    trials = list(chain.from_iterable(row.trials for row in timed))
    fewest = min(trial.figures.requests for trial in trials) * rounds
    parts = max(_FEWEST_PARTS, fewest // _REQUESTS_OF_PART)
    parts = min(slices, _MOST_PARTS, parts)
    walls = [trial.figures.wall_seconds or 0.0 for trial in trials]
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
        seconds += [(trial.figures.wall_seconds or 0.0) / SLICES] * len(over_time)
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
