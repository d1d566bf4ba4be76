"""From one trial's samples, marks and server counters to the figures of the run document."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.analysis import summary
from clientlab.analysis.samples import Samples
from clientlab.analysis.verdict import Shares, busy, verdict, waited
from clientlab.measuring.trial import Outcome
from clientlab.runs.document import Histogram, Quantiles, ServerUse, Slice, Trial
from clientlab.runs.surroundings import cpu_usable
from clientlab.workload import Workload, delay_of


@dataclass(frozen=True)
class Reading:
    """What the servers behind one way have spent and counted so far; None for a part that can't be asked."""

    upstream: ServerUse | None = None
    proxy: ServerUse | None = None
    upstream_lanes: int = 1  # processes that the upstream's CPU time is shared out to


@dataclass(frozen=True)
class Spent:
    """What the servers spent between two readings."""

    upstream: ServerUse | None
    proxy: ServerUse | None
    upstream_lanes: int


def spent(before: Reading, after: Reading) -> Spent:
    """The difference of two readings."""
    return Spent(_less(after.upstream, before.upstream), _less(after.proxy, before.proxy), after.upstream_lanes)


def with_figures(planned: Trial, workload: Workload, outcome: Outcome, found: Samples, servers: Spent) -> Trial:
    """The trial with every figure that its samples, its marks and the servers' counters give."""
    records, wall = found.records, outcome.wall_seconds
    succeeded = records["error"] == 0
    good = records[succeeded]
    histogram = summary.histogram_of(good["seconds"])
    latency = summary.latency_of(good["seconds"], histogram)
    delay = delay_of(workload)
    overhead = summary.overhead_of(good, found.numbers[succeeded], delay) if delay else None
    reason = _failure(found, workload)
    delays = sum(map(delay, found.numbers.tolist())) if delay else None
    shares = _shares(planned.concurrency, outcome, delays, servers)
    return planned.model_copy(
        update={
            "status": "failed" if reason else "done",
            "reason": reason,
            "wall_seconds": wall,
            "requests": len(records),
            "errors": found.errors,
            "error_examples": {k: v for k, v in found.examples.items() if k in found.errors},
            "requests_per_second": len(good) / wall,
            "connections_opened": outcome.connections_opened,
            "cpu_seconds": outcome.cpu_seconds,
            "idle_rss_bytes": outcome.idle_rss_bytes,
            "peak_rss_bytes": outcome.peak_rss_bytes,
            "latency_seconds": Quantiles(**latency) if latency else None,
            "elapsed_seconds_sum": float(good["elapsed"].sum(dtype="f8")) if workload.elapsed else None,
            "overhead_seconds": Quantiles(**overhead) if overhead else None,
            "bytes_received": int(records["bytes"].sum()),
            "histogram": Histogram(encoded=histogram.encode().decode()),
            "over_time": [Slice.model_validate(row) for row in summary.over_time(records, outcome.began, wall)],
            "upstream_use": servers.upstream,
            "proxy_use": servers.proxy,
            "busy": {part: share for part, share in vars(shares).items() if share is not None},
            "verdict": verdict(shares, wall),
        }
    )


def _failure(found: Samples, workload: Workload) -> str | None:
    """Why the trial as a whole has failed: requests are missing, or not one succeeded."""
    if workload.requests is not None and len(found.records) != workload.requests:
        return f"{len(found.records)} of {workload.requests} requests were finished"
    if not len(found.records):
        return "no request was finished"
    if sum(found.errors.values()) < len(found.records):
        return None
    kind = max(found.errors, key=found.errors.__getitem__)
    return f"none of {len(found.records)} requests succeeded; most often {kind}: {found.examples.get(kind, '')}"


def _less(after: ServerUse | None, before: ServerUse | None) -> ServerUse | None:
    if after is None or before is None:
        return None
    return ServerUse(
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        requests=None if after.requests is None else after.requests - (before.requests or 0),
        connections=None if after.connections is None else after.connections - (before.connections or 0),
    )


def _shares(concurrency: int, outcome: Outcome, delays: float | None, servers: Spent) -> Shares:
    wall, cores = outcome.wall_seconds, max(1, int(cpu_usable()))
    upstream, proxy = servers.upstream, servers.proxy
    return Shares(
        client=busy(outcome.cpu_seconds, wall, outcome.processes, cores),
        proxy=None if proxy is None else busy(proxy.cpu_seconds, wall, cores, cores),
        upstream=None if upstream is None else busy(upstream.cpu_seconds, wall, servers.upstream_lanes, cores),
        latency=None if delays is None else waited(delays, wall, concurrency),
    )
