"""A trial from the reports of its shards: counts, times and histograms add up, and it is judged once, as a whole.

Quantiles come from the added histograms, and are never averaged. What only the samples of all shards together could
give is left unknown: quantiles over time, and the CPU time of other programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from clientlab.analysis.histogram import added, distribution_of
from clientlab.analysis.summary import latency_of_buckets
from clientlab.errors import DROPPED
from clientlab.measuring.measurement import Outcome
from clientlab.measuring.noise import Disturbance
from clientlab.results.ceiling import Ceiling
from clientlab.results.document import Placement
from clientlab.results.shard import Reading, ShardReport, ShardTimes
from clientlab.results.trial import Noise, Quantiles, ServerUse, Shard, Trial
from clientlab.running.shard_checks import contradiction
from clientlab.running.trial_result import COUNTERS, Begun, WorkDone, judged, spent
from clientlab.workload.load import arrivals_of, requests_in


def merged_trial(
    begun: Begun, reports: Sequence[ShardReport], ceiling: Ceiling | None = None, placement: Placement | None = None
) -> Trial:
    """The trial of the planned one's workload, whose shards have reported. Raises ValidationError.

    A report for each shard, in any order. The trial has failed where the reports contradict themselves.
    """
    reports = sorted(reports, key=attrgetter("place"))
    if why := contradiction(begun, reports):
        return begun.trial(status="failed", reason=why)
    if not any(report.trial.requests for report in reports):
        return begun.trial(status="failed", reason="no request was finished")
    first = min(report.began for report in reports)
    # The difference first: beside seconds since 1970, a short time would be rounded to nothing.
    wall = max(report.began - first + (report.trial.wall_seconds or 0.0) for report in reports)
    servers = spent(_reading(min, [one.before for one in reports]), _reading(max, [one.after for one in reports]))
    load = _load(begun, reports)
    errors = _summed(report.trial.errors for report in reports)
    work = WorkDone(
        requests=_sum(reports, "trial.requests"),
        succeeded=_sum(reports, "trial.requests") - sum(errors.values()),
        sent=_sum(reports, "requests_sent"),
        received_bytes=_sum(reports, "trial.bytes_received"),
        in_flight_seconds=_sum(reports, "in_flight_seconds"),
        delay_seconds=_known(reports, "delay_seconds"),
    )
    latency = [report.latency for report in reports]
    answered = added(one.answered.encoded for one in latency)
    failed = added(one.failed.encoded for one in latency if one.failed is not None)
    overheads = [report.overhead for report in reports]
    figures = {
        "wall_seconds": wall,
        "requests": work.requests,
        "errors": errors,
        "error_examples": {kind: text for report in reports for kind, text in report.trial.error_examples.items()},
        "requests_per_second": work.succeeded / wall,
        "latency_seconds": quantiles_of(latency),
        "elapsed_seconds_sum": _known(reports, "trial.elapsed_seconds_sum"),
        "overhead_seconds": quantiles_of([one for one in overheads if one is not None]) if all(overheads) else None,
        "bytes_received": work.received_bytes,
        "histogram": {"encoded": answered.encode().decode()},
        "failed_histogram": {"encoded": failed.encode().decode()} if errors else None,
        "over_time": _over_time(reports),
        "noise": _noise(reports),
        "by_shard": [_shard(report, first) for report in reports],
        **judged(begun, _outcome(reports, first, wall), work, servers, ceiling, placement, load, _cores(reports)),
    }
    if figures["waits_for_connection"]:
        figures["overhead_seconds"] = None
    reason = _failure(begun, reports, work, figures["error_examples"])
    return begun.trial(status="failed" if reason else "done", reason=reason, **figures)


def quantiles_of(times: Sequence[ShardTimes]) -> dict[str, Any] | None:
    """The fields of `Quantiles` of the requests of all shards; None where none succeeded."""
    answered = recorded = added(one.answered.encoded for one in times)
    if failed := [one.failed.encoded for one in times if one.failed is not None]:
        recorded = added(failed)
        recorded.add(answered)
    total, longest = sum(one.sum_seconds for one in times), max((one.longest_seconds for one in times), default=0.0)
    return latency_of_buckets(distribution_of(answered), distribution_of(recorded), total, longest)


def _failure(begun: Begun, reports: Sequence[ShardReport], work: WorkDone, examples: dict[str, str]) -> str | None:
    """Why the trial as a whole has failed: requests are missing, or not one succeeded."""
    planned = requests_in(begun.workload)
    if planned is not None and work.requests != planned:
        lacking = [f"shard {one.place + 1}: {one.trial.reason}" for one in reports if one.trial.status != "done"]
        return "; ".join([f"{work.requests} of {planned} requests were finished", *lacking])
    if work.succeeded:
        return None
    kind = next(iter(examples), "")
    return f"none of {work.requests} requests succeeded; for example {kind}: {examples.get(kind, '')}"


def _sum(reports: Iterable[ShardReport], name: str) -> Any:
    """The sum of a figure, an unknown one as 0."""
    return sum(value for value in map(attrgetter(name), reports) if value is not None)


def _known(reports: Iterable[ShardReport], name: str) -> Any:
    """The sum of a figure; None where a shard does not know it."""
    values = list(map(attrgetter(name), reports))
    return None if None in values else sum(values)


def _summed(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in counts:
        for kind, count in one.items():
            found[kind] = found.get(kind, 0) + count
    return found


def _reading(extreme: Callable[[Iterable[float]], float], readings: Sequence[Reading]) -> Reading:
    """The least, or the largest, of each counter: servers count on, so these are the first and the last reading."""

    def of(uses: Sequence[ServerUse | None]) -> ServerUse | None:
        known = [use for use in uses if use is not None]
        if len(known) < len(uses) or not known:
            return None
        columns = {name: [getattr(use, name) for use in known] for name in COUNTERS}
        return known[0].model_copy(
            update={name: None if None in values else extreme(values) for name, values in columns.items()}
        )

    return Reading(**{part: of([getattr(one, part) for one in readings]) for part in Reading.model_fields})


def _outcome(reports: Sequence[ShardReport], first: float, wall: float) -> Outcome:
    busy = [report.machine_busy for report in reports]
    return Outcome(
        began=first,
        wall_seconds=wall,
        cpu_seconds=_sum(reports, "trial.cpu_seconds"),
        idle_rss_bytes=_sum(reports, "trial.idle_rss_bytes"),
        peak_rss_bytes=_sum(reports, "trial.peak_rss_bytes"),
        connections_begun=_sum(reports, "trial.connections_opened"),
        connections_opened=_sum(reports, "trial.connections_opened"),
        connections_in_all=_sum(reports, "connections_in_all"),
        processes=_sum(reports, "processes"),
        idle_pss_bytes=_known(reports, "trial.idle_pss_bytes"),
        peak_pss_bytes=_known(reports, "trial.peak_pss_bytes"),
        # The busiest machine limits the trial.
        disturbance=Disturbance(wall, busy_share=max(share for share in busy if share is not None))
        if any(busy)
        else None,
        extended=_extended(reports),
        callers=_sum(reports, "callers"),
        gil=all(report.trial.gil is not False for report in reports),
    )


def _extended(reports: Iterable[ShardReport]) -> bool | None:
    found = [report.trial.duration_extended for report in reports]
    return None if None in found else any(found)


def _cores(reports: Sequence[ShardReport]) -> float:
    """Cores that the clients may use: those of their control groups, and no more than each machine has."""
    machines: dict[str, list[ShardReport]] = {}
    for report in reports:
        machines.setdefault(report.machine, []).append(report)
    return sum(min(sum(one.cores for one in there), there[0].machine_cores) for there in machines.values())


def _noise(reports: Sequence[ShardReport]) -> Noise | None:
    """Of the machine that was disturbed most; what threads waited adds up.

    The CPU time of other programs is unknown: to each shard, the others on its machine are other programs.
    """
    found = [report.trial.noise for report in reports]
    known = [noise for noise in found if noise is not None]
    if not known or len(known) < len(found):
        return None

    def most(name: str, over: Callable[[Iterable[Any]], Any] = max) -> Any:
        values = [getattr(noise, name) for noise in known]
        return None if None in values else over(values)

    return Noise(
        seconds=most("seconds"),
        steal_seconds=most("steal_seconds"),
        cpu_pressure_seconds=most("cpu_pressure_seconds"),
        group_pressure_seconds=most("group_pressure_seconds"),
        run_delay_seconds=most("run_delay_seconds", sum),
        involuntary_switches=most("involuntary_switches", sum),
        frequency_before_hz=most("frequency_before_hz"),
        frequency_after_hz=most("frequency_after_hz", min),
    )


def _shard(report: ShardReport, first: float) -> Shard:
    trial, latency = report.trial, quantiles_of([report.latency])
    return Shard(
        host=report.host,
        clock=report.clock,
        began_seconds=report.began - first,
        wall_seconds=trial.wall_seconds or 0.0,
        concurrency=trial.concurrency,
        requests=trial.requests,
        errors=trial.errors,
        requests_per_second=trial.requests_per_second or 0.0,
        latency_seconds=None if latency is None else Quantiles(**latency),
        connections_opened=trial.connections_opened,
        cpu_seconds=trial.cpu_seconds or 0.0,
        peak_pss_bytes=trial.peak_pss_bytes,
    )


def _over_time(reports: Sequence[ShardReport]) -> list[dict[str, float]]:
    length, (ended, failed) = _coarse(reports, ("ended", "failed"))
    return [
        {"at": place * length, "requests": requests, "errors": errors}
        for place, (requests, errors) in enumerate(zip(ended, failed, strict=True))
    ]


def _coarse(reports: Sequence[ShardReport], names: Sequence[str]) -> tuple[float, list[list[int]]]:
    """Seconds of a slice, and the counts in the slices of all shards, up to the last with a request.

    A slice of a power of two of seconds holds whole slices of every lower power.
    """
    exponent = max(report.slices.exponent for report in reports)
    totals = []
    for name in names:
        total: dict[int, int] = {}
        for report in reports:
            finer = exponent - report.slices.exponent
            for place, count in enumerate(getattr(report.slices, name)):
                total[place >> finer] = total.get(place >> finer, 0) + count
        totals.append(total)
    used = 1 + max((place for total in totals for place, count in total.items() if count), default=-1)
    return 2.0**exponent, [[total.get(place, 0) for place in range(used)] for total in totals]


def _load(begun: Begun, reports: Sequence[ShardReport]) -> dict[str, Any] | None:
    """The fields of `OpenLoad`; None for a closed load."""
    schedule = arrivals_of(begun.workload)
    parts = [report.trial.open_load for report in reports]
    if schedule is None or None in parts:
        return None
    late, sent = ([getattr(one, name) for one in reports] for name in ("lateness", "sent"))
    last = max((one.last_sent_seconds or 0.0 for one in reports), default=0.0)
    length, (planned, begun_in, dropped) = _coarse(reports, ("planned", "sent", "dropped"))
    rows, backlog = [], 0
    for place, counts in enumerate(zip(planned, begun_in, dropped, strict=True)):
        backlog = max(0, backlog + counts[0] - counts[1] - counts[2])
        rows.append(
            {"at": place * length, **dict(zip(("planned", "sent", "dropped"), counts, strict=True)), "backlog": backlog}
        )
    return {
        "planned_per_second": schedule.count / schedule.length,
        "achieved_per_second": _sum(reports, "requests_sent") / max(schedule.length, last),
        "lateness_seconds": quantiles_of(late),
        "sent_seconds": quantiles_of(sent),
        "dropped": _summed(report.trial.errors for report in reports).get(DROPPED, 0),
        "most_backlog": _sum(reports, "trial.open_load.most_backlog"),
        "most_in_flight": _sum(reports, "trial.open_load.most_in_flight"),
        "in_flight_at_end": _known(reports, "trial.open_load.in_flight_at_end"),
        "over_time": rows,
    }
