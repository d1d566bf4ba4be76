"""The charts of a run: ratios, times and other costs, latencies and courses in a row
per arm, and curves of sweeps.

`drawing` draws them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from clientlab import units
from clientlab.judging.comparison import Comparison
from clientlab.judging.find_max import typical_rate
from clientlab.judging.judgement import knee_text
from clientlab.judging.ranking import PARTS, arm_key, contrasts_by, shortfall
from clientlab.reports import rows as tables
from clientlab.reports.sections import ChartRow, Curve, RowChart, Sweep, SweepPoint
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figures import (
    BY_KEY,
    FIGURES,
    HIGHEST_RATE,
    Figure,
    cost_of,
    ranked_by,
)
from clientlab.results.plan import Arm, number_on
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE, decide
from clientlab.statistics.histogram import SLICES, Floats
from clientlab.statistics.ratios import Ratio, typical_figure
from clientlab.statistics.simultaneous import find_turning_point, sort_values
from clientlab.workload.load import is_open
from clientlab.workload.values import LINK_PARTS

# Okabe and Ito's palette for colour-blind readers (jfly.uni-koeln.de/color), with
# violet for yellow and grey for black, for a light and for a dark page. Every colour
# has a contrast of at least 3 with its page.
HUES = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#b8628f",
    "#b97f00",
    "#2f93cf",
    "#5b3df0",
    "#6b7280",
)
DARK_HUES = (
    "#3f9fe0",
    "#f07a3c",
    "#16b98c",
    "#dd97bf",
    "#e69f00",
    "#8fd0f5",
    "#8f7bff",
    "#9aa3ae",
)
_GREY = HUES[-1]

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
_UNLIKE = (
    "Compare arms of equal c: where arms wait for the server, one with twice the c"
    " takes half the time."
)
_LOGARITHMIC = (
    "The axis is logarithmic, so dots replace the bars. The text beside them is the"
    " typical value."
)
_SWEEP_NOTE = (
    "The line joins the medians of the rounds. A dot is one round. The band is the 95 %"
    " confidence interval."
)
_SEARCH_NOTE = (
    "A dot is one trial of the search, and the line joins the medians at each rate. The"
    " numbers are the highest rates that were held. A trial whose p99 is only a lower"
    " bound has no dot."
)
_KNEE_NOTE = (
    "The ring is the knee: the first point whose typical time is within 5 % of the"
    " least. If the 95 % intervals of all pairs leave several points, the knee lies"
    " between them and has no ring."
)

ChartMaker = Callable[[Run, Sequence[tables.Group]], Iterator[RowChart]]

# From this ratio of the largest to the least value on, dots on a logarithmic axis
# replace the bars.
_FAR_APART = 20.0
_QUANTILES = [BY_KEY[key] for key in ("p50", "p99", "p999")]
_BINS = 90
_MOST_PARTS, _FEWEST_PARTS = 120, 24  # into which a chart divides the measured time
_REQUESTS_OF_PART = 20  # at least, on average, unless there are too few parts
_COURSES = {"Requests per second": units.rate, "Errors": units.share, "p99": units.time}
_FEWEST_POINTS = 3
_MAIN_FIGURES = frozenset({"highest_rate", "throughput", "p99", "cpu"})
_EASIEST_AT_AN_END = frozenset({"rate", "stages", "rtt", "bandwidth"})
"""Axes along which the load grows or the link gets slower: a knee along them means
nothing.
"""


def colours_of(run: Run) -> dict[str, str]:
    """Map arms to colours: one for each strategy without its settings, in each
    environment and on each server.
    """
    kinds = {
        arm.name: (arm.strategy.partition("?")[0], arm.environment, arm.server)
        for arm in run.experiment.arms
    }
    different = list(dict.fromkeys(kinds.values()))
    return {
        name: HUES[different.index(kind) % len(HUES)] for name, kind in kinds.items()
    }


def log_limits(
    values: Iterable[float], ends: Iterable[float] = ()
) -> tuple[float, float]:
    """Return the ends of a logarithmic axis.

    The `ends` of intervals extend it by at most one half.
    """
    positive = [value for value in values if value > 0]
    low, high = min(positive), max(positive)
    shown = [*positive, *(min(max(end, low / 1.5), high * 1.5) for end in ends)]
    return min(shown) / 1.08, max(shown) * 1.08


def _ranking_label(figure: Figure) -> str:
    """Return the name of a figure that arms are ranked by."""
    return figure.label + (", from the planned start" if figure.key == "p99" else "")


def _charted_seconds(requests: int | None, figure: Figure) -> tuple[float, str]:
    """Return a factor for the seconds of the figure that ranks arms, and what a chart
    calls the product.
    """
    if figure is not ranked_by():
        return 1.0, _ranking_label(figure)
    count = requests or 1000
    return float(count), (
        "time for the request" if count == 1 else f"time for {count:,} requests"
    )


def comparisons(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Compare arms with those of another environment, server, link or route, and arms
    of each load with the fastest.

    Arms on an axis are left out: the lines of their sweep compare them.
    """
    arms, colours = run.experiment.arms, colours_of(run)
    for part in PARTS:
        pairs = contrasts_by(part, run)
        rows = [
            _ratio_row(
                f"{one.arm.name} over {one.base.name}",
                colours[one.arm.name],
                one.time,
                one.figure,
            )
            for one in pairs
            if one.time is not None and not one.arm.axes
        ]
        if rows:
            title = f"{part.capitalize()}s: {pairs[0].figure.label}"
            yield _forest_plot(title, rows, "times that of the second one")
    swept = {arm.name for arm in arms if arm.axes}
    for group in groups:
        what = f"{_ranking_label(group.ranks_by)}, times that of the fastest arm"
        if group.searched:
            what = f"{HIGHEST_RATE.label} of the fastest arm, times that of each arm"
        for load in group.by_load:
            ranked = [
                row
                for row in load
                if row.ratio is not None and math.isfinite(row.ratio.value)
            ]
            if len(ranked) < 2 or all(row.planned.arm in swept for row in load):
                continue
            place = f" · {group.place_of(load[0])}" if group.mixed else ""
            ratios = [(row, None if row.fastest else row.ratio) for row in ranked]
            rows = [
                _ratio_row(row.name, colours[row.planned.arm], ratio, group.ranks_by)
                for row, ratio in ratios
            ]
            yield _forest_plot(f"{group.title}{place}", rows, what)


