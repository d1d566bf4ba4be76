"""Whether the trials of an arm were long enough, and steady enough, for their rate to
be one.

A slice of a closed load needs several waves of requests (see `trial.steady`), and has
to be long beside its longest requests. If the rate still rises or falls within slices,
it depends on their length. Such an arm is not ranked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from clientlab import units
from clientlab.statistics.distributions import t_quantile
from clientlab.trial.result import Trial, Window, rate_by_cycles, rate_by_ends

LEAST_WAVES = 10
"""Waves of requests that a slice lasts."""

LEAST_LONG_REQUESTS = 4
"""A slice lasts this many times as long as requests beyond which all others hold a
twentieth of the time in flight.
"""

_SHORT_SHARE = 0.2  # of the slices, from which they are too short
_LONG_SHARE = 1 / 3  # of a slice, from which a request is long
_SHORT_ROUNDS = (
    1 / 3
)  # of the rounds, whose slices are short beside their long requests
_STARVED_SHARE = (
    0.8  # of a slice, for which requests have waited that the client does not serve
)
_STARVED_RATE = 0.95  # of the rate by cycles, which counts them as slots
_LEAST_CHANGE = 0.05  # logarithm
_CHANGE_OF_FEW = 0.2  # with fewer than three slices, whose scatter is unknown
_CHANCE = 0.005  # of a change that is none


def find_unsteadiness(trials: Sequence[Trial]) -> str | None:
    """Return why the rate of an arm with these trials depends on their length; None if
    it does not.

    Other loads than those of `_with_windows` are not compared by such a rate.
    """
    trials = _with_windows(trials)
    if not trials:
        return None
    windows = [window for trial in trials for window in trial.figures.windows]
    known = [window for window in windows if window.cycles]
    if len(windows) - len(known) > _SHORT_SHARE * len(windows):
        concurrency = trials[0].planned.concurrency
        long_waves = [
            window.wave_seconds
            for window in windows
            if window.wave_seconds and not window.cycles
        ]
        wave = max(_typical_wave(trials), median(long_waves or [0.0]))
        # Slices of several waves may be too short, too, if waves vary.
        longest = max(
            len(trial.figures.windows) * _slice_seconds(trial) for trial in trials
        )
        advice = _advise(
            max(LEAST_WAVES * wave, find_least_duration(trials), 2 * longest)
        )
        return (
            f"too short: a wave of {concurrency:,} requests takes {units.time(wave)};"
            f" {advice}"
        )
    is_decided_by_long = [_is_decided_by_long_requests(trial) for trial in trials]
    # The first round does not know how long its requests are.
    if sum(is_decided_by_long) > _SHORT_ROUNDS * len(trials):
        shown = units.time(typical_long_seconds(trials))
        return (
            f"too short: requests that take {shown} and more decide the rate;"
            f" {_advise(find_least_duration(trials))}"
        )
    change = _find_change_of_longest(trials)
    if change is None:
        return None
    word = "rises" if change > 0 else "falls"
    size, seconds = (
        units.share(abs(math.expm1(change))),
        max(map(_slice_seconds, trials)),
    )
    return (
        f"its rate {word} by {size} within {units.time(seconds)}, so it is not steady;"
        f" {_advise(2 * seconds)}"
    )


def find_most_slices(trials: Sequence[Trial]) -> int | None:
    """Return the most slices that further trials may have, so that their rate is
    steady; None if it was.
    """
    trials = _with_windows(trials)
    if _find_change_of_all(trials) is None:
        return None
    fewest = min(len(trial.figures.windows) for trial in trials)
    return fewest if _find_change_of_longest(trials) is None else max(1, fewest // 2)


def may_become_steady(trials: Sequence[Trial]) -> bool:
    """Return whether the rate changes within slices, and further trials can have longer
    ones.
    """
    trials = _with_windows(trials)
    fewest = min((len(trial.figures.windows) for trial in trials), default=0)
    return fewest > 1 and _find_change_of_longest(trials) is not None


def _with_windows(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that have a steady rate to be compared by: closed loads with a
    duration, but no streams.
    """
    return [
        trial
        for trial in trials
        if trial.figures.windows and trial.figures.stream is None
    ]


def typical_long_seconds(trials: Sequence[Trial]) -> float | None:
    """Return the median of `long_seconds`; None if no trial has it."""
    known = [
        long for trial in trials if (long := trial.figures.long_seconds) is not None
    ]
    return median(known) if known else None


def find_least_duration(trials: Sequence[Trial]) -> float:
    """Return the seconds that a trial of these needs at least, in one slice."""
    return max(
        LEAST_WAVES * _typical_wave(trials),
        LEAST_LONG_REQUESTS * (typical_long_seconds(trials) or 0.0),
    )


def _typical_wave(trials: Sequence[Trial]) -> float:
    """Return the seconds of a wave: those in which as many requests end as are in
    flight.
    """
    return median(
        trial.planned.concurrency / (trial.figures.requests_per_second or 1e-9)
        for trial in trials
    )


def _slice_seconds(trial: Trial) -> float:
    """Return the length of the trial's slices."""
    figures = trial.figures
    return ((figures.wall_seconds or 0.0) - (figures.tail_seconds or 0.0)) / len(
        figures.windows
    )


def _advise(seconds: float) -> str:
    """Return what to do, if trials have to last so long."""
    return f"use -d {math.ceil(seconds)}s or more"


def _is_decided_by_long_requests(trial: Trial) -> bool:
    """Return whether the long requests of a trial last for a large part of its slices.

    They may, if the client lets them wait until the slice ends while it serves the
    others at a steady rate.
    """
    long, seconds = trial.figures.long_seconds or 0.0, _slice_seconds(trial)
    windows = [window for window in trial.figures.windows if window.cycles]
    if long <= _LONG_SHARE * seconds or not windows:
        return False
    is_starved = rate_by_ends(windows) < _STARVED_RATE * rate_by_cycles(windows)
    return not (is_starved and long > _STARVED_SHARE * seconds)


def _find_change_of_longest(trials: Sequence[Trial]) -> float | None:
    """Return the change within slices that the trials with the longest ones have, too;
    None if there is none.
    """
    fewest = min((len(trial.figures.windows) for trial in trials), default=0)
    longest = [trial for trial in trials if len(trial.figures.windows) == fewest]
    return _find_change_of_all(trials) and _find_change_of_all(longest)


def _find_change_of_all(trials: Sequence[Trial]) -> float | None:
    return _find_change(
        [window for trial in trials for window in trial.figures.windows]
    )


def _find_change(windows: Sequence[Window]) -> float | None:
    """Return the logarithm of the change from the first halves of the slices to the
    second; None if it may be chance.

    Its standard error is that of the jackknife (Tukey 1958), whose chance is Student's.
    """
    windows = [window for window in windows if window.cycles]
    early, late = (
        sum(window.early for window in windows),
        sum(window.late for window in windows),
    )
    if early <= 0 or late <= 0:
        return None
    change, count = math.log(late / early), len(windows)
    limit = _CHANGE_OF_FEW
    if count >= 3:
        without = [
            math.log(max(late - window.late, 1e-9) / max(early - window.early, 1e-9))
            for window in windows
        ]
        mean = sum(without) / count
        error = math.sqrt(
            (count - 1) / count * sum((one - mean) ** 2 for one in without)
        )
        standard_errors = float(t_quantile(count - 1, 1 - _CHANCE / 2))
        limit = max(_LEAST_CHANGE, standard_errors * error)
    return change if abs(change) > limit else None
