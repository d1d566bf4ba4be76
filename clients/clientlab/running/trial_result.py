"""From one trial's samples, outcome and server counters to the figures of the run document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from clientlab import strategies
from clientlab.analysis import summary
from clientlab.analysis.histogram import Floats, histogram_of
from clientlab.judging.verdict import Shares, of_schedule, verdict
from clientlab.measuring.external_tool import ToolNote
from clientlab.measuring.measurement import Measurement, Outcome
from clientlab.results.ceiling import Ceiling
from clientlab.results.document import Placement
from clientlab.results.shard import Reading
from clientlab.results.trial import Bound, Histogram, Noise, PlannedTrial, ServerUse, Trial
from clientlab.running.busy_shares import ServersUse, in_flight, shares_of
from clientlab.running.link_waits import delays_in, link_waits, traffic_of
from clientlab.running.open_load import kept_schedule
from clientlab.samples.log_reader import Samples
from clientlab.workload.link import unavoidable_of
from clientlab.workload.load import requests_in
from clientlab.workload.withheld import text_filter
from clientlab.workload.workload import Workload

COUNTERS = ("cpu_seconds", "requests", "connections", "held_seconds")
"""Fields of a server's use that grow; the others are as the server reports them."""


def spent(before: Reading, after: Reading) -> ServersUse:
    """The growth of the servers' counters between two readings."""
    pairs = ((getattr(after, part), getattr(before, part)) for part in ("upstream", "proxy", "link"))
    return ServersUse(*(_less(*pair) for pair in pairs))


@dataclass(frozen=True)
class Begun:
    """A trial whose process was started. `started`: UTC, ISO 8601."""

    planned: PlannedTrial
    workload: Workload
    started: str
    deadline_seconds: float | None = None

    def trial(self, **outcome: Any) -> Trial:
        """The trial as it ended, without secrets in its texts. Raises ValidationError for figures that no trial has."""
        reason, examples = outcome.get("reason"), outcome.get("error_examples")
        if reason or examples:
            without_secrets = text_filter(self.workload)
            outcome["reason"] = reason and without_secrets(reason)
            outcome["error_examples"] = {kind: without_secrets(text) for kind, text in (examples or {}).items()}
        return Trial.of(self.planned, started=self.started, deadline_seconds=self.deadline_seconds, **outcome)


def finished_trial(
    begun: Begun,
    measurement: Measurement,
    servers: ServersUse,
    ceiling: Ceiling | None = None,
    placement: Placement | None = None,
) -> Trial:
    """The trial with every figure that its samples, its outcome and the servers' counters give.

    `ceiling`: that of its arm; None where it was not measured. Raises ValidationError for figures that no trial can
    have.
    """
    planned, workload = begun.planned, begun.workload
    outcome, found = measurement.outcome, measurement.samples
    kept = kept_schedule(found, workload)
    work = work_of(found, workload)
    reason = _failure(found, workload)
    figures = {
        "noise": _noise(planned, outcome, servers),
        **_of_samples(found, workload, (outcome.began, outcome.wall_seconds), unavoidable_of(workload, planned.link)),
        **judged(
            begun, outcome, work, servers, ceiling, placement, kept.figures(outcome.wall_seconds) if kept else None
        ),
    }
    if figures["waits_for_connection"]:
        figures["overhead_seconds"] = None
    if measurement.tool is not None:
        figures |= _of_tool(planned, measurement.tool)
    return begun.trial(status="failed" if reason else "done", reason=reason, **figures)


@dataclass(frozen=True)
class WorkDone:
    """Sums over the requests of a trial, or of a shard. `in_flight_seconds`: as the client timed them, all of them.

    `requests`: finished ones. `sent`: those that were not dropped; bytes and `delay_seconds`, the requested delays
    (None: there are none), are of these.
    """

    requests: int
    succeeded: int
    sent: int
    received_bytes: int
    in_flight_seconds: float
    delay_seconds: float | None