def claim_ratios(claims: Sequence[ClaimResult]) -> list[RowChart]:
    """Draw the ratio of every claim with its confidence interval, against 1."""
    rows = [
        ChartRow(
            one.name,
            f"{units.ratio(one.ratio, one.interval)} {one.verdict}",
            _GREY,
            interval=one.interval,
            dots=[one.ratio],
        )
        for one in claims
        if one.ratio
    ]
    title = "Ratios with their 95 % confidence intervals"
    return (
        [_forest_plot(title, rows, "figure of the second arm over that of the first")]
        if rows
        else []
    )


def changes(comparison: Comparison) -> Iterator[RowChart]:
    """Draw the ratios of all compared runs to the baseline, in a chart for each arm and
    each of the main figures.
    """
    for arm, figure in itertools.product(
        comparison.compared_arms(), comparison.figures
    ):
        rows = []
        for one in comparison.others if figure.key in _MAIN_FIGURES else ():
            change = one.changes.get(arm, {}).get(figure.key)
            if change is not None and (ratio := change.ratio) is not None:
                text = f"{units.ratio_of(ratio)} {change.word}"
                rows.append(
                    ChartRow(
                        one.run.run,
                        text,
                        HUES[0],
                        interval=ratio.interval,
                        dots=[ratio.value],
                    )
                )
        if rows:
            yield _forest_plot(
                f"{arm}: {figure.label}", rows, "times that of the baseline"
            )


def _ratio_row(name: str, colour: str, ratio: Ratio | None, figure: Figure) -> ChartRow:
    """Return the row of a figure's ratio and what it says.

    Without one, it is the arm that others are compared with.
    """
    if ratio is None:
        return ChartRow(name, "1", colour, dots=[1.0], first=True)
    word = decide(ratio).word
    words = {"slower": figure.direction.worse, "faster": figure.direction.better}
    text = f"{units.ratio_of(ratio)} {words.get(word, word)}"
    return ChartRow(name, text, colour, interval=ratio.interval, dots=[ratio.value])


