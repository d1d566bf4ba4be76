"""Whether a trial that a worker has measured alone adds up: its counts, histograms and times have to agree."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from clientlab.analysis.histogram import LONGEST_SECONDS, added, distribution_of
from clientlab.errors import DROPPED
from clientlab.results.trial import Histogram, Trial
from clientlab.running.shard_checks import CLOCK_STEP, MORE, counts_that_differ
from clientlab.workload.load import is_open, requests_in
from clientlab.workload.workload import Workload

_MOST_APART = 86_400.0
"""Seconds by which the clocks of a worker's machine and of the lab may differ."""


def contradiction_of(trial: Trial, workload: Workload, now: float) -> str | None:
    """Why the trial cannot be one of this workload, in one line; None where it adds up. `now`: Unix seconds."""
    why = next(_problems(trial, workload, now), None)
    return None if why is None else f"the worker's result does not add up: {why}"


def _problems(trial: Trial, workload: Workload, now: float) -> Iterator[str]:
    if abs(datetime.fromisoformat(trial.started).timestamp() - now) > _MOST_APART + (trial.deadline_seconds or 0.0):
        yield f"it was started at {trial.started} by its clock"
    yield from counts_that_differ(trial, requests_in(workload))
    if trial.requests:
        yield from _of_histograms(trial)
        yield from _of_times(trial)
        yield from _of_open_load(trial, is_open_load=is_open(workload))


def _of_histograms(trial: Trial) -> Iterator[str]:
    errors = sum(trial.errors.values())
    for name, histogram, count in (
        ("histogram", trial.histogram, trial.requests - errors),
        ("failed_histogram", trial.failed_histogram, errors),
    ):
        if histogram is not None and (found := _total_of(histogram)) != count:
            yield f"{found:,} requests in its {name}, and not {count:,}"
    if trial.over_time and (found := sum(part.requests for part in trial.over_time)) != trial.requests:
        yield f"{found:,} requests over time, and not {trial.requests:,}"
    if trial.histogram is None or trial.latency_seconds is None or errors:
        return
    whole = distribution_of(added([trial.histogram.encoded]))
    longest, mean = float(whole.seconds[-1]), float(whole.seconds @ whole.counts) / trial.requests
    for key, shown, wanted in (("max", trial.latency_seconds.max, longest), ("mean", trial.latency_seconds.mean, mean)):
        if longest < LONGEST_SECONDS and not wanted / MORE - CLOCK_STEP <= shown <= wanted * MORE + CLOCK_STEP:
            yield f"latency_seconds.{key} {shown:g} with {wanted:g} in its histogram"


def _total_of(histogram: Histogram) -> int:
    return distribution_of(added([histogram.encoded])).total


def _of_times(trial: Trial) -> Iterator[str]:
    wall = trial.wall_seconds
    if wall is None or wall <= 0:
        yield f"wall_seconds {wall} with {trial.requests:,} requests"
        return
    rate = (trial.requests - sum(trial.errors.values())) / wall
    shown = trial.requests_per_second  # None: unknown, as reports show it
    if shown is not None and not rate / MORE <= shown <= rate * MORE:
        yield f"requests_per_second {shown} with {rate:g} by its counts"
    longest = None if trial.latency_seconds is None else trial.latency_seconds.max
    # An external program has clocks of its own.
    if trial.driver is None and longest is not None and longest > wall * MORE + CLOCK_STEP:
        yield f"a request took {longest:g} s of {wall:g} s"


def _of_open_load(trial: Trial, *, is_open_load: bool) -> Iterator[str]:
    if trial.status != "done":
        return
    if (trial.open_load is not None) != is_open_load:
        yield "it lacks the figures of an open load" if is_open_load else "it has figures of an open load"
    elif trial.open_load is not None and trial.open_load.dropped != trial.errors.get(DROPPED, 0):
        errors = trial.errors.get(DROPPED, 0)
        yield f"{trial.open_load.dropped:,} requests were dropped, and {errors:,} of its errors are of that kind"