def work_of(found: Samples, workload: Workload) -> WorkDone:
    """The sums over a trial's samples."""
    kept = kept_schedule(found, workload)
    sent = kept.sent if kept else found
    return WorkDone(
        requests=len(found.records),
        succeeded=int((found.records["error"] == 0).sum()),
        sent=len(sent.records),
        received_bytes=int(sent.records["bytes"].sum()),
        in_flight_seconds=float(found.records["seconds"].sum()),
        delay_seconds=delays_in(workload, sent),
    )


def judged(  # noqa: PLR0913, PLR0917 - all that a trial's verdict rests on
    begun: Begun,
    outcome: Outcome,
    work: WorkDone,
    servers: ServersUse,
    ceiling: Ceiling | None,
    placement: Placement | None,
    load: dict[str, Any] | None,
    usable: float | None = None,
) -> dict[str, Any]:
    """The figures that are sums over processes, and the verdict with the shares that lead to it.

    `load`: the fields of `OpenLoad`; None for a closed load. `usable`: cores of the client's machines; None: this one.
    """
    planned, wall = begun.planned, outcome.wall_seconds
    opened = None if _hides_connections(planned) else outcome.connections_opened
    waits = link_waits(planned, traffic_of(begun.workload, work.sent, work.received_bytes, opened, wall))
    held = in_flight(work.in_flight_seconds, wall, servers, waits)
    delays = work.delay_seconds
    if waits is not None:
        delays = (delays or 0.0) + waits.seconds
    shares = shares_of(planned, outcome, delays, servers, held, placement, usable)
    if waits is not None:
        shares = replace(shares, bandwidth=waits.bandwidth)
    if ceiling is not None and ceiling.requests_per_second is not None:
        shares = replace(shares, ceiling=work.succeeded / wall / ceiling.requests_per_second)
    return {
        "connections_opened": opened,
        "gil": outcome.gil,
        "cpu_seconds": outcome.cpu_seconds,
        "idle_rss_bytes": outcome.idle_rss_bytes,
        "peak_rss_bytes": outcome.peak_rss_bytes,
        "idle_pss_bytes": outcome.idle_pss_bytes,
        "peak_pss_bytes": outcome.peak_pss_bytes,
        "upstream_use": servers.upstream,
        "proxy_use": servers.proxy,
        "link_use": servers.link,
        "busy": {part: share for part, share in vars(shares).items() if share is not None},
        "in_flight": held,
        "duration_extended": outcome.extended,
        **_limits(planned, (shares, ceiling), work.requests, load),
    }


def partial_trial(begun: Begun, found: Samples, status: Literal["failed", "lost"], reason: str) -> Trial:
    """A trial that was ended, with the figures of the requests that had finished, if any had.

    Its wall time is that from the start of its first request to the end of the last one that finished. Raises
    ValidationError for figures that no trial can have.
    """
    if not len(found.records):
        return begun.trial(status=status, reason=reason)
    began = float(found.records["start"][0])
    wall = float((found.records["start"] + found.records["seconds"]).max()) - began
    figures = _of_samples(found, begun.workload, (began, wall), None)
    return begun.trial(status=status, reason=reason, partial=True, **figures)


def _of_samples(
    found: Samples, workload: Workload, span: tuple[float, float], unavoidable: Callable[[int], float] | None
) -> dict[str, Any]:
    """Counts, rates and latencies. Quantiles are of all requests; those of an open load, from the planned starts.

    `span`: monotonic seconds, and wall seconds. `unavoidable`: what the overhead leaves out; None: it is unknown.
    """
    kept, (began, wall) = kept_schedule(found, workload), span
    sent, records = (kept.sent if kept else found), (kept.from_planned if kept else found).records
    succeeded = records["error"] == 0
    good, failed = records[succeeded], records[~succeeded]
    return {
        "wall_seconds": wall,
        "requests": len(records),
        "errors": found.errors,
        "error_examples": {kind: text for kind, text in found.examples.items() if kind in found.errors},
        "requests_per_second": len(good) / wall,
        "latency_seconds": summary.latency_of(good["seconds"], failed["seconds"]),
        "elapsed_seconds_sum": float(good["elapsed"].sum(dtype="f8")) if workload.elapsed else None,
        "overhead_seconds": unavoidable and summary.overhead_of(sent.records, sent.numbers, unavoidable),
        "bytes_received": int(records["bytes"].sum()),
        "histogram": histogram_part(good["seconds"]),
        "failed_histogram": histogram_part(failed["seconds"]) if len(failed) else None,
        "over_time": summary.over_time(records, began, wall),
    }