def _forest_plot(title: str, rows: Sequence[ChartRow], axis: str) -> RowChart:
    """Return the chart of at least one row, each with a ratio above 0 as its dot."""
    ends = [end for row in rows for end in row.interval or ()]
    low, high = log_limits(
        [1 / EQUAL, EQUAL, *(ratio for row in rows for ratio in row.dots)], ends
    )
    notes = [f"{axis} (logarithmic)"]
    return RowChart(
        title,
        rows,
        notes,
        low,
        high,
        lambda ratio: f"{ratio:g}×",
        log=True,
        ratios=True,
    )


def times(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Draw the time of each arm, in a chart for each group.

    Groups that lie on the curves of sweeps have none.
    """
    on_curves = {
        point.arm
        for sweep in sweeps_of(run)
        for curve in sweep.curves
        for point in curve.points
    }
    colours = colours_of(run)
    for group in groups:
        if all(row.planned.arm in on_curves for row in group.rows):
            continue
        factor, label = _charted_seconds(group.requests, group.ranks_by)
        rows = []
        for row in group.rows:
            rounds = [cost_of(trial) for trial in row.trials]
            found = typical_figure(dict(enumerate(rounds)))
            ends = found.with_value(row.level).interval if found else None
            rows.append(
                ChartRow(
                    group.name_of(row),
                    units.time(row.level * factor)
                    + (" ⚠ errors" if row.errors else ""),
                    colours[row.planned.arm],
                    row.level * factor,
                    ends and (ends[0] * factor, ends[1] * factor),
                    [seconds * factor for seconds in rounds],
                    first=row.first,
                )
            )
        load = "" if group.mixed else f", c={group.rows[0].planned.concurrency}"
        notes = [f"{label}{load}; less is better"]
        notes += (
            [_UNLIKE]
            if len({row.planned.concurrency for row in group.rows}) > 1
            else []
        )
        yield _bars(group.title, rows, notes)


def costs(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Draw every cost besides time that the trials of a group have."""
    colours = colours_of(run)
    for group, figure in itertools.product(
        groups, [figure for figure in FIGURES if figure.cost]
    ):
        size = (
            1 << 20 if figure.unit == "bytes" else 1
        )  # so that ticks are round numbers of MiB
        rows = []
        for row in group.rows if group.shows(figure) else ():
            if (typical := row.figures[figure.key]) is not None:
                name, rounds = (
                    group.name_of(row),
                    [value / size for value in figure.values(row.trials)],
                )
                bar, colour = typical / size, colours[row.planned.arm]
                rows.append(
                    ChartRow(
                        name,
                        row.text(figure),
                        colour,
                        bar,
                        dots=rounds,
                        first=row.first,
                    )
                )
        if rows:
            title = (
                figure.title if len(groups) == 1 else f"{figure.title} · {group.title}"
            )
            yield _bars(title, rows, [figure.description], figure.unit, size)


def _bars(
    title: str,
    rows: Sequence[ChartRow],
    notes: Sequence[str],
    unit: units.Unit = "seconds",
    size: int = 1,
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
    """Draw the latencies of the arms as areas, in a chart for each group that has
    latencies.
    """
    colours = colours_of(run)
    for group in groups:
        found = [
            (row, answered)
            for row in group.rows
            if (answered := row.answered) is not None
        ]
        if not found:
            continue
        rings = [
            [
                ring
                for figure in _QUANTILES
                if figure.key not in row.bounds and (ring := row.figures[figure.key])
            ]
            for row, _ in found
        ]
        ends = [
            seconds
            for _, answered in found
            for seconds in answered.quantiles(np.array([0.0, 0.999])).tolist()
        ]
        low, high = log_limits([*ends, *itertools.chain.from_iterable(rings)])
        edges = np.geomspace(low, high, _BINS + 1)
        rows = []
        for (row, answered), marks in zip(found, rings, strict=True):
            shares = answered.shares(edges)
            name, text = (
                group.name_of(row),
                " · ".join(row.text(figure) for figure in _QUANTILES),
            )
            heights, colour = (shares / shares.max()).tolist(), colours[row.planned.arm]
            rows.append(
                ChartRow(
                    name, text, colour, rings=marks, heights=heights, first=row.first
                )
            )
        delay = run.experiment.workloads[group.rows[0].planned.workload].delay
        requested = "" if delay is None else f", with the requested delay of {delay}"
        notes = [f"latency (logarithmic){requested}"]
        notes += (
            [f"{tables.WAITS} holds the wait for a free connection."]
            if any(row.waits for row, _ in found)
            else []
        )
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


def courses(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Draw requests per second, errors and p99 of each arm over its measured time, in
    charts for each group.
    """
    colours = colours_of(run)
    for group in groups:
        timed = [
            row
            for row in group.rows
            if any(trial.figures.over_time for trial in row.trials)
        ]
        if not timed:
            continue
        length = max(len(row.trials) for row in timed) * SLICES
        trials = [trial for row in timed for trial in row.trials]
        fewest = min(trial.figures.requests for trial in trials) * length // SLICES
        count = min(
            length, _MOST_PARTS, max(_FEWEST_PARTS, fewest // _REQUESTS_OF_PART)
        )
        walls = [trial.figures.wall_seconds or 0.0 for trial in trials]
        tick: Callable[[float], str] = units.time
        end = max(walls) * length / SLICES
        if max(walls) > 1.1 * min(
            walls
        ):  # a number of requests takes another time in each arm
            tick, end = "{:g} rounds".format, length / SLICES
        edges = np.linspace(0.0, end, count + 1).tolist()
        found = zip(*(_course_of(row, count, length) for row in timed), strict=True)
        for (title, text), course in zip(_COURSES.items(), found, strict=True):
            rows = []
            for row, values in zip(timed, course, strict=True):
                least = np.nanmin(values, initial=math.inf)
                most = np.nanmax(values, initial=0.0)
                if most:
                    ends = f"{text(least)} to {text(most)}"
                    heights = (np.nan_to_num(values) / most).tolist()
                    rows.append(
                        ChartRow(
                            group.name_of(row),
                            ends,
                            colours[row.planned.arm],
                            heights=heights,
                        )
                    )
            if rows:
                yield RowChart(
                    f"{title} · {group.title}",
                    rows,
                    [title],
                    0.0,
                    end,
                    tick,
                    edges=edges,
                )


def _course_of(
    row: tables.Row, count: int, length: int
) -> tuple[Floats, Floats, Floats]:
    """Return the rate, the share of errors and the p99 of an arm in `count` parts of
    its time; NaN if unknown.

    `length`: the slices of an arm with all rounds.
    """
    slices = [one for trial in row.trials for one in trial.figures.over_time]
    seconds = [
        (trial.figures.wall_seconds or 0.0) / SLICES
        for trial in row.trials
        for _ in trial.figures.over_time
    ]
    places = np.arange(len(slices)) * count // length
    known = np.array(
        [(one.requests, one.errors, one.p99) for one in slices], np.float64
    )
    ended, failed, spent = (
        np.bincount(places, part, count) for part in (known[:, 0], known[:, 1], seconds)
    )
    p99s = np.full(count, np.nan)
    np.fmax.at(p99s, places, known[:, 2])
    with np.errstate(invalid="ignore"):
        return (ended - failed) / spent, failed / ended, p99s


def sweeps_of(run: Run) -> list[Sweep]:
    """Return a sweep for each axis, upstream, route and link, with a curve for all arms
    that have three values on it.

    Rounds in which requests failed are left out, as in claims. Searches for the highest
    rate are swept along rates.
    """
    found: dict[tuple[str, str, bool], dict[str, list[Arm]]] = {}
    for arm in run.experiment.arms:
        for axis in arm.axes:
            # If the parts of a link are axes, the names of curves have them.
            link = (
                []
                if arm.link is None or arm.axes.keys() & set(LINK_PARTS)
                else [f"link of {arm.link}"]
            )
            where = " · ".join([axis, f"{arm.upstream} upstream", arm.route, *link])
            strategy, _, settings = arm.strategy.partition("?")
            kept = "&".join(
                one
                for one in settings.split("&")
                if one.partition("=")[0] not in arm.axes
            )
            others = [
                f"{key}={value}" for key, value in arm.axes.items() if key != axis
            ]
            name = ", ".join(
                [arm.sweep or "?".join(filter(None, (strategy, kept))), *others]
            )
            open_load = is_open(run.experiment.workloads[arm.workload])
            found.setdefault((axis, where, open_load), {}).setdefault(name, []).append(
                arm
            )
    sweeps = [
        _sweep(run, axis, title, arms) for (axis, title, _), arms in found.items()
    ]
    return [*(sweep for sweep in sweeps if sweep.curves), *_searches_of(run)]


def _searches_of(run: Run) -> Iterator[Sweep]:
    """Yield a chart for each group of searches for the highest rate: p99 against the
    rate of each trial.
    """
    colours, p99 = colours_of(run), BY_KEY["p99"]
    found: dict[str, list[Curve]] = {}
    for arm in run.experiment.arms:
        by_rate: dict[float, dict[int, float]] = {}
        for trial in run.probes:
            rate = trial.planned.search_rate
            if trial.planned.arm == arm.name and rate and not p99.has_bounds([trial]):
                for seconds in p99.values([trial]):
                    by_rate.setdefault(rate, {})[trial.planned.order] = seconds
        points = []
        for rate, series in sorted(by_rate.items()):
            if typical := typical_figure(series):
                points.append(SweepPoint(rate, rate, arm.name, typical, series))
        if points:
            group, name = arm_key(arm)
            label = (
                f"{name}: {units.ratio_of(typical_rate(run.trials_of(arm.name)))}"
                " requests/s"
            )
            found.setdefault(group.title, []).append(
                Curve(label, colours[arm.name], points, None, None)
            )
    for title, curves in found.items():
        rates = {point.place for curve in curves for point in curve.points}
        ticks = {rate: units.rate(rate) for rate in sorted(rates)}
        yield Sweep(
            title,
            "requests per second",
            _ranking_label(p99),
            ticks,
            True,
            curves,
            [_SEARCH_NOTE],
        )


def _sweep(
    run: Run, axis: str, title: str, arms_by_name: dict[str, list[Arm]]
) -> Sweep:
    every = [arm for arms in arms_by_name.values() for arm in arms]
    counts = {run.experiment.workloads[arm.workload].requests for arm in every}
    ranks_by = ranked_by(trial for arm in every for trial in run.trials_of(arm.name))
    factor, seconds = _charted_seconds(
        counts.pop() if len(counts) == 1 else None, ranks_by
    )
    numbers = {arm.axes[axis]: number_on(axis, arm) for arm in every}
    places = {value: number for value, number in numbers.items() if number is not None}
    numeric = len(places) == len(numbers)
    if not numeric:  # texts stand at even distances
        places = {
            value: float(index)
            for index, value in enumerate(sort_values(list(numbers)))
        }
    curves, colours = [], colours_of(run)
    for name, arms in arms_by_name.items():
        points = []
        for arm in arms:
            trials = [
                trial for trial in run.trials_of(arm.name) if trial.status == "done"
            ]
            rounds = {
                trial.planned.round: factor * cost_of(trial)
                for trial in trials
                if not trial.figures.errors
            }
            typical = typical_figure(rounds)
            if typical is not None and not shortfall(trials):
                points.append(
                    SweepPoint(
                        arm.axes[axis],
                        places[arm.axes[axis]],
                        arm.name,
                        typical,
                        rounds,
                    )
                )
        if len(points) >= _FEWEST_POINTS:
            points.sort(key=lambda point: point.place)
            turn = (
                None
                if axis in _EASIEST_AT_AN_END
                else find_turning_point([point.rounds for point in points])
            )
            label = (
                f"{name}: {knee_text([point.value for point in points], turn.between)}"
                if turn
                else name
            )
            knee = (
                points[turn.knee]
                if turn and turn.between == (turn.knee, turn.knee)
                else None
            )
            curves.append(Curve(label, colours[arms[0].name], points, turn, knee))
    ticks = {
        place: value if isinstance(value, str) else units.digits(value)
        for value, place in places.items()
    }
    notes = [
        _SWEEP_NOTE,
        *([_KNEE_NOTE] if any(curve.turn for curve in curves) else []),
    ]
    return Sweep(
        title, axis, seconds, dict(sorted(ticks.items())), numeric, curves, notes
    )
