"""The charts of a run: rows of ratios, costs, latencies and courses, and sweeps.

`drawing` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from operator import itemgetter

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
from clientlab.results.plan import Arm, AxisValue, number_on
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE, decide
from clientlab.statistics.histogram import SLICES, Floats
from clientlab.statistics.ratios import Ratio, typical_figure
from clientlab.statistics.sweeps import find_turning_point, sort_values
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
# The parts into which a chart divides the measured time.
_MOST_PARTS = 120
_FEWEST_PARTS = 24
_REQUESTS_OF_PART = 20  # at least, on average, unless there are too few parts
_COURSES = {
    "Requests per second": units.rate,
    "Errors": units.share,
    "p99": units.time,
}
_FEWEST_POINTS = 3
_MAIN_FIGURES = frozenset({"highest_rate", "throughput", "p99", "cpu"})
# Along these axes the load grows or the link gets slower, so a knee means nothing.
_EASIEST_AT_AN_END = frozenset({"rate", "stages", "rtt", "bandwidth"})


def colours_of(run: Run) -> dict[str, str]:
    """Map arms to colours.

    Arms differ in colour if their strategies differ by more than settings, or if their
    environments or servers differ.
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
    low = min(positive) / 1.5
    high = max(positive) * 1.5
    shown = [*positive, *(min(max(end, low), high) for end in ends)]
    return min(shown) / 1.08, max(shown) * 1.08


def _ranking_label(figure: Figure) -> str:
    """Return the name of a figure that arms are ranked by."""
    if figure.key == "p99":
        return f"{figure.label}, from the planned start"
    return figure.label


def _charted_seconds(requests: int | None, figure: Figure) -> tuple[float, str]:
    """Return a factor for the figure that ranks arms, and the name of the product.

    The time per request is multiplied by the `requests` of a trial.
    """
    if figure is not ranked_by():
        return 1.0, _ranking_label(figure)
    count = requests or 1000
    what = "the request" if count == 1 else f"{count:,} requests"
    return float(count), f"time for {what}"


