"""Whether the trials of an arm were long and steady enough for their rate to be one.

A slice of a closed load needs several waves of requests (see `trial.steady`), and has
to be long beside its longest requests. If the rate still rises or falls within slices,
it depends on their length. Such an arm is not ranked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from clientlab import units
from clientlab.results.trial import Trial, Window, rate_by_cycles, rate_by_ends
from clientlab.statistics.ratios import jackknife_error, student

LEAST_WAVES = 10
"""Waves of requests that a slice lasts."""

LEAST_LONG_REQUESTS = 4
"""A slice lasts this many times as long as its long requests.

Beyond the length of these, all others hold a twentieth of the time in flight.
"""

_SHORT_SHARE = 0.2
"""Share of the slices from which they are too short."""

_LONG_SHARE = 1 / 3
"""Share of a slice from which a request is long."""

_SHORT_ROUNDS = 1 / 3
"""Share of the rounds whose slices are short beside their long requests."""

_STARVED_SHARE = 0.8
"""Share of a slice for which requests have waited that the client does not serve."""

_STARVED_RATE = 0.95
"""Share of the rate by cycles, which counts them as slots."""

_LEAST_CHANGE = 0.05
"""As a logarithm."""

_CHANGE_OF_FEW = 0.2
"""With fewer than three slices, whose scatter is unknown."""

_CHANCE = 0.005
"""Chance of a change that is none."""


def find_unsteadiness(trials: Sequence[Trial]) -> str | None:
    """Return why the rate of an arm with these trials depends on their length.

    Return None if it does not. Other loads than those of `_with_windows` are not
    compared by such a rate.
    """
    trials = _with_windows(trials)
    if not trials:
        return None
    return (
        _describe_short_slices(trials)
        or _describe_long_requests(trials)
        or _describe_change(trials)
    )


def _describe_short_slices(trials: Sequence[Trial]) -> str | None:
    windows = _windows_of(trials)
    short = [window for window in windows if not window.cycles]
    if len(short) <= _SHORT_SHARE * len(windows):
        return None
    long_waves = [window.wave_seconds for window in short if window.wave_seconds]
    wave = max(_typical_wave(trials), median(long_waves or [0.0]))
    # Slices of several waves may be too short, too, if waves vary.
    lengths = [len(trial.figures.windows) * _slice_seconds(trial) for trial in trials]
    least = find_least_duration(trials)
    seconds = max(LEAST_WAVES * wave, least, 2 * max(lengths))
    concurrency = trials[0].planned.concurrency
    return (
        f"too short: a wave of {concurrency:,} requests takes {units.time(wave)};"
        f" {_advise(seconds)}"
    )


def _describe_long_requests(trials: Sequence[Trial]) -> str | None:
    # The first round does not know how long its requests are.
    decided_by_long = [*filter(_is_decided_by_long, trials)]
    if len(decided_by_long) <= _SHORT_ROUNDS * len(trials):
        return None
    shown = units.time(_typical_long_seconds(trials))
    return (
        f"too short: requests that take {shown} and more decide the rate;"
        f" {_advise(find_least_duration(trials))}"
    )


def _describe_change(trials: Sequence[Trial]) -> str | None:
    change = _find_change_of_longest(trials)
    if change is None:
        return None
    word = "rises" if change > 0 else "falls"
    size = units.share(abs(math.expm1(change)))
    seconds = max(map(_slice_seconds, trials))
    return (
        f"its rate {word} by {size} within {units.time(seconds)}, so it is not steady;"
        f" {_advise(2 * seconds)}"
    )


def find_most_slices(trials: Sequence[Trial]) -> int | None:
    """Return the most slices with which the rate of further trials is steady.

    Return None if it was.
    """
    trials = _with_windows(trials)
    if _find_change(trials) is None:
        return None
    fewest = _fewest_slices(trials)
    return fewest if _find_change_of_longest(trials) is None else max(1, fewest // 2)


def may_become_steady(trials: Sequence[Trial]) -> bool:
    """Return whether the rate changes within slices that may still become longer."""
    trials = _with_windows(trials)
    return _fewest_slices(trials) > 1 and _find_change_of_longest(trials) is not None


def _with_windows(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that have a steady rate to be compared by.

    These are closed loads with a duration, but no streams.
    """
    return [
        trial
        for trial in trials
        if trial.figures.windows and trial.figures.stream is None
    ]


