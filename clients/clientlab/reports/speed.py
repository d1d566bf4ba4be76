"""The speed of an arm over its rounds, with its interval: what the race on dashboards and on the lab's page shows."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from clientlab.analysis.ratios import Estimate, typical_figure
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial

_THROUGHPUT = BY_KEY["throughput"]


def speed_of(trials: Iterable[Trial]) -> Estimate | None:
    """Successful requests per second of an arm: the median over its finished trials, as in the run's table.

    None without a trial that had a successful request. The interval is the 95 % confidence interval of that median;
    with fewer than three rounds there is none.
    """
    rates = {trial.round: rate for trial in trials for rate in _THROUGHPUT.values([trial]) if rate > 0}
    found = typical_figure(rates)
    if found is None:
        return None
    value = float(median(rates.values()))
    if found.low is None or found.high is None:
        return Estimate(value, None, None)
    return Estimate(value, min(found.low, value), max(found.high, value))
