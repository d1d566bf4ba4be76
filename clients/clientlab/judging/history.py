"""The history of an experiment: of each arm and figure, its level in each run, and since which run it is another one.

A run as a whole differs from the next: another day, another neighbour, another layout of memory. All arms of a run have
that in common. With four arms or more, each arm is judged by its ratio to the median of the others, each relative to
its own usual level, and what all arms have in common is a series of its own. With fewer arms, their levels are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clientlab.analysis.change_points import (
    ChangePoint,
    change_points,
    detectable_change,
    fewest_runs,
    runs_until_shown,
    segments,
)
from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Estimate
from clientlab.analysis.typical import Floats, typical, typical_interval
from clientlab.analysis.unpaired import unpaired_difference, unpaired_ratio
from clientlab.judging.history_lines import HistoryLine
from clientlab.results.figure_definition import Figure

FEWEST_ARMS = 4
"""With fewer arms, the median of the others follows one that changed."""

ALL_ARMS = "all arms"
"""The series of what the arms have in common."""

SMALLEST = 0.01
"""Smaller changes of figures that are no shares are left out: some memory and counts differ by less for ever."""

_USUAL = 0.5
"""Share of the runs that an arm must be in to count among the others."""
_PLACES = 9
"""Decimals of a logarithm: what is equal must not differ by the rounding of computations."""


@dataclass(frozen=True)
class Step:
    """A change of the level. `at`: the first run of the new level. `before`, `after`: typical levels on both sides.

    `ratio`: after over before, as the series is judged, with the interval from the runs of both sides; of a series
    with values of 0 or of shares, `difference` takes its place. `chance`: share of histories without a change that
    show as much. `worse`: whether it is a change for the worse.
    """

    at: int
    before: float
    after: float
    ratio: Estimate | None
    difference: Estimate | None
    chance: float
    worse: bool


@dataclass(frozen=True)
class Track:
    """A figure of an arm over the runs of a line; of `ALL_ARMS`, what they have in common, 1 for the usual.

    `levels`: in each run, with the interval from its rounds; None where the run has none. `judged`: what was tested,
    logarithms if `logs`. `relative`: whether these are ratios to the other arms.
    """

    arm: str
    figure: Figure
    levels: list[Estimate | None]
    judged: Floats
    logs: bool
    relative: bool
    steps: list[Step]

    @property
    def runs(self) -> int:
        """How many runs have the figure."""
        return sum(level is not None for level in self.levels)

    @property
    def segments(self) -> list[range]:
        """The runs of each level."""
        return list(segments([ChangePoint(step.at, step.chance) for step in self.steps], len(self.levels)))

    def level_of(self, runs: range) -> float | None:
        """The typical level of these runs."""
        known = [level.value for index in runs if (level := self.levels[index]) is not None]
        return float(np.median(known)) if known else None

    def text(self, value: float | None) -> str:
        """A level as reports show it."""
        if self.arm == ALL_ARMS and value is not None:
            return f"{value:.3f}"
        return self.figure.text(value)


@dataclass(frozen=True)
class LineHistory:
    """The history of a line. `series`: how many vary, and thus can raise a false alarm. `limit`: as of `Changes`."""

    line: HistoryLine
    tracks: list[Track]
    series: int
    limit: float

    @property
    def runs(self) -> int:
        """The runs of the line."""
        return len(self.line.runs)

    @cached_property
    def missing(self) -> int:
        """How many more runs would show a change in the middle; 0 if there are enough."""
        return max(0, fewest_runs(max(1, self.series)) - self.runs)

    @cached_property
    def soonest(self) -> int | None:
        """How many runs after a change are the fewest that show it."""
        return runs_until_shown(self.runs, max(1, self.series))

    @property
    def changed_at(self) -> list[int]:
        """The runs with a change, the newest first."""
        return sorted({step.at for track in self.tracks for step in track.steps}, reverse=True)

    def changes_at(self, run: int) -> list[tuple[Track, Step]]:
        """What changed with a run, the largest first."""
        found = [(track, step) for track in self.tracks for step in track.steps if step.at == run]
        return sorted(found, key=lambda one: -size_of(one[1]))

    def detectable(self) -> Iterator[tuple[Figure, float, float]]:
        """Of each figure, the smallest changes of any arm that would be found in 80 of 100 histories, as shares."""
        for figure in dict.fromkeys(track.figure for track in self.tracks):
            tracks = [one for one in self.tracks if one.figure is figure and one.logs and not one.steps]
            found = [detectable_change(one.judged, self.limit) for one in tracks]
            known = [float(np.expm1(change)) for change in found if change is not None]
            if known and max(known) > SMALLEST / 10:
                yield figure, min(known), max(known)


def size_of(step: Step) -> float:
    """How large a change is, of ratios by their logarithm."""
    if step.ratio is not None and step.ratio.value > 0:
        return abs(float(np.log(step.ratio.value)))
    return abs(step.after - step.before)


def history_of(line: HistoryLine, figures: Sequence[Figure]) -> LineHistory:
    """The history of a line of runs."""
    found = [track for figure in figures for track in _tracks(line, figure)]
    if not found:
        return LineHistory(line, [], 0, np.inf)
    series = np.array([track.judged for track in found])
    varying = sum(len(set(values[~np.isnan(values)])) > 1 for values in series)
    changes = change_points(series)
    tracks = [_with_steps(*one) for one in zip(found, changes.points, strict=True)]
    return LineHistory(line, tracks, varying, changes.limit)


def _tracks(line: HistoryLine, figure: Figure) -> list[Track]:
    """The tracks of a figure, without changes: those of its arms, and what they have in common."""
    by_arm = {arm: [past.values.get((arm, figure.key), ()) for past in line.runs] for arm in line.arms}
    rounds = {arm: values for arm, values in by_arm.items() if any(values)}
    levels = {arm: _levels(figure, values) for arm, values in rounds.items()}
    if not levels:
        return []
    values = np.array([[np.nan if one is None else one.value for one in found] for found in levels.values()])
    logs = figure.unit != "share" and not np.any(values <= 0)
    judged = np.round(np.log(values), _PLACES) if logs else values
    relative = logs and figure.unit != "count" and _usual_arms(values) >= FEWEST_ARMS
    usual = judged - np.nanmedian(judged, axis=-1, keepdims=True) if relative else None
    if usual is not None:
        others = np.stack([_median(np.delete(usual, index, axis=0)) for index in range(len(usual))])
        judged = np.round(judged - others, _PLACES)
    found = [
        Track(arm, figure, levels[arm], each, logs, relative, []) for arm, each in zip(levels, judged, strict=True)
    ]
    if usual is None:
        return found
    together = np.round(_median(usual), _PLACES)
    shared = [None if np.isnan(one) else Estimate(float(np.exp(one)), None, None) for one in together]
    return [*found, Track(ALL_ARMS, figure, shared, together, logs=True, relative=False, steps=[])]


def _usual_arms(values: Floats) -> int:
    """How many arms at least half of the runs have."""
    return int(np.sum(np.mean(~np.isnan(values), axis=-1) >= _USUAL))


def _median(values: Floats) -> Floats:
    """The median over the arms that a run has; NaN where it has none of them."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=0))
    found = np.full(values.shape[-1], np.nan)
    known = ~np.isnan(values).all(axis=0)
    found[known] = np.nanmedian(values[:, known], axis=0)
    return found


