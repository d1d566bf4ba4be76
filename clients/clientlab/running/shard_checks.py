"""Whether what a worker reports adds up: counts, histograms and times of a shard, or of a whole trial.

A report comes from another machine. One that contradicts itself was not measured, and its trial has failed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime

from clientlab.analysis.histogram import LONGEST_SECONDS, added, distribution_of
from clientlab.errors import DROPPED
from clientlab.results.shard import ShardLoad, ShardReport, ShardTimes
from clientlab.results.trial import Histogram, Trial
from clientlab.running.trial_result import Begun
from clientlab.workload.load import is_open, requests_in
from clientlab.workload.shard_workload import part_of
from clientlab.workload.workload import Workload

MORE = 1.01
"""Of times that have to agree: a histogram keeps three digits."""

_NANOSECONDS = 2e-9
"""Seconds: a histogram rounds to whole nanoseconds, and counts nothing below one."""

CLOCK_STEP = 1e-3
"""Seconds that two moments of one process may differ by, because a thread or a callback reads the clock later."""


def contradiction(begun: Begun, reports: Sequence[ShardReport]) -> str | None:
    """Why the reports cannot be those of the trial's shards, in one line; None where they add up."""
    planned = requests_in(begun.workload)
    for report in reports:
        share = None if planned is None else part_of(planned, report.index, begun.workload.shards)
        if why := next(_problems(report, share, is_open_load=is_open(begun.workload)), None):
            shard = f"shard {report.index + 1} of {begun.workload.shards} on {report.host}"
            return f"the report of {shard} does not add up: {why}"
    began = [report.outcome.began for report in reports]
    apart = max(began) - min(began)
    if begun.deadline_seconds is not None and apart > begun.deadline_seconds:
        return f"the shards began {apart:,.0f} s apart, and the trial ends after {begun.deadline_seconds:,.0f} s"
    return None


def _problems(report: ShardReport, share: int | None, *, is_open_load: bool) -> Iterator[str]:
    """What contradicts itself. `share`: requests that the shard had to send; None where nobody knew it before."""
    yield from _of_counts(report, share)
    if not report.counts.finished:
        return
    if is_open_load and report.load is None:
        yield "it lacks the figures of an open load"
        return
    load = report.load if is_open_load else None
    yield from _of_histograms(report, load)
    yield from _of_slices(report, load)
    yield from _of_times(report, load)


def counts_that_differ(trial: Trial, share: int | None) -> Iterator[str]:
    """What contradicts itself in a trial's counts. `share`: requests that it had to send; None: nobody knew before."""
    errors = sum(trial.errors.values())
    if errors > trial.requests:
        yield f"{errors:,} errors of {trial.requests:,} requests"
    if share is not None and trial.requests > share:
        yield f"{trial.requests:,} requests of {share:,}"
    whole = trial.requests > errors and share in (None, trial.requests)
    if not trial.partial and trial.status != ("done" if whole else "failed") and (trial.requests or not trial.reason):
        yield f"status {trial.status!r} with {trial.requests - errors:,} successful requests"


def _of_counts(report: ShardReport, share: int | None) -> Iterator[str]:
    counts, outcome = report.counts, report.outcome
    if counts.succeeded < 0:
        yield f"{sum(counts.errors.values()):,} errors of {counts.finished:,} requests"
    if share is not None and counts.finished > share:
        yield f"{counts.finished:,} requests of {share:,}"
    if counts.finished and not (outcome.processes and outcome.callers):
        yield f"{outcome.processes} processes with {outcome.callers} clients"


def _dropped(report: ShardReport, load: ShardLoad | None) -> int:
    return 0 if load is None else report.counts.errors.get(DROPPED, 0)


def _of_histograms(report: ShardReport, load: ShardLoad | None) -> Iterator[str]:
    counts, dropped = report.counts, _dropped(report, load)
    succeeded, errors = counts.succeeded, sum(counts.errors.values())
    failed = errors - dropped
    if counts.sent != succeeded + failed:
        yield f"{counts.sent:,} requests were sent, and {succeeded + failed:,} of them ended"
    wanted: list[tuple[str, ShardTimes | None, int, int]] = [
        ("latency", report.latency, succeeded, errors),
        ("overhead", report.overhead, succeeded, failed),
    ]
    if load is not None:
        if (load.counts.sent, load.counts.dropped) != (counts.sent, dropped):
            yield f"its load has {load.counts.sent:,} sent and {load.counts.dropped:,} dropped requests"
        wanted += [("sent", load.sent, succeeded, failed), ("lateness", load.lateness, succeeded + failed, dropped)]
    for name, times, answered, others in wanted:
        if times is not None:
            found = _of_one_histogram(times, answered, others, may_be_early=name == "lateness")
            yield from (f"{name}: {why}" for why in found)