def comparisons(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Compare arms that differ in one part, and those of each load with the fastest.

    Arms on an axis are left out: the lines of their sweep compare them.
    """
    colours = colours_of(run)
    for part in PARTS:
        contrasts = contrasts_by(part, run)
        rows = [
            _ratio_row(
                f"{contrast.arm.name} over {contrast.base.name}",
                colours[contrast.arm.name],
                contrast.time,
                contrast.figure,
            )
            for contrast in contrasts
            if contrast.time is not None and not contrast.arm.axes
        ]
        if rows:
            title = f"{part.capitalize()}s: {contrasts[0].figure.label}"
            yield _forest_plot(title, rows, "times that of the second one")
    swept = {arm.name for arm in run.experiment.arms if arm.axes}
    for group in groups:
        axis = f"{_ranking_label(group.ranks_by)}, times that of the fastest arm"
        if group.searched:
            axis = f"{HIGHEST_RATE.label} of the fastest arm, times that of each arm"
        for load in group.by_load:
            rows = [
                _ratio_row(
                    row.name,
                    colours[row.planned.arm],
                    None if row.fastest else row.ratio,
                    group.ranks_by,
                )
                for row in load
                if row.ratio is not None and math.isfinite(row.ratio.value)
            ]
            if len(rows) > 1 and not all(row.planned.arm in swept for row in load):
                title = group.title
                if group.mixed:
                    title += f" · {group.place_of(load[0])}"
                yield _forest_plot(title, rows, axis)


def claim_ratios(claims: Iterable[ClaimResult]) -> Iterator[RowChart]:
    """Draw the ratio of every claim with its confidence interval, against 1."""
    rows = [
        ChartRow(
            claim.name,
            f"{units.ratio(claim.ratio, claim.interval)} {claim.verdict}",
            _GREY,
            interval=claim.interval,
            dots=[claim.ratio],
        )
        for claim in claims
        if claim.ratio
    ]
    if rows:
        title = "Ratios with their 95 % confidence intervals"
        yield _forest_plot(
            title, rows, "figure of the second arm over that of the first"
        )


def changes(comparison: Comparison) -> Iterator[RowChart]:
    """Draw the ratios of all runs to the baseline, by arm and main figure."""
    figures = [figure for figure in comparison.figures if figure.key in _MAIN_FIGURES]
    for arm, figure in product(comparison.compared_arms(), figures):
        rows = []
        for compared in comparison.others:
            change = compared.changes.get(arm, {}).get(figure.key)
            if change is not None and change.ratio is not None:
                text = f"{units.ratio_of(change.ratio)} {change.word}"
                rows.append(
                    ChartRow(
                        compared.run.run,
                        text,
                        HUES[0],
                        interval=change.ratio.interval,
                        dots=[change.ratio.value],
                    )
                )
        if rows:
            title = f"{arm}: {figure.label}"
            yield _forest_plot(title, rows, "times that of the baseline")


def _ratio_row(
    name: str,
    colour: str,
    ratio: Ratio | None,
    figure: Figure,
) -> ChartRow:
    """Return the row of a figure's ratio and what it says.

    Without one, it is the arm that others are compared with.
    """
    if ratio is None:
        return ChartRow(
            name,
            "1",
            colour,
            dots=[1.0],
            first=True,
        )
    word = decide(ratio).word
    words = {
        "slower": figure.direction.worse,
        "faster": figure.direction.better,
    }
    text = f"{units.ratio_of(ratio)} {words.get(word, word)}"
    return ChartRow(
        name,
        text,
        colour,
        interval=ratio.interval,
        dots=[ratio.value],
    )


def _forest_plot(title: str, rows: Sequence[ChartRow], axis: str) -> RowChart:
    """Return the chart of at least one row, each with a ratio above 0 as its dot."""
    ratios = chain.from_iterable(row.dots for row in rows)
    ends = chain.from_iterable(row.interval or () for row in rows)
    low, high = log_limits([1 / EQUAL, EQUAL, *ratios], ends)
    return RowChart(
        title,
        rows,
        [f"{axis} (logarithmic)"],
        low,
        high,
        "{:g}×".format,
        log=True,
        ratios=True,
    )


def times(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Draw the time of each arm, in a chart for each group.

    Groups that lie on the curves of sweeps have none.
    """
    on_curves = set()
    for curve in chain.from_iterable(sweep.curves for sweep in sweeps_of(run)):
        on_curves |= {point.arm for point in curve.points}
    colours = colours_of(run)
    for group in groups:
        if on_curves.issuperset(row.planned.arm for row in group.rows):
            continue
        factor, label = _charted_seconds(group.requests, group.ranks_by)
        rows = []
        for row in group.rows:
            rounds = [cost_of(trial) for trial in row.trials]
            typical = typical_figure(dict(enumerate(rounds)))
            interval = (
                typical.with_value(row.standing.level).interval if typical else None
            )
            if interval:
                interval = interval[0] * factor, interval[1] * factor
            text = units.time(row.standing.level * factor)
            if row.errors:
                text += " ⚠ errors"
            rows.append(
                ChartRow(
                    group.name_of(row),
                    text,
                    colours[row.planned.arm],
                    row.standing.level * factor,
                    interval,
                    [seconds * factor for seconds in rounds],
                    first=row.first,
                )
            )
        if not group.mixed:
            label += f", c={group.rows[0].planned.concurrency}"
        notes = [f"{label}; less is better"]
        if len({row.planned.concurrency for row in group.rows}) > 1:
            notes.append(_UNLIKE)
        yield _bars(group.title, rows, notes)


def costs(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
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
                rows.append(
                    ChartRow(
                        group.name_of(row),
                        row.text(figure),
                        colours[row.planned.arm],
                        typical / size,
                        dots=[value / size for value in figure.values(row.trials)],
                        first=row.first,
                    )
                )
        if rows:
            title = figure.title
            if len(groups) > 1:
                title += f" · {group.title}"
            yield _bars(
                title,
                rows,
                [figure.description],
                figure.unit,
                size,
            )


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
        return RowChart(
            title,
            rows,
            [*notes, _LOGARITHMIC],
            low,
            high,
            tick,
            log=True,
        )
    shown = max(most, min(max(ends, default=0.0), 1.5 * most))
    return RowChart(
        title,
        rows,
        notes,
        0.0,
        1.04 * shown or 1.0,
        tick,
    )


def distributions(run: Run, groups: Iterable[tables.Group]) -> Iterator[RowChart]:
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
            rows.append(
                ChartRow(
                    group.name_of(row),
                    " · ".join(map(row.text, _QUANTILES)),
                    colours[row.planned.arm],
                    rings=_rings_of(row),
                    heights=(shares / shares.max()).tolist(),
                    first=row.first,
                )
            )
        notes = ["latency (logarithmic)"]
        delay = run.experiment.workloads[group.rows[0].planned.workload].delay
        if delay is not None:
            notes[0] += f", with the requested delay of {delay}"
        if any(row.waits for row, _ in known):
            notes.append(f"{tables.WAITS} holds the wait for a free connection.")
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


def _rings_of(row: tables.Row) -> list[float]:
    """Return the quantiles of an arm that are no lower bounds."""
    known = [
        row.figures[figure.key] for figure in _QUANTILES if figure.key not in row.bounds
    ]
    return [seconds for seconds in known if seconds]


def courses(run: Run, groups: Sequence[tables.Group]) -> Iterator[RowChart]:
    """Draw requests per second, errors and p99 of each arm over its measured time."""
    colours = colours_of(run)
    for group in groups:
        timed = [
            row
            for row in group.rows
            if any(trial.figures.over_time for trial in row.trials)
        ]
        if not timed:
            continue
        trials = list(chain.from_iterable(row.trials for row in timed))
        rounds = max(len(row.trials) for row in timed)
        slices = rounds * SLICES
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
                    rows.append(
                        ChartRow(
                            group.name_of(row),
                            f"{text(least)} to {text(most)}",
                            colours[row.planned.arm],
                            heights=(np.nan_to_num(values) / most).tolist(),
                        )
                    )
            if rows:
                full_title = f"{title} · {group.title}"
                yield RowChart(
                    full_title,
                    rows,
                    [title],
                    0.0,
                    end,
                    tick,
                    edges=edges,
                )


def _course_of(row: tables.Row, parts: int, slices: int) -> dict[str, Floats]:
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


def sweeps_of(run: Run) -> list[Sweep]:
    """Return the sweeps of a run, with a curve for arms with three values on an axis.

    There is one for each axis, upstream, route and link. Rounds in which requests
    failed are left out, as in claims. Searches for the highest rate are swept along
    rates.
    """
    found: dict[tuple[str, str, bool], dict[str, list[Arm]]] = {}
    for arm in run.experiment.arms:
        open_load = is_open(run.experiment.workloads[arm.workload])
        for axis in arm.axes:
            parts = [axis, f"{arm.upstream} upstream", arm.route]
            # If the parts of a link are axes, the names of curves have them.
            if arm.link is not None and arm.axes.keys().isdisjoint(LINK_PARTS):
                parts.append(f"link of {arm.link}")
            curves = found.setdefault((axis, " · ".join(parts), open_load), {})
            curves.setdefault(_curve_name(arm, axis), []).append(arm)
    sweeps = [
        _sweep(run, axis, title, curves) for (axis, title, _), curves in found.items()
    ]
    return [*(sweep for sweep in sweeps if sweep.curves), *_searches_of(run)]


def _curve_name(arm: Arm, axis: str) -> str:
    """Return what an arm has in common with the others of its curve along an axis."""
    strategy, _, settings = arm.strategy.partition("?")
    kept = [
        setting
        for setting in settings.split("&")
        if setting.partition("=")[0] not in arm.axes
    ]
    name = "?".join(filter(None, (strategy, "&".join(kept))))
    others = [f"{key}={value}" for key, value in arm.axes.items() if key != axis]
    return ", ".join([arm.sweep or name, *others])


def _searches_of(run: Run) -> Iterator[Sweep]:
    """Yield the searches of each group: p99 against the rate of each trial."""
    colours = colours_of(run)
    p99 = BY_KEY["p99"]
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
            typical = typical_figure(series)
            if typical is not None:
                points.append(SweepPoint(rate, rate, arm.name, typical, series))
        if points:
            group, name = arm_key(arm)
            highest = units.ratio_of(typical_rate(run.trials_of(arm.name)))
            label = f"{name}: {highest} requests/s"
            curve = Curve(label, colours[arm.name], points, None, None)
            found.setdefault(group.title, []).append(curve)
    for title, curves in found.items():
        rates: set[float] = set()
        for curve in curves:
            rates.update(point.place for point in curve.points)
        yield Sweep(
            title,
            "requests per second",
            _ranking_label(p99),
            {rate: units.rate(rate) for rate in sorted(rates)},
            True,
            curves,
            [_SEARCH_NOTE],
        )


def _sweep(
    run: Run, axis: str, title: str, arms_by_name: Mapping[str, Sequence[Arm]]
) -> Sweep:
    """Return the chart of the curves along an axis."""
    every = list(chain.from_iterable(arms_by_name.values()))
    counts = {run.experiment.workloads[arm.workload].load.requests for arm in every}
    trials = chain.from_iterable(run.trials_of(arm.name) for arm in every)
    requests = counts.pop() if len(counts) == 1 else None
    factor, label = _charted_seconds(requests, ranked_by(trials))
    numbers = {arm.axes[axis]: number_on(axis, arm) for arm in every}
    places = {value: number for value, number in numbers.items() if number is not None}
    numeric = len(places) == len(numbers)
    if not numeric:  # texts stand at even distances
        values = sort_values(list(numbers))
        places = {value: float(index) for index, value in enumerate(values)}
    colours = colours_of(run)
    curves = []
    for name, arms in arms_by_name.items():
        points = list(_points(run, arms, axis, places, factor))
        if len(points) >= _FEWEST_POINTS:
            curves.append(_curve(name, colours[arms[0].name], points, axis))
    ticks = {
        place: value if isinstance(value, str) else units.digits(value)
        for value, place in sorted(places.items(), key=itemgetter(1))
    }
    notes = [_SWEEP_NOTE]
    if any(curve.turn for curve in curves):
        notes.append(_KNEE_NOTE)
    return Sweep(
        title,
        axis,
        label,
        ticks,
        numeric,
        curves,
        notes,
    )


def _points(
    run: Run,
    arms: Sequence[Arm],
    axis: str,
    places: Mapping[AxisValue, float],
    factor: float,
) -> Iterator[SweepPoint]:
    """Yield the arms of a curve in the order of the axis, unless they fell short."""
    for arm in sorted(arms, key=lambda arm: places[arm.axes[axis]]):
        trials = run.finished_trials_of(arm.name)
        rounds = {
            trial.planned.round: factor * cost_of(trial)
            for trial in trials
            if not trial.figures.errors
        }
        typical = typical_figure(rounds)
        if typical is not None and not shortfall(trials):
            value = arm.axes[axis]
            yield SweepPoint(value, places[value], arm.name, typical, rounds)


def _curve(
    name: str,
    colour: str,
    points: Sequence[SweepPoint],
    axis: str,
) -> Curve:
    """Return the curve of some points, with its knee if the axis can have one."""
    if axis in _EASIEST_AT_AN_END:
        return Curve(name, colour, points, None, None)
    turn = find_turning_point([point.rounds for point in points])
    text = knee_text([point.value for point in points], turn.between)
    is_known = turn.between == (turn.knee, turn.knee)
    knee = points[turn.knee] if is_known else None
    return Curve(
        f"{name}: {text}",
        colour,
        points,
        turn,
        knee,
    )
