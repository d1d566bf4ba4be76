"""From what was measured of a trial to the trial of the run document: it is judged here, once and as a whole."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from clientlab import strategies
from clientlab.judging.backlog import growth_of
from clientlab.judging.verdict import of_schedule, verdict
from clientlab.measuring.outcome import Measurement, Outcome
from clientlab.redaction import mask_text
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters
from clientlab.results.trial import Noise, PlannedTrial, Shard, Trial
from clientlab.running import received
from clientlab.running.busy_shares import in_flight, link_waits, shares_of
from clientlab.running.request_figures import TrialRequests
from clientlab.running.whole_load import divisors_of, whole_load_of
from clientlab.samples.log_reader import Samples
from clientlab.validation import first_problem
from clientlab.workload.link import unavoidable_of
from clientlab.workload.load import requests_in
from clientlab.workload.making import body_size
from clientlab.workload.shard_workload import part_of
from clientlab.workload.workload import Workload

_SENT = 0.9
"""A client whose upstream got a smaller part of the requests that it reports as answered did not send them."""

_OWN_QUEUES = ("client-connections", "client-streams")
"""Verdicts of trials whose requests waited inside the client, after their clock had begun."""

_OF_OUTCOME = ("gil", "cpu_seconds", "idle_rss_bytes", "peak_rss_bytes", "idle_pss_bytes", "peak_pss_bytes")
"""Fields of `Trial` that are those of its outcome."""


@dataclass(frozen=True)
class Begun:
    """A trial whose process was started. `started`: UTC, ISO 8601."""

    planned: PlannedTrial
    workload: Workload
    started: str
    deadline_seconds: float | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of `Trial` that were known before it was measured."""
        return {**dict(self.planned), "started": self.started, "deadline_seconds": self.deadline_seconds}

    def ended(self, status: Literal["failed", "lost"], reason: str) -> Trial:
        """Return the trial without figures."""
        return Trial(**self.fields, status=status, reason=mask_text(reason))

    def impossible(self, error: ValidationError) -> Trial:
        """Return the failed trial of which a figure is impossible."""
        return self.ended("failed", f"impossible figure: {first_problem(error)}")


def partial_trial(begun: Begun, found: Samples, status: Literal["failed", "lost"], reason: str) -> Trial:
    """Return a trial that was ended, with the figures of the requests that had finished, if any had.

    Its wall time is that from the start of its first request to the end of the last one that finished.
    """
    if not len(found.records):
        return begun.ended(status, reason)
    began = float(found.records["start"][0])
    wall = float((found.records["start"] + found.records["seconds"]).max()) - began
    requests = TrialRequests(found, begun.workload)
    try:
        fields = {**begun.fields, **requests.fields(began, wall), "requests_per_second": requests.succeeded / wall}
        return Trial(**fields, status=status, reason=mask_text(reason), partial=True)
    except ValidationError:  # a figure is impossible
        return begun.ended(status, reason)


def finished_trial(
    begun: Begun,
    measurement: Measurement,
    servers: ServerCounters,
    placement: Placement | None = None,
    usable: float | None = None,
) -> Trial:
    """Return the trial with all its figures and its verdict. Raises ValidationError for impossible figures.

    `usable`: cores of the client's machines, if they are not those of this one.
    """
    planned, workload, outcome = begun.planned, begun.workload, measurement.outcome
    requests, tool, wall = TrialRequests(measurement.samples, workload), measurement.tool, outcome.wall_seconds
    strategy = strategies.find(planned.strategy)
    client, executor = strategies.client_spec(strategy.client), strategies.executor_spec(strategy.executor)
    unavoidable = unavoidable_of(workload, planned.link)
    load = None if requests.schedule is None else requests.schedule.figures(outcome.began, wall, unavoidable)
    by_shard = _shards(begun, measurement)

    loaded = whole_load_of(measurement, workload)
    over = divisors_of(loaded, outcome, requests)
    opened, size = connections_opened(planned, outcome, requests.succeeded), body_size(workload)
    sent = len(requests.sent.records)
    waits = link_waits(
        planned, requests=sent, opened=opened, received=requests.received_bytes,
        uploaded=None if size is None else sent * size, wall=over.work, use=servers.link,
    )  # fmt: skip
    delays = requests.delay_seconds
    delays = None if delays is None else delays * over.work_in_flight
    waits_in_flight = waits
    if waits is not None:  # the number of round trips follows the work
        delays = (delays or 0.0) + waits.seconds
        waits_in_flight = replace(waits, seconds=waits.seconds / over.work_in_flight)
    held = in_flight(requests.in_flight_seconds, over.in_flight, servers, waits_in_flight)
    shares = shares_of(planned, over.outcome(outcome, servers), delays, over.held(servers), held, placement, usable)
    shares = replace(shares, bandwidth=None if waits is None else waits.bandwidth, in_turn=requests.in_turn)
    bound = verdict(shares, planned.concurrency, threads=executor.threads)
    # The clock of most requests started before a connection was free for them where all clocks start at once, and where
    # a small pool holds the trial back.
    at_once = requests.finished if load is None else load.most_in_flight
    waited = (executor.clock_first and at_once > planned.concurrency) or bound in _OWN_QUEUES

    fields = {**begun.fields, **requests.fields(outcome.began, wall)}
    fields |= {name: getattr(outcome, name) for name in _OF_OUTCOME}
    if load is not None:
        queued = max(0, (load.in_flight_at_end or 0) - planned.concurrency)
        grows = growth_of(load, fields["over_time"], wall) is not None
        bound = of_schedule(**dict(load), queued=queued, grows=grows)
    if tool is not None:  # it does not report when each request began
        fields |= {"driver": client.program, "kept_alive": tool.kept_alive, "over_time": []}
    reason = _failure(begun, requests, servers, by_shard)
    return Trial(
        **fields,
        status="failed" if reason else "done",
        reason=reason and mask_text(reason),
        requests_per_second=requests.succeeded / over.work,
        tail_seconds=None if loaded is None else max(0.0, wall - loaded.seconds),
        connections_opened=opened,
        connections_reopened=None if opened is None else outcome.connections_reopened,
        open_load=load,
        overhead_seconds=None if waited or unavoidable is None else requests.overhead(unavoidable),
        waits_for_connection=waited,
        upstream_use=servers.upstream,
        proxy_use=servers.proxy,
        link_use=servers.link,
        noise=_noise(planned, outcome, servers),
        by_shard=by_shard,
        busy={part: share for part, share in vars(shares).items() if share is not None},
        in_flight=held,
        verdict=bound,
    )


