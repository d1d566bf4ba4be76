"""From what was measured of a trial to the trial of the run document: it is judged here, once and as a whole."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from clientlab import strategies
from clientlab.judging.backlog import growth_of
from clientlab.judging.verdict import Shares, of_schedule, verdict
from clientlab.measuring.outcome import Measurement, Outcome
from clientlab.measuring.tool_trials import ToolNote
from clientlab.redaction import mask_text
from clientlab.results.bottleneck import Bound, InFlight
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters
from clientlab.results.shard import RequestCounts, WholeLoad
from clientlab.results.trial import ClockOffset, Noise, OpenLoad, PlannedTrial, Quantiles, Shard, Trial
from clientlab.running import received
from clientlab.running.busy_shares import LinkTraffic, carried_by, in_flight, link_waits, shares_of
from clientlab.running.open_load import kept_schedule
from clientlab.running.quantiles import quantiles_of, times_by_success
from clientlab.running.request_figures import RequestFigures, counts_of, figures_of
from clientlab.running.whole_load import divisors_of, whole_load_of
from clientlab.samples.log_reader import Samples
from clientlab.workload.link import unavoidable_of
from clientlab.workload.load import requests_in
from clientlab.workload.making import body_size
from clientlab.workload.shard_workload import part_of
from clientlab.workload.workload import Workload

_SENT = 0.9
"""A client whose upstream got a smaller part of the requests that it reports as answered did not send them."""

_OWN_QUEUES = ("client-connections", "client-streams")
"""Verdicts of trials whose requests waited inside the client, after their clock had begun."""


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
        """The trial without figures."""
        return Trial(**self.fields, status=status, reason=mask_text(reason))


@dataclass(frozen=True)
class WholeTrial:
    """What was measured of a whole trial, by one process or by all of its shards.

    `load`: None for a closed one. `loaded`: while the load was whole; None where the wall time counts. `tool`: the
    report of an external tool; None where the recorder timed the requests. `refuted`: how the client's report differs
    from what the upstream counted, or why its times are impossible; None if it is believed.
    `usable`: cores of the client's machines; None: those of this machine. `by_shard`: of a divided trial.
    """

    outcome: Outcome
    requests: RequestFigures
    servers: ServerCounters
    load: OpenLoad | None = None
    tool: ToolNote | None = None
    usable: float | None = None
    by_shard: Sequence[Shard] = ()
    loaded: WholeLoad | None = None
    refuted: str | None = None


@dataclass(frozen=True)
class _Judgement:
    """What limited a trial, and the figures that led to it. `opened`: connections; None where the client hides them."""

    verdict: Bound
    waits_for_connection: bool
    shares: Shares
    held: InFlight
    opened: int | None


def finished_trial(
    begun: Begun,
    measurement: Measurement,
    servers: ServerCounters,
    placement: Placement | None = None,
) -> Trial:
    """The trial with every figure that its samples, its outcome and the servers' counters give.

    Raises ValidationError for figures that no trial can have.
    """
    outcome, found, workload = measurement.outcome, measurement.samples, begun.workload
    span, kept = (outcome.began, outcome.wall_seconds), kept_schedule(found, workload)
    unavoidable = unavoidable_of(workload, begun.planned.link)
    requests = figures_of(found, kept, workload, span, unavoidable)
    if measurement.tool is not None:  # it does not report when each request began
        requests = replace(requests, over_time=[])
    load = None if kept is None else kept.figures(*span, unavoidable)
    shards = _shards(begun, measurement)
    loaded = whole_load_of(measurement, workload)
    sent = found if kept is None else kept.sent
    refuted = received.too_fast(sent, workload)
    if servers.upstream is not None:
        refuted = received.difference(sent, begun.planned, workload, servers.upstream) or refuted
    whole = WholeTrial(
        outcome, requests, servers, load, measurement.tool, by_shard=shards, loaded=loaded, refuted=refuted
    )
    return judged(begun, whole, placement)


def _shards(begun: Begun, measurement: Measurement) -> list[Shard]:
    """Each shard with its own requests; empty for a trial that is not divided."""
    found, many, shards = measurement.samples, len(measurement.by_shard), []
    for index, outcome in enumerate(measurement.by_shard):
        own = found.only(found.numbers % many == index)
        kept = kept_schedule(own, begun.workload)
        sent, timed = (own, own) if kept is None else (kept.sent, kept.from_planned)
        counts = counts_of(own, sent, begun.workload)
        part = begun.planned.model_copy(update={"concurrency": part_of(begun.planned.concurrency, index, many)})
        latency = quantiles_of(*times_by_success(timed.records))
        began = outcome.began - measurement.outcome.began
        loaded = whole_load_of(Measurement(outcome, own), begun.workload)
        shards.append(shard_part(part, outcome, counts, latency, began, platform.node(), loaded=loaded))
    return shards


def shard_part(  # noqa: PLR0913, PLR0917 - a shard's particulars
    planned: PlannedTrial,
    outcome: Outcome,
    counts: RequestCounts,
    latency: Quantiles | None,
    began: float,
    host: str,
    clock: ClockOffset | None = None,
    loaded: WholeLoad | None = None,
) -> Shard:
    """The figures of one shard. `planned`: with its own concurrency. `began`: seconds after the first shard."""
    return Shard(
        host=host,
        clock=clock,
        began_seconds=began,
        wall_seconds=outcome.wall_seconds,
        concurrency=planned.concurrency,
        requests=counts.finished,
        errors=counts.errors,
        requests_per_second=counts.succeeded / divisors_of(loaded, outcome, counts).work,
        latency_seconds=latency,
        connections_opened=connections_opened(planned, outcome, counts),
        cpu_seconds=outcome.cpu_seconds,
        peak_pss_bytes=outcome.peak_pss_bytes,
    )


def partial_trial(begun: Begun, found: Samples, status: Literal["failed", "lost"], reason: str) -> Trial:
    """A trial that was ended, with the figures of the requests that had finished, if any had.

    Its wall time is that from the start of its first request to the end of the last one that finished. Raises
    ValidationError for figures that no trial can have.
    """
    if not len(found.records):
        return begun.ended(status, reason)
    began = float(found.records["start"][0])
    wall = float((found.records["start"] + found.records["seconds"]).max()) - began
    kept = kept_schedule(found, begun.workload)
    requests = figures_of(found, kept, begun.workload, (began, wall), None)
    counts = requests.counts
    return Trial(
        **begun.fields,
        status=status,
        reason=mask_text(reason),
        partial=True,
        wall_seconds=wall,
        requests=counts.finished,
        errors=counts.errors,
        error_examples=counts.error_examples,
        requests_per_second=counts.succeeded / wall,
        latency_seconds=requests.latency,
        elapsed_seconds_sum=counts.elapsed_seconds,
        bytes_received=counts.received_bytes,
        histogram=requests.histogram,
        failed_histogram=requests.failed_histogram,
        over_time=requests.over_time,
    )


def judged(begun: Begun, whole: WholeTrial, placement: Placement | None = None) -> Trial:
    """The trial with its verdict and the shares that lead to it. Raises ValidationError for impossible figures."""
    outcome, servers, tool = whole.outcome, whole.servers, whole.tool
    requests, counts = whole.requests, whole.requests.counts
    found = _judgement(begun, whole, placement)
    reason = _failure(begun.workload, whole)
    return Trial(
        **begun.fields,
        status="failed" if reason else "done",
        reason=reason and mask_text(reason),
        wall_seconds=outcome.wall_seconds,
        requests=counts.finished,
        errors=counts.errors,
        error_examples=counts.error_examples,
        requests_per_second=counts.succeeded / divisors_of(whole.loaded, outcome, counts).work,
        tail_seconds=None if whole.loaded is None else max(0.0, outcome.wall_seconds - whole.loaded.seconds),
        connections_opened=found.opened,
        connections_reopened=None if found.opened is None else outcome.connections_reopened,
        driver=None if tool is None else strategies.client_spec(strategies.find(begun.planned.strategy).client).program,
        kept_alive=None if tool is None else tool.kept_alive,
        gil=outcome.gil,
        cpu_seconds=outcome.cpu_seconds,
        idle_rss_bytes=outcome.idle_rss_bytes,
        peak_rss_bytes=outcome.peak_rss_bytes,
        idle_pss_bytes=outcome.idle_pss_bytes,
        peak_pss_bytes=outcome.peak_pss_bytes,
        latency_seconds=requests.latency,
        open_load=whole.load,
        elapsed_seconds_sum=counts.elapsed_seconds,
        overhead_seconds=None if found.waits_for_connection else requests.overhead,
        waits_for_connection=found.waits_for_connection,
        bytes_received=counts.received_bytes,
        histogram=requests.histogram,
        failed_histogram=requests.failed_histogram,
        over_time=requests.over_time,
        upstream_use=servers.upstream,
        proxy_use=servers.proxy,
        link_use=servers.link,
        noise=_noise(begun.planned, outcome, servers),
        by_shard=list(whole.by_shard),
        busy={part: share for part, share in vars(found.shares).items() if share is not None},
        in_flight=found.held,
        verdict=found.verdict,
    )


def connections_opened(planned: PlannedTrial, outcome: Outcome, counts: RequestCounts) -> int | None:
    """Return the connections that the client opened, or None if they could not be counted.

    A user's function may use a library that connects outside Python. Its requests then succeed without a connection.
    """
    spec = strategies.client_spec(strategies.find(planned.strategy).client)
    unseen = counts.succeeded > 0 and outcome.connections_in_all == 0
    return None if spec.quirks.uncounted or unseen else outcome.connections_opened


def _judgement(begun: Begun, whole: WholeTrial, placement: Placement | None) -> _Judgement:
    planned, outcome, counts = begun.planned, whole.outcome, whole.requests.counts
    over = divisors_of(whole.loaded, outcome, counts)
    opened = connections_opened(planned, outcome, counts)
    waits = link_waits(planned, _traffic(begun.workload, whole, opened, over.work))
    held = in_flight(counts.in_flight_seconds, over.in_flight, whole.servers, over.waits(waits))
    delays = over.delays(counts.delay_seconds)
    if waits is not None:
        delays = (delays or 0.0) + waits.seconds
    loaded = over.outcome(outcome, whole.servers)
    shares = shares_of(planned, loaded, delays, over.held(whole.servers), held, placement, whole.usable)
    if waits is not None:
        shares = replace(shares, bandwidth=waits.bandwidth)
    shares = replace(shares, in_turn=counts.in_turn)
    executor, load = strategies.executor_spec(strategies.find(planned.strategy).executor), whole.load
    found = verdict(shares, planned.concurrency, threads=executor.threads)
    # The clock of most requests started before a connection was free for them where all clocks start at once, and where
    # a small pool holds the trial back.
    at_once = counts.finished if load is None else load.most_in_flight
    waited = (executor.clock_first and at_once > planned.concurrency) or found in _OWN_QUEUES
    if load is not None:
        grows = growth_of(load, whole.requests.over_time, outcome.wall_seconds) is not None
        found = _of_schedule(load, planned, grows=grows)
    return _Judgement(found, waited, shares, held, opened)


def _traffic(workload: Workload, whole: WholeTrial, opened: int | None, seconds: float) -> LinkTraffic:
    """What the trial sent and received in so many seconds. `opened`: connections; None where the client hides them."""
    counts, size = whole.requests.counts, body_size(workload)
    return LinkTraffic(
        requests=counts.sent,
        opened=opened,
        received_bytes=counts.received_bytes,
        upload_bytes=None if size is None else counts.sent * size,
        wall_seconds=seconds,
        carried_bytes=carried_by(whole.servers.link),
    )


def _of_schedule(load: OpenLoad, planned: PlannedTrial, *, grows: bool) -> Bound:
    return of_schedule(
        planned_per_second=load.planned_per_second,
        achieved_per_second=load.achieved_per_second,
        dropped=load.dropped,
        queued=max(0, (load.in_flight_at_end or 0) - planned.concurrency),
        grows=grows,
    )


def _noise(planned: PlannedTrial, outcome: Outcome, servers: ServerCounters) -> Noise | None:
    """The disturbance of a trial. What others took is unknown where the CPU time of a server is."""
    found = outcome.disturbance
    if found is None:
        return None
    own = [outcome.cpu_seconds]
    own += [use.cpu_seconds for use in (servers.upstream, servers.proxy, servers.link) if use is not None]
    unknown = servers.upstream is None or (servers.proxy is None and planned.route != "direct")
    unknown = unknown or (servers.link is None and planned.link is not None)
    others = None if unknown or found.machine_cpu_seconds is None else max(0.0, found.machine_cpu_seconds - sum(own))
    return Noise(
        seconds=found.seconds,
        others_cpu_seconds=others,
        steal_seconds=found.steal_seconds,
        cpu_pressure_seconds=found.cpu_pressure_seconds,
        group_pressure_seconds=found.group_pressure_seconds,
        run_delay_seconds=found.run_delay_seconds,
        involuntary_switches=found.involuntary_switches,
        frequency_before_hz=found.frequencies[0],
        frequency_after_hz=found.frequencies[1],
    )


def _failure(workload: Workload, whole: WholeTrial) -> str | None:
    """Why the trial as a whole has failed: requests are missing, not one succeeded, or the client did not send them."""
    counts, planned = whole.requests.counts, requests_in(workload)
    if planned is not None and counts.finished != planned:
        parts = [(shard.requests, part_of(planned, i, len(whole.by_shard))) for i, shard in enumerate(whole.by_shard)]
        lacking = [f"shard {i + 1}: {done} of {part}" for i, (done, part) in enumerate(parts) if done != part]
        return "; ".join([f"{counts.finished} of {planned} requests were finished", *lacking])
    if not counts.finished:
        return "no request was finished"
    if whole.refuted:
        return whole.refuted
    served = None if whole.servers.upstream is None else whole.servers.upstream.requests
    if served is not None and served < _SENT * counts.succeeded:
        return (
            f"the client reports {counts.succeeded:,} answered requests, and the upstream got {served:,}: "
            "send one with each call, and keep no answers"
        )
    if counts.succeeded:
        return None
    kind = max(counts.errors, key=counts.errors.__getitem__)
    example = counts.error_examples.get(kind, "")
    return f"none of {counts.finished} requests succeeded; most often {kind}: {example}"