def _levels(figure: Figure, rounds: Sequence[tuple[float, ...]]) -> list[Estimate | None]:
    """The figure in each run: the typical one of its rounds, with its interval where there are enough of them.

    Runs with as many rounds are computed at once.
    """
    found: list[Estimate | None] = [None] * len(rounds)
    for count in {len(values) for values in rounds} - {0}:
        places = [place for place, values in enumerate(rounds) if len(values) == count]
        values = np.array([rounds[place] for place in places])
        if figure.of_failed:
            middles, low, high = values.mean(axis=-1), None, None
        else:
            logs = bool(np.all(values > 0))
            values = np.log(values) if logs else values
            ends = typical_interval(values, CONFIDENCE) if count >= FEWEST_ROUNDS else (None, None)
            middles, low, high = (one if one is None or not logs else np.exp(one) for one in (typical(values), *ends))
        for index, place in enumerate(places):
            ends_of = (None if end is None else float(end[index]) for end in (low, high))
            found[place] = Estimate(float(middles[index]), *ends_of)
    return found


def _with_steps(track: Track, points: list[ChangePoint]) -> Track:
    steps = []
    parts = list(segments(points, len(track.levels)))
    for point, before, after in zip(points, parts, parts[1:], strict=False):
        if (step := _step(track, point, before, after)) is not None:
            steps.append(step)
    return Track(track.arm, track.figure, track.levels, track.judged, track.logs, track.relative, steps)


def _step(track: Track, point: ChangePoint, before: range, after: range) -> Step | None:
    """The change between two levels; None if it is too small to matter."""
    sides = [
        [float(one) for one in track.judged[part.start : part.stop] if not np.isnan(one)] for part in (before, after)
    ]
    levels = [track.level_of(part) or 0.0 for part in (before, after)]
    ratio, difference = None, None
    if track.logs:
        ratio = unpaired_ratio(list(np.exp(sides[1])), list(np.exp(sides[0])), track.figure.resolution)
        if ratio is None or abs(ratio.value - 1) < SMALLEST:
            return None
        grew = ratio.value > 1
    else:
        difference = unpaired_difference(sides[1], sides[0])
        grew = difference is not None and difference.value > 0
    worse = grew == track.figure.direction.less_is_better
    return Step(point.at, levels[0], levels[1], ratio, difference, point.chance, worse)