def _hides_connections(planned: PlannedTrial) -> bool:
    return strategies.client_spec(strategies.find(planned.strategy).client).quirks.uncounted


def histogram_part(seconds: Floats) -> Histogram:
    """The latencies as the run document holds them. `seconds`: shape (n,)."""
    return Histogram(encoded=histogram_of(seconds).encode().decode())


def _of_tool(planned: PlannedTrial, note: ToolNote) -> dict[str, Any]:
    """Figures that an external tool reported. Its memory, and when each request began, are unknown."""
    return {
        "driver": strategies.client_spec(strategies.find(planned.strategy).client).program,
        "kept_alive": note.kept_alive,
        "over_time": [],
        "idle_rss_bytes": None,
        "peak_rss_bytes": None,
        "idle_pss_bytes": None,
        "peak_pss_bytes": None,
    }


def _noise(planned: PlannedTrial, outcome: Outcome, servers: ServersUse) -> Noise | None:
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


def _failure(found: Samples, workload: Workload) -> str | None:
    """Why the trial as a whole has failed: requests are missing, or not one succeeded."""
    requests = requests_in(workload)
    if requests is not None and len(found.records) != requests:
        return f"{len(found.records)} of {requests} requests were finished"
    if not len(found.records):
        return "no request was finished"
    if sum(found.errors.values()) < len(found.records):
        return None
    kind = max(found.errors, key=found.errors.__getitem__)
    return f"none of {len(found.records)} requests succeeded; most often {kind}: {found.examples.get(kind, '')}"


def _less(after: ServerUse | None, before: ServerUse | None) -> ServerUse | None:
    if after is None or before is None:
        return None
    grown = {name: _grown(getattr(after, name), getattr(before, name)) for name in COUNTERS}
    return ServerUse(**{**dict(after), **grown})


def _grown(after: float | None, before: float | None) -> float | None:
    """How much a counter grew; None where either reading lacks it."""
    return None if after is None or before is None else after - before


def _limits(
    planned: PlannedTrial, limits: tuple[Shares, Ceiling | None], requests: int, load: dict[str, Any] | None
) -> dict[str, Any]:
    """The verdict, and whether latencies hold the wait for a connection.

    `requests`: finished ones. `load`: the fields of `OpenLoad`; None for a closed load.
    """
    found = _verdict(planned, *limits)
    if load is None:
        return {"verdict": found, "waits_for_connection": _waits(planned, requests, found)}
    waits = _waits(planned, load["most_in_flight"], found)
    queued = max(0, load["in_flight_at_end"] - planned.concurrency)
    return {"verdict": of_schedule(**load, queued=queued), "waits_for_connection": waits, "open_load": load}


def _verdict(planned: PlannedTrial, shares: Shares, ceiling: Ceiling | None) -> Bound:
    executor = strategies.executor_spec(strategies.find(planned.strategy).executor)
    limit = None if ceiling is None else ceiling.verdict
    return verdict(shares, planned.concurrency, threads=executor.threads, ceiling=limit)


def _waits(planned: PlannedTrial, requests: int, found: Bound) -> bool:
    """Whether the clock of most requests started before a connection was free for them.

    So it is where all clocks start at once, and where a small pool holds the trial back. `requests`: of an open load,
    the most that were in flight at once.
    """
    executor = strategies.executor_spec(strategies.find(planned.strategy).executor)
    return (executor.clock_first and requests > planned.concurrency) or found == "client-connections"