def _shards(begun: Begun, measurement: Measurement) -> list[Shard]:
    """Return each shard with its own requests; none for a trial that is not divided."""
    found, many, shards = measurement.samples, len(measurement.by_shard), []
    for index, outcome in enumerate(measurement.by_shard):
        own = found.only(found.numbers % many == index)
        requests, loaded = TrialRequests(own, begun.workload), whole_load_of(Measurement(outcome, own), begun.workload)
        shard = Shard(
            host=platform.node(),
            began_seconds=outcome.began - measurement.outcome.began,
            wall_seconds=outcome.wall_seconds,
            concurrency=part_of(begun.planned.concurrency, index, many),
            requests=requests.finished,
            errors=own.errors,
            requests_per_second=requests.succeeded / divisors_of(loaded, outcome, requests).work,
            latency_seconds=requests.latency,
            connections_opened=connections_opened(begun.planned, outcome, requests.succeeded),
            cpu_seconds=outcome.cpu_seconds,
            peak_pss_bytes=outcome.peak_pss_bytes,
        )
        shards.append(shard)
    return shards


def connections_opened(planned: PlannedTrial, outcome: Outcome, succeeded: int) -> int | None:
    """Return the connections that the client opened, or None if they could not be counted.

    A user's function may use a library that connects outside Python. Its requests then succeed without a connection.
    """
    spec = strategies.client_spec(strategies.find(planned.strategy).client)
    unseen = succeeded > 0 and outcome.connections_in_all == 0
    return None if spec.quirks.uncounted or unseen else outcome.connections_opened


def _noise(planned: PlannedTrial, outcome: Outcome, servers: ServerCounters) -> Noise | None:
    """Return what disturbed a trial. What others took is unknown if the CPU time of a server is."""
    found = outcome.disturbance
    if found is None:
        return None
    expected = [
        servers.upstream,
        *([servers.proxy] * (planned.route != "direct")),
        *([servers.link] * bool(planned.link)),
    ]
    others = None
    if found.machine_cpu_seconds is not None and None not in expected:
        own = outcome.cpu_seconds + sum(use.cpu_seconds for use in servers.known)
        others = max(0.0, found.machine_cpu_seconds - own)
    grown = {name: value for name, value in vars(found).items() if name in Noise.model_fields}
    return Noise(**grown, others_cpu_seconds=others)


def _failure(begun: Begun, requests: TrialRequests, servers: ServerCounters, shards: Sequence[Shard]) -> str | None:
    """Return why the trial as a whole has failed: requests are missing, none succeeded, or the upstream got others."""
    finished, succeeded, planned = requests.finished, requests.succeeded, requests_in(begun.workload)
    if planned is not None and finished != planned:
        parts = [(shard.requests, part_of(planned, index, len(shards))) for index, shard in enumerate(shards)]
        lacking = [f"shard {i + 1}: {done} of {part}" for i, (done, part) in enumerate(parts) if done != part]
        return "; ".join([f"{finished} of {planned} requests were finished", *lacking])
    if not finished:
        return "no request was finished"
    upstream = servers.upstream
    refuted = None if upstream is None else received.difference(requests.sent, begun.planned, begun.workload, upstream)
    if refuted := refuted or received.too_fast(requests.sent, begun.workload):
        return refuted
    if upstream is not None and upstream.requests is not None and upstream.requests < _SENT * succeeded:
        return (
            f"the client reports {succeeded:,} answered requests, and the upstream got {upstream.requests:,}: "
            "send one with each call, and keep no answers"
        )
    if succeeded:
        return None
    errors = requests.samples.errors
    kind = max(errors, key=errors.__getitem__)
    example = requests.samples.examples.get(kind, "")
    return f"none of {finished} requests succeeded; most often {kind}: {example}"