def _of_one_histogram(times: ShardTimes, answered: int, failed: int, *, may_be_early: bool) -> Iterator[str]:
    """Counts have to be these; sum and longest time those of the histogram, if that holds such long times.

    `may_be_early`: some times are a little below 0, which a histogram does not hold.
    """
    recorded = added([times.answered.encoded])
    first = whole = distribution_of(recorded)
    if times.failed is not None:
        recorded.decode_and_add(times.failed.encoded)
        whole = distribution_of(recorded)
    found = [first.total, whole.total - first.total]
    if found != [answered, failed]:
        yield f"{found[0]:,} and {found[1]:,} requests in its histograms, and not {answered:,} and {failed:,}"
    elif whole.total:
        longest, total = float(whole.seconds[-1]), float(whole.seconds @ whole.counts)
        if longest < LONGEST_SECONDS and not _near(max(times.longest_seconds, 0.0), longest):
            yield f"longest_seconds {times.longest_seconds:g} with {longest:g} in its histograms"
        early = total if may_be_early else _NANOSECONDS * whole.total
        most = total * MORE + _NANOSECONDS * whole.total
        if longest < LONGEST_SECONDS and not total / MORE - early <= times.sum_seconds <= most:
            yield f"sum_seconds {times.sum_seconds:g} with {total:g} in its histograms"


def _near(seconds: float, of_histogram: float) -> bool:
    return of_histogram / MORE - _NANOSECONDS <= seconds <= of_histogram * MORE + _NANOSECONDS


def _of_slices(report: ShardReport, load: ShardLoad | None) -> Iterator[str]:
    counts = report.counts
    wanted = {"ended": counts.finished, "failed": counts.finished - counts.succeeded}
    if load is not None:
        wanted |= {"planned": counts.finished, "sent": counts.sent, "dropped": _dropped(report, load)}
    for name, count in wanted.items():
        if (found := sum(getattr(report.slices, name))) != count:
            yield f"slices.{name} has {found:,} requests, and not {count:,}"
    done = sum(report.slices.done)
    if load is None and not math.isclose(done, counts.finished, rel_tol=1e-6):
        yield f"slices.done has {done:,g} requests, and not {counts.finished:,}"


def _of_times(report: ShardReport, load: ShardLoad | None) -> Iterator[str]:
    counts, wall = report.counts, report.outcome.wall_seconds
    most = wall * MORE + min(CLOCK_STEP, wall)
    if report.latency.longest_seconds > most:
        yield f"a request took {report.latency.longest_seconds:g} s of {wall:g} s"
    least = (report.latency if load is None else load.sent).sum_seconds / MORE
    if not least <= counts.in_flight_seconds <= counts.finished * most:
        yield f"in_flight_seconds {counts.in_flight_seconds:g} of {counts.finished:,} requests in {wall:g} s"
    if (whole := report.loaded) is not None and (
        whole.requests > counts.finished * MORE or whole.in_flight_seconds > counts.in_flight_seconds * MORE
    ):
        yield f"{whole.requests:,g} of {counts.finished:,} requests while its load was whole"


_MOST_APART = 86_400.0
"""Seconds by which the clocks of a worker's machine and of the lab may differ."""


def contradiction_of(trial: Trial, workload: Workload, now: float) -> str | None:
    """Why the trial cannot be one of this workload, in one line; None where it adds up. `now`: Unix seconds."""
    why = next(_trial_problems(trial, workload, now), None)
    return None if why is None else f"the worker's result does not add up: {why}"


def _trial_problems(trial: Trial, workload: Workload, now: float) -> Iterator[str]:
    if abs(datetime.fromisoformat(trial.started).timestamp() - now) > _MOST_APART + (trial.deadline_seconds or 0.0):
        yield f"it was started at {trial.started} by its clock"
    yield from counts_that_differ(trial, requests_in(workload))
    if trial.requests:
        yield from _trial_histograms(trial)
        yield from _trial_times(trial)
        yield from _of_open_load(trial, is_open_load=is_open(workload))


def _trial_histograms(trial: Trial) -> Iterator[str]:
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


def _trial_times(trial: Trial) -> Iterator[str]:
    wall = trial.wall_seconds
    if wall is None or wall <= 0:
        yield f"wall_seconds {wall} with {trial.requests:,} requests"
        return
    tail = trial.tail_seconds or 0.0
    if not 0 <= tail < wall:
        yield f"tail_seconds {tail:g} of {wall:g} s"
        return
    succeeded = trial.requests - sum(trial.errors.values())
    rate, most = succeeded / wall, succeeded / (wall - tail)  # without a tail both are the same
    shown = trial.requests_per_second  # None: unknown, as reports show it
    # With a tail, the rate is an estimate from the time with full load, which may be below the rate by counts.
    least = 0.0 if tail else rate / MORE
    if shown is not None and not least <= shown <= most * MORE:
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
