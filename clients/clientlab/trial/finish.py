"""From what was measured of a trial to the trial of the run document: it is judged
here, once and as a whole.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from clientlab import strategies
from clientlab.text import mask_text
from clientlab.trial.bottleneck import find_bottleneck, judge_schedule
from clientlab.trial.figures import TrialRequests, compute_quantiles, split_by_success
from clientlab.trial.measurement import Measurement
from clientlab.trial.received import find_difference, find_impossible_times
from clientlab.trial.result import (
    Outcome,
    Placement,
    PlannedTrial,
    RequestFigures,
    Shard,
    Trial,
    Verdict,
    rate_of,
)
from clientlab.trial.samples import Samples
from clientlab.trial.server_counters import ServerCounters
from clientlab.trial.steady import Steady, find_long_seconds, find_steady
from clientlab.trial.utilisation import LoadTimes, find_shares
from clientlab.validation import first_problem
from clientlab.workload.load import is_steady, requests_in
from clientlab.workload.workload import Workload, divide_evenly, unavoidable_of

_SENT = (
    0.9  # share of the answered requests of a client that its upstream must have got
)


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
        found: Samples | None = None,
    ) -> Trial:
        """Return a trial that was ended, with the figures of the requests in `found`,
        if any had finished.

        Its wall time is that from the start of its first request to the end of the last
        one that finished.
        """
        figures = None
        if found is not None and len(found.records):
            began = float(found.records["start"][0])
            wall = (
                float((found.records["start"] + found.records["seconds"]).max()) - began
            )
            requests = TrialRequests(found, self.workload)
            rate = (
                requests.succeeded / wall if wall else 0.0
            )  # a request that is dropped takes no time
            with contextlib.suppress(ValidationError):  # a figure is impossible
                figures = requests.compute_figures(
                    began, wall, requests_per_second=rate
                )
        return Trial(
            planned=self.planned,
            started=self.started,
            deadline_seconds=self.deadline_seconds,
            status=status,
            reason=mask_text(reason),
            partial=None if figures is None else True,
            figures=figures or RequestFigures(),
        )

    def refuse(self, error: ValidationError) -> Trial:
        """Return the failed trial of which a figure is impossible."""
        return self.end("failed", f"impossible figure: {first_problem(error)}")


def finish_trial(
    begun: Begun,
    measurement: Measurement,
    servers: ServerCounters,
    placement: Placement | None = None,
    usable: float | None = None,
) -> Trial:
    """Return the trial with all its figures and its verdict.

    Raise ValidationError if a figure is impossible.

    `usable`: cores of the client's machines, if they are not those of this one.
    """
    planned, workload, tool = begun.planned, begun.workload, measurement.tool
    samples = measurement.samples
    load = _find_load(
        samples,
        measurement.outcome,
        workload,
        planned.concurrency,
        measurement.by_shard,
    )
    steady = load.steady
    requests = TrialRequests(
        samples, workload, None if steady is None else steady.counted
    )
    outcome = complete_outcome(
        measurement.outcome, planned, servers, requests.succeeded
    )
    strategy = strategies.find(planned.strategy)
    client, executor = (
        strategies.client_spec(strategy.client),
        strategies.executor_spec(strategy.executor),
    )
    times = _find_load_times(load, requests, outcome)
    shares, held = find_shares(
        planned, workload, outcome, requests, times, servers, placement, usable
    )
    bound = find_bottleneck(shares, planned.concurrency, threads=executor.threads)

    unavoidable = unavoidable_of(workload, planned.link)
    open_load = requests.compute_load(outcome.began, outcome.wall_seconds, unavoidable)
    at_once = requests.finished if open_load is None else open_load.most_in_flight
    # Most requests waited for a connection inside the clock if all clocks start at
    # once, or if a small pool was full.
    pool_is_full = bound in {"client-connections", "client-streams"}
    waited = pool_is_full or (executor.clock_first and at_once > planned.concurrency)
    figures = requests.compute_figures(
        outcome.began,
        outcome.wall_seconds,
        requests_per_second=requests.succeeded_share * load.rate,
        windows=[] if steady is None else steady.windows,
        delay_seconds=requests.mean_delay,
        tail_seconds=load.tail,
        open_load=open_load,
        overhead_seconds=(
            None
            if waited or unavoidable is None or workload.stream
            else requests.compute_overhead(unavoidable)
        ),
        waits_for_connection=waited,
        long_seconds=(
            None if steady is None else find_long_seconds(samples.records["seconds"])
        ),
        paths=requests.compute_paths(),
        stream=(
            None
            if measurement.streams is None
            else requests.compute_stream(measurement.streams)
        ),
        # A tool does not report when each request began.
        **(
            {}
            if tool is None
            else {
                "driver": client.program,
                "kept_alive": tool.kept_alive,
                "over_time": [],
            }
        ),
    )
    shards = _make_shards(begun, measurement)
    reason = _find_failure(begun, requests, servers, shards)
    if reason is None and (streams := measurement.streams) is not None:
        if streams.disordered:
            reason = (
                f"{streams.disordered:,} streams have events twice, or out of order"
            )
        elif not streams.events:
            reason = "no stream had an event"
    return Trial(
        planned=planned,
        started=begun.started,
        deadline_seconds=begun.deadline_seconds,
        status="failed" if reason else "done",
        reason=reason and mask_text(reason),
        figures=figures,
        measured=outcome,
        servers=servers,
        shards=shards,
        verdict=Verdict(
            bound=judge_schedule(figures, planned.concurrency) or bound,
            shares=shares,
            in_flight=held,
        ),
    )


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
    parts: Sequence[Outcome] = (),
) -> _Load:
    """Return the load of a trial, or of one of its shards.

    `parts`: the outcomes of the shards.

    The rate of a steady load is that of its windows. Otherwise, and if its slices are
    too short for them, it is the number of requests over the wall time.
    """
    records, wall, duration = (
        samples.records,
        outcome.wall_seconds,
        workload.duration or 0.0,
    )
    mean_rate = len(records) / wall if wall else 0.0
    if is_steady(workload) and not outcome.extended:
        steady = find_steady(samples, outcome, duration, slots)
        return _Load(
            rate_of(steady.windows) or mean_rate, max(0.0, wall - duration), steady
        )
    if workload.requests is None or not parts:
        return _Load(mean_rate)
    # The requests are shared out in advance, so one shard may have to go on when the
    # others are done.
    whole = min(part.began + part.wall_seconds for part in parts) - outcome.began
    if whole <= 0:
        return _Load(mean_rate)
    ended = np.count_nonzero(
        records["start"] + records["seconds"] <= outcome.began + whole
    )
    return _Load(ended / whole, wall - whole)


def _find_load_times(
    load: _Load, requests: TrialRequests, outcome: Outcome
) -> LoadTimes:
    """Return the times for which the load was whole, if its work had all been done at
    that rate.
    """
    wall = outcome.wall_seconds
    if load.tail is None or not load.rate:
        return LoadTimes(wall, wall, wall)
    work = requests.finished / load.rate
    in_flight = load.rate * requests.mean_seconds  # by Little's law
    return LoadTimes(
        work,
        requests.in_flight_seconds / in_flight if in_flight else work,
        wall - load.tail,
    )


def complete_outcome(
    outcome: Outcome, planned: PlannedTrial, servers: ServerCounters, succeeded: int
) -> Outcome:
    """Return the outcome with its connections unknown if they cannot be counted, and
    with what others used of the CPUs.

    What others used is unknown if the CPU time of a server is.
    """
    changes: dict[str, Any] = {}
    client = strategies.client_spec(strategies.find(planned.strategy).client)
    # A user's function may use a library that connects outside Python: its requests
    # succeed without a connection.
    if client.quirks.uncounted or (succeeded and not outcome.connections_in_all):
        changes |= {"connections_opened": None, "connections_reopened": None}
    expected = [
        servers.upstream,
        *[servers.proxy] * (planned.route != "direct"),
        *[servers.link] * bool(planned.link),
    ]
    found = outcome.disturbance
    is_cold = (
        outcome.import_seconds is not None
    )  # its CPU time begins earlier than that of the machine
    if (
        found is not None
        and found.machine_cpu_seconds is not None
        and None not in expected
        and not is_cold
    ):
        others = max(
            0.0, found.machine_cpu_seconds - (outcome.cpu_seconds + servers.cpu_seconds)
        )
        changes["disturbance"] = found.model_copy(update={"others_cpu_seconds": others})
    return outcome.model_copy(update=changes)


def _make_shards(begun: Begun, measurement: Measurement) -> list[Shard]:
    """Return each shard with its own requests; none for a trial that is not divided."""
    found, many, shards = measurement.samples, len(measurement.by_shard), []
    for index, outcome in enumerate(measurement.by_shard):
        own = found.only(found.numbers % many == index)
        requests = TrialRequests(own, begun.workload)
        concurrency = divide_evenly(begun.planned.concurrency, index, many)
        load = _find_load(own, outcome, begun.workload, concurrency)
        figures = RequestFigures(
            requests=requests.finished,
            errors=own.errors,
            requests_per_second=requests.succeeded_share * load.rate,
            latency_seconds=compute_quantiles(*split_by_success(requests.timed)),
        )
        shard = Shard(
            host=platform.node(),
            concurrency=concurrency,
            figures=figures,
            measured=complete_outcome(
                outcome, begun.planned, ServerCounters(), requests.succeeded
            ),
        )
        shards.append(shard)
    return shards


def _find_failure(
    begun: Begun,
    requests: TrialRequests,
    servers: ServerCounters,
    shards: Sequence[Shard],
) -> str | None:
    """Return why the trial as a whole has failed: requests are missing, none succeeded,
    or the upstream got others.
    """
    finished, succeeded, planned = (
        requests.finished,
        requests.succeeded,
        requests_in(begun.workload),
    )
    if planned is not None and finished != planned:
        parts = [
            (shard.figures.requests, divide_evenly(planned, i, len(shards)))
            for i, shard in enumerate(shards)
        ]
        missing = [
            f"shard {i + 1}: {done} of {part}"
            for i, (done, part) in enumerate(parts)
            if done != part
        ]
        return "; ".join([f"{finished} of {planned} requests were finished", *missing])
    if not finished:
        return "no request was finished"
    upstream = servers.upstream
    refuted = (
        None
        if upstream is None
        else find_difference(requests.sent, begun.planned, begun.workload, upstream)
    )
    if refuted := refuted or find_impossible_times(requests.sent, begun.workload):
        return refuted
    records = requests.sent.records
    answered = int(
        ((records["error"] == 0) & (records["status"] < 500)).sum()
    )  # an expected 5xx may be the proxy's
    if (
        upstream is not None
        and upstream.requests is not None
        and upstream.requests < _SENT * answered
    ):
        return (
            f"the client reports {answered:,} answered requests, and the upstream got"
            f" {upstream.requests:,}: send one with each call, and keep no answers"
        )
    if succeeded:
        return None
    errors, examples = requests.samples.errors, requests.samples.examples
    kind = max(errors, key=errors.__getitem__)
    return (
        f"none of {finished} requests succeeded; most often {kind}:"
        f" {examples.get(kind, '')}"
    )
