"""The speed of an arm over its rounds, with its interval: what the race on dashboards and on the lab's page shows."""

from __future__ import annotations

from collections.abc import Iterable

from clientlab.analysis.ratios import Estimate, typical_figure
from clientlab.judging.ranking import seconds_per_request
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial

_THROUGHPUT = BY_KEY["throughput"]


def speed_of(trials: Iterable[Trial]) -> Estimate | None:
    """Successful requests per second of an arm's finished trials. None without one that had a successful request.

    The value is that of the run's table. The interval is the 95 % confidence interval of the seconds per successful
    request (of their median over the rounds), turned over: its ends are 1 / high and 1 / low.
    With fewer than three rounds there is no interval.
    """
    counted = [trial for trial in trials if trial.status == "done" and trial.wall_seconds and _succeeded(trial)]
    value = _THROUGHPUT.over_rounds(counted)
    if value is None:
        return None
    costs = {trial.round: seconds_per_request(trial) for trial in counted}
    seconds = typical_figure(costs)
    if seconds is None or seconds.interval is None:
        return Estimate(value, None, None)
    low, high = seconds.interval
    return Estimate(value, 1 / high, 1 / low)


def _succeeded(trial: Trial) -> int:
    return trial.requests - sum(trial.errors.values())
