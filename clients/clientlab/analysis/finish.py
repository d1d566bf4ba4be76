"""Turns a measurement into the trial of the run document, with its verdict.

A trial is judged here, once and as a whole.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from clientlab.analysis.attempts import (
    count_successes,
    find_attempts,
    find_foreign_calls,
)
from clientlab.analysis.bottleneck import find_bottleneck, judge_schedule
from clientlab.analysis.received import find_difference, find_impossible_times
from clientlab.analysis.request_figures import (
    TrialRequests,
    compute_quantiles,
    ends_of,
    split_by_success,
)
from clientlab.analysis.steady import Steady, find_long_seconds, find_steady
from clientlab.analysis.utilisation import LoadTimes, find_shares
from clientlab.observing.measurement import Measurement
from clientlab.observing.samples import Samples
from clientlab.observing.stream_times import StreamTimes
from clientlab.results.server_counters import FaultCounts, ServerCounters, ServerUse
from clientlab.results.trial import (
    Bound,
    Outcome,
    Placement,
    PlannedTrial,
    RequestFigures,
    Shard,
    Trial,
    Verdict,
    rate_of,
)
from clientlab.text import mask_text
from clientlab.validation import first_problem
from clientlab.workload.load import is_steady, requests_in
from clientlab.workload.workload import Workload, divide_evenly, unavoidable_of


@dataclass(frozen=True)
class Begun:
    """A trial whose process was started. `started`: UTC, ISO 8601."""

    planned: PlannedTrial
    workload: Workload
    started: str
    deadline_seconds: float | None = None

    def end(
        self,
        status: Literal["failed", "lost"],
        reason: str,
        samples: Samples | None = None,
    ) -> Trial:
        """Return a trial that was ended, with the figures of its finished requests."""
        figures = None
        if samples is not None and len(samples.records):
            with contextlib.suppress(ValidationError):  # a figure is impossible
                figures = self._compute_partial_figures(samples)
        return Trial(
            planned=self.planned,
            started=self.started,
            deadline_seconds=self.deadline_seconds,
            status=status,
            reason=mask_text(reason),
            partial=None if figures is None else True,
            figures=figures or RequestFigures(),
        )

    def _compute_partial_figures(self, samples: Samples) -> RequestFigures:
        requests = TrialRequests(samples, self.workload)
        began = float(samples.records["start"][0])
        wall = float(ends_of(samples.records).max()) - began
        # A request that is dropped takes no time.
        rate = requests.succeeded / wall if wall else 0.0
        return requests.compute_figures(began, wall, requests_per_second=rate)

    def refuse(self, error: ValidationError) -> Trial:
        """Return the failed trial of which a figure is impossible."""
        return self.end("failed", f"impossible figure: {first_problem(error)}")


def finish_trial(  # noqa: PLR0913, PLR0917 - everything that is known of it
    begun: Begun,
    measurement: Measurement,
    servers: ServerCounters,
    placement: Placement | None = None,
    usable: float | None = None,
    faults: FaultCounts | None = None,
) -> Trial:
    """Return the trial with all its figures and its verdict.

    Raise ValidationError if a figure is impossible.

    `usable`: cores of the client's machines, if they are not those of this one.
    `faults`: what the upstream counted in a trial with faults.
    """
    planned = begun.planned
    workload = begun.workload
    samples = measurement.samples
    seen = measurement.outcome
    load = _find_load(
        samples, seen, workload, planned.concurrency, measurement.by_shard
    )
    counted = None if load.steady is None else load.steady.counted
    requests = TrialRequests(samples, workload, counted)
    outcome = complete_outcome(seen, planned, servers, requests.succeeded)
    times = _find_load_times(load, requests, outcome)
    shares, in_flight = find_shares(
        planned, workload, outcome, requests, times, servers, placement, usable
    )
    has_threads = planned.executor_spec.threads
    bound = find_bottleneck(shares, planned.concurrency, threads=has_threads)
    figures = _compute_figures(begun, measurement, requests, load, bound)
    shards = _make_shards(begun, measurement)
    attempts = None
    if workload.faults is not None and faults is not None:
        attempts = find_attempts(
            measurement.samples,
            faults,
            workload.faults,
            measurement.outcome.began,
            measurement.outcome.wall_seconds,
        )
    reason = _find_failure(begun, requests, servers, shards, faults)
    if reason is None:
        reason = _find_failure_of_streams(measurement.streams)
    return Trial(
        planned=planned,
        started=begun.started,
        deadline_seconds=begun.deadline_seconds,
        status="failed" if reason else "done",
        reason=None if reason is None else mask_text(reason),
        figures=figures,
        measured=outcome,
        servers=servers,
        shards=shards,
        attempts=attempts,
        verdict=Verdict(
            bound=judge_schedule(figures, outcome.wall_seconds, planned.concurrency)
            or bound,
            shares=shares,
            in_flight=in_flight,
        ),
    )


def _compute_figures(
    begun: Begun,
    measurement: Measurement,
    requests: TrialRequests,
    load: _Load,
    bound: Bound,
) -> RequestFigures:
    """Return the figures of a trial that its part `bound` has limited."""
    planned = begun.planned
    outcome = measurement.outcome
    unavoidable = unavoidable_of(begun.workload, planned.link)
    open_load = requests.compute_load(outcome.began, outcome.wall_seconds, unavoidable)
    # Most requests waited for a connection inside the clock if all clocks start at
    # once, or if a small pool was full.
    at_once = requests.finished if open_load is None else open_load.most_in_flight
    pool_is_full = bound in {"client-connections", "client-streams"}
    all_wait = planned.executor_spec.clock_first and at_once > planned.concurrency
    waited = pool_is_full or all_wait
    overhead = None
    if not waited and unavoidable is not None and not begun.workload.stream:
        overhead = requests.compute_overhead(unavoidable)
    stream = None
    if measurement.streams is not None:
        stream = requests.compute_stream(measurement.streams)
    late = None
    limit = begun.workload.limits.call_timeout
    if limit is not None:
        late = max(0.0, requests.longest - limit)
    figures = requests.compute_figures(
        outcome.began,
        outcome.wall_seconds,
        call_late_seconds=late,
        requests_per_second=_find_goodput(begun.workload, measurement, requests, load),
        delay_seconds=requests.mean_delay,
        tail_seconds=load.tail,
        open_load=open_load,
        overhead_seconds=overhead,
        stream=stream,
        waits_for_connection=waited,
        paths=requests.compute_paths(),
    )
    if load.steady is not None:
        seconds = measurement.samples.records["seconds"]
        figures = figures.updated(
            windows=load.steady.windows, long_seconds=find_long_seconds(seconds)
        )
    if measurement.tool is None:
        return figures
    # A tool does not report when each request began.
    return figures.updated(
        driver=planned.client_spec.program,
        kept_alive=measurement.tool.kept_alive,
        over_time=[],
    )


def _find_goodput(
    workload: Workload, measurement: Measurement, requests: TrialRequests, load: _Load
) -> float:
    """Return the successful requests per second.

    With faults, the rate changes over the trial, so those of the whole duration count.
    """
    duration = workload.load.duration
    if workload.faults is None or duration is None:
        return requests.succeeded_share * load.rate
    began = measurement.outcome.began
    return count_successes(measurement.samples, began, duration) / duration


@dataclass(frozen=True)
class _Load:
    """The load of a trial while it was whole."""

    rate: float  # finished requests per second
    tail: float | None = None  # seconds after that time; None if the wall time counts
    steady: Steady | None = None  # None: all of the trial counts


def _find_load(
    samples: Samples,
    outcome: Outcome,
    workload: Workload,
    slots: int,
    shards: Sequence[Outcome] = (),
) -> _Load:
    """Return the load of a trial with these shards, or of one shard.

    The rate of a steady load is that of its windows. Otherwise, and if its slices are
    too short for them, it is the number of requests over the wall time.
    """
    wall = outcome.wall_seconds
    mean_rate = len(samples.records) / wall if wall else 0.0
    if is_steady(workload) and not outcome.extended:
        duration = workload.load.duration or 0.0
        steady = find_steady(samples, outcome, duration, slots)
        rate = rate_of(steady.windows) or mean_rate
        return _Load(rate, max(0.0, wall - duration), steady)
    if workload.faults is not None and workload.load.duration is not None:
        # Calls that wait for a limit end long after the duration.
        return _Load(mean_rate, max(0.0, wall - workload.load.duration))
    if workload.load.requests is None or not shards:
        return _Load(mean_rate)
    # The requests are shared out in advance, so one shard may have to go on when the
    # others are done.
    first_end = min(shard.began + shard.wall_seconds for shard in shards)
    whole = first_end - outcome.began
    if whole <= 0:
        return _Load(mean_rate)
    ended = np.count_nonzero(ends_of(samples.records) <= first_end)
    return _Load(ended / whole, wall - whole)


def _find_load_times(
    load: _Load, requests: TrialRequests, outcome: Outcome
) -> LoadTimes:
    """Return the times of a load whose work had all been done at the whole rate."""
    wall = outcome.wall_seconds
    if load.tail is None or not load.rate:
        return LoadTimes(wall, wall, wall)
    work = requests.finished / load.rate
    in_flight = load.rate * requests.mean_seconds  # by Little's law
    in_flight_time = requests.in_flight_seconds / in_flight if in_flight else work
    return LoadTimes(work, in_flight_time, wall - load.tail)


def complete_outcome(
    outcome: Outcome, planned: PlannedTrial, servers: ServerCounters, succeeded: int
) -> Outcome:
    """Return the outcome with what other programs used of the CPUs.

    That is unknown if the CPU time of a server is. Connections are unknown if they
    cannot be counted.
    """
    changes: dict[str, Any] = {}
    is_uncounted = planned.client_spec.quirks.uncounted
    # A user's function may use a library that connects outside Python: its requests
    # succeed without a connection.
    if is_uncounted or (succeeded and not outcome.connections_in_all):
        changes |= {"connections_opened": None, "connections_reopened": None}
    expected = [servers.upstream]
    if planned.route != "direct":
        expected.append(servers.proxy)
    if planned.link:
        expected.append(servers.link)
    disturbance = outcome.disturbance
    # The CPU time of a cold trial begins earlier than that of the machine.
    is_cold = outcome.import_seconds is not None
    if disturbance is not None and None not in expected and not is_cold:
        of_all = disturbance.machine_cpu_seconds
        if of_all is not None:
            own = outcome.cpu_seconds + servers.cpu_seconds
            changes["disturbance"] = disturbance.updated(
                others_cpu_seconds=max(0.0, of_all - own)
            )
    return outcome.updated(**changes)


def _make_shards(begun: Begun, measurement: Measurement) -> list[Shard]:
    """Return each shard with its own requests; none for a trial that is not divided."""
    count = len(measurement.by_shard)
    shards = []
    for index, outcome in enumerate(measurement.by_shard):
        is_own = measurement.samples.numbers % count == index
        samples = measurement.samples.only(is_own)
        requests = TrialRequests(samples, begun.workload)
        concurrency = divide_evenly(begun.planned.concurrency, index, count)
        load = _find_load(samples, outcome, begun.workload, concurrency)
        figures = RequestFigures(
            requests=requests.finished,
            errors=samples.errors,
            requests_per_second=requests.succeeded_share * load.rate,
            latency_seconds=compute_quantiles(*split_by_success(requests.timed)),
        )
        measured = complete_outcome(
            outcome, begun.planned, ServerCounters(), requests.succeeded
        )
        host = platform.node()
        shards.append(
            Shard(
                host=host, concurrency=concurrency, figures=figures, measured=measured
            )
        )
    return shards


def _find_failure(
    begun: Begun,
    requests: TrialRequests,
    servers: ServerCounters,
    shards: Sequence[Shard],
    faults: FaultCounts | None = None,
) -> str | None:
    """Return why the trial has failed as a whole, or None.

    Requests are missing, none succeeded, or the upstream got others.
    """
    finished = requests.finished
    planned = requests_in(begun.workload)
    if planned is not None and finished != planned:
        problems = [f"{finished} of {planned} requests were finished"]
        for index, shard in enumerate(shards):
            done = shard.figures.requests
            part = divide_evenly(planned, index, len(shards))
            if done != part:
                problems.append(f"shard {index + 1}: {done} of {part}")
        return "; ".join(problems)
    if not finished:
        return "no request was finished"
    if faults is None:
        refuted = _find_refutation(begun, requests, servers.upstream)
    else:
        refuted = find_foreign_calls(finished, faults)
    if refuted or requests.succeeded:
        return refuted
    errors = requests.samples.errors
    kind = max(errors, key=errors.__getitem__)
    example = requests.samples.examples.get(kind, "")
    return f"none of {finished} requests succeeded; most often {kind}: {example}"


def _find_refutation(
    begun: Begun, requests: TrialRequests, upstream: ServerUse | None
) -> str | None:
    """Return why the client's report cannot be true, or None."""
    sent = requests.sent
    difference = None
    if upstream is not None:
        difference = find_difference(sent, begun.planned, begun.workload, upstream)
    return difference or find_impossible_times(sent, begun.workload)


def _find_failure_of_streams(streams: StreamTimes | None) -> str | None:
    if streams is None:
        return None
    if streams.disordered:
        return f"{streams.disordered:,} streams have events twice, or out of order"
    return None if streams.events else "no stream had an event"
