"""Charts of a history: the levels of an arm in each run with their intervals, and the level between two changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clientlab import units
from clientlab.judging.history import LineHistory, Track
from clientlab.reports.charts.chart_data import NEUTRAL, Look, colour_of
from clientlab.reports.charts.shapes import (
    FEW_TICKS,
    HALF,
    MOST_TICKS,
    NARROW,
    ChartPanel,
    DataTable,
    Line,
    LineChart,
    Point,
    Scale,
    Tick,
    placed,
)
from clientlab.reports.history import day_of, heading, in_order, size

MOST_CHARTS = 400
"""Small charts of a page. Each takes about 3 kB."""

_ROOM = 0.15
"""Above the highest and below the lowest level, as a share of their distance."""
_LEAST_SPAN = 0.04
"""Of an axis, as a share of its value: levels that hardly differ are no mountains."""

NOTE = (
    "A dot is the level of a run, the band its 95 % confidence interval from the rounds. The grey line is the typical "
    "level between two changes. The axis does not begin at 0."
)


def changed(found: LineHistory) -> list[LineChart]:
    """A large chart for each arm and figure that changed, those of the newest change first."""
    tracks = [track for track in in_order(found) if track.steps]
    tracks.sort(key=lambda track: -track.steps[-1].at)
    return [_chart(found, track, small=False) for track in tracks]


def panels(found: LineHistory) -> list[ChartPanel]:
    """A panel for each figure with a small chart for each arm; figures that changed first."""
    tracks = in_order(found)[:MOST_CHARTS]
    figures = list(dict.fromkeys(track.figure for track in tracks))
    figures.sort(key=lambda figure: not any(track.steps for track in tracks if track.figure is figure))
    return [
        ChartPanel(
            figure.label,
            panels=[
                ChartPanel(track.arm, [_chart(found, track, small=True)]) for track in tracks if track.figure is figure
            ],
        )
        for figure in figures
    ]


def _chart(found: LineHistory, track: Track, *, small: bool) -> LineChart:
    x = Scale(0.0, max(1.0, len(track.levels) - 1.0))
    y = _upright(track)
    levels = _levels(track, x, y, _look(found, track))
    typical = Line("typical level", NEUTRAL, placed(_typical(track), x, y), f"{track.arm}: typical levels", thin=True)
    title = heading(track) if small else f"{track.arm}: {track.figure.label}"
    changes = [f"{size(track, step)} since run {found.line.runs[step.at].run.run}" for step in track.steps]
    summary = f"{track.arm}, {track.figure.label}: {'; '.join(changes) or 'no change'} in {track.runs} runs."
    return LineChart(
        title=title,
        lines=[typical, levels],
        x_ticks=_days(found, x, small=small),
        y_ticks=y.ticks(track.text, FEW_TICKS if small else MOST_TICKS),
        x_axis="" if small else "runs, by the day of their begin (UTC)",
        y_axis="" if small else track.figure.label,
        summary=summary,
        notes=[] if small else [summary, NOTE],
        table=None if small else _table(found, track),
        small=small,
    )


def _look(found: LineHistory, track: Track) -> Look:
    """That of the arm's strategy."""
    arms = {arm.name: arm for past in found.line.runs for arm in past.run.experiment.arms}
    return Look(colour_of(arms[track.arm].strategy)) if track.arm in arms else NEUTRAL


def _upright(track: Track) -> Scale:
    """An axis around the levels and the intervals, which are cut where they are far wider than the levels differ."""
    known = [level for level in track.levels if level is not None]
    values = [level.value for level in known]
    middle = max(abs(value) for value in values) or 1.0
    span = max(max(values) - min(values), _LEAST_SPAN * middle)
    ends = [end for level in known for end in level.interval or ()]
    low = max(min([*values, *ends]), min(values) - span)
    high = min(max([*values, *ends]), max(values) + span)
    return Scale(max(0.0, low - _ROOM * span), high + _ROOM * span)


def _levels(track: Track, x: Scale, y: Scale, look: Look) -> Line:
    points: list[Point] = [(float(at), None if level is None else level.value) for at, level in enumerate(track.levels)]
    return Line(
        name="level of a run",
        look=look,
        points=placed(points, x, y),
        title=f"{track.arm}: levels",
        thin=True,
        band=[
            (x.position(at), y.position(level.interval[0]), y.position(level.interval[1]))
            for at, level in enumerate(track.levels)
            if level is not None and level.interval is not None
        ],
        dots=[(x.position(at), y.position(level.value)) for at, level in enumerate(track.levels) if level is not None],
    )


def _typical(track: Track) -> Iterable[Point]:
    """The typical level of each part, with a gap where a new one begins."""
    for part in track.segments:
        level = track.level_of(part)
        yield from [(float(part.start), level), (float(part.stop - 1), level), (float(part.stop - 1), None)]


def _days(found: LineHistory, x: Scale, *, small: bool) -> list[Tick]:
    """The days of some runs, as many as have room."""
    runs = [past.run.created for past in found.line.runs]
    pixels, letters = (HALF, 10) if small else (NARROW, 10)
    most = max(1, int(pixels / (7.0 * (letters + 2))))
    places = sorted({round(index * (len(runs) - 1) / most) for index in range(most + 1)})
    return [Tick(x.position(place), day_of(runs[place])) for place in places]


def _table(found: LineHistory, track: Track) -> DataTable:
    rows = [_row(found, track, at) for at in range(len(track.levels)) if track.levels[at] is not None]
    return DataTable(["run", "day", "level", "95 % interval", "change"], rows, texts=(1, 4))


def _row(found: LineHistory, track: Track, at: int) -> Sequence[str]:
    run, level = found.line.runs[at].run, track.levels[at]
    ends = level.interval if level is not None else None
    change = next((size(track, step) for step in track.steps if step.at == at), "")
    return [
        run.run,
        day_of(run.created),
        track.text(level.value if level is not None else None),
        " to ".join(map(track.text, ends)) if ends else units.UNKNOWN,
        change,
    ]