def _windows_of(trials: Sequence[Trial]) -> list[Window]:
    windows: list[Window] = []
    for trial in trials:
        windows += trial.figures.windows
    return windows


def _fewest_slices(trials: Sequence[Trial]) -> int:
    return min((len(trial.figures.windows) for trial in trials), default=0)


def _typical_long_seconds(trials: Sequence[Trial]) -> float | None:
    """Return the median of `long_seconds`; None if no trial has it."""
    seconds = [trial.figures.long_seconds for trial in trials]
    known = [long for long in seconds if long is not None]
    return median(known) if known else None


def find_least_duration(trials: Sequence[Trial]) -> float:
    """Return the seconds that a trial of these needs at least, in one slice."""
    wave = _typical_wave(trials)
    long_seconds = _typical_long_seconds(trials) or 0.0
    return max(LEAST_WAVES * wave, LEAST_LONG_REQUESTS * long_seconds)


def _typical_wave(trials: Sequence[Trial]) -> float:
    """Return the seconds in which as many requests end as are in flight."""
    return median(
        trial.planned.concurrency / (trial.figures.requests_per_second or 1e-9)
        for trial in trials
    )


def _slice_seconds(trial: Trial) -> float:
    """Return the length of the trial's slices."""
    figures = trial.figures
    seconds = trial.wall_seconds - (figures.tail_seconds or 0.0)
    return seconds / len(figures.windows)


def _advise(seconds: float) -> str:
    """Return what to do, if trials have to last so long."""
    return f"use -d {math.ceil(seconds)}s or more"


def _is_decided_by_long(trial: Trial) -> bool:
    """Return whether the long requests of a trial last for a large part of its slices.

    They may, if the client lets them wait until the slice ends while it serves the
    others at a steady rate.
    """
    long = trial.figures.long_seconds or 0.0
    seconds = _slice_seconds(trial)
    windows = [window for window in trial.figures.windows if window.cycles]
    if long <= _LONG_SHARE * seconds or not windows:
        return False
    is_starved = rate_by_ends(windows) < _STARVED_RATE * rate_by_cycles(windows)
    return not is_starved or long <= _STARVED_SHARE * seconds


def _find_change_of_longest(trials: Sequence[Trial]) -> float | None:
    """Return the change within slices that the trials with the longest ones have, too.

    Return None if there is none.
    """
    if _find_change(trials) is None:
        return None
    fewest = _fewest_slices(trials)
    longest = [trial for trial in trials if len(trial.figures.windows) == fewest]
    return _find_change(longest)


def _find_change(trials: Sequence[Trial]) -> float | None:
    """Return the logarithm of the change from the first halves of slices to the second.

    Return None if it may be chance. Its standard error is that of the jackknife (Tukey
    1958), whose chance is Student's.
    """
    windows = [window for window in _windows_of(trials) if window.cycles]
    early = sum(window.early for window in windows)
    late = sum(window.late for window in windows)
    if early <= 0 or late <= 0:
        return None
    change = math.log(late / early)
    limit = _CHANGE_OF_FEW
    if len(windows) >= 3:
        early_without = early - np.array([window.early for window in windows])
        late_without = late - np.array([window.late for window in windows])
        without = np.maximum(late_without, 1e-9) / np.maximum(early_without, 1e-9)
        error = jackknife_error(np.log(without))
        quantile = student(len(windows) - 1, 1 - _CHANCE)
        limit = max(_LEAST_CHANGE, quantile * error)
    return change if abs(change) > limit else None
