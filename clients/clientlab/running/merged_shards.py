"""A trial from the reports of its shards: counts, times and histograms add up, and it is judged once, as a whole.

Quantiles come from the added histograms, and are never averaged. What only the samples of all shards together could
give is left unknown: quantiles over time, and the CPU time of other programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
from pydantic import ValidationError

from clientlab.analysis.histogram import Floats
from clientlab.measuring.noise import most_disturbed, over_known
from clientlab.measuring.outcome import summed
from clientlab.results.part import first_problem
from clientlab.results.server_counters import first_of, last_of
from clientlab.results.shard import RequestCounts, ScheduleCounts, ShardReport, ShardSlices, WholeLoad
from clientlab.results.trial import OpenLoad, Shard, Slice, Trial
from clientlab.running.open_load import delayed_at, load_slices_of, open_load, seconds_of
from clientlab.running.quantiles import added_part, quantiles_of_histograms
from clientlab.running.request_figures import RequestFigures
from clientlab.running.trial_result import Begun, WholeTrial, judged, shard_part
from clientlab.running.whole_load import first_end
from clientlab.workload.link import unavoidable_of
from clientlab.workload.load import arrivals_of, is_open


def merged_trial(begun: Begun, reports: Sequence[ShardReport]) -> Trial:
    """Return the trial whose shards have all reported, in any order.

    It has failed if a figure is impossible, or if a worker's clock was so wrong that its shard seems to have begun long
    before or after the others.
    """
    reports = sorted(reports, key=attrgetter("index"))
    began = [one.outcome.began for one in reports]
    apart = max(began) - min(began)
    if begun.deadline_seconds is not None and apart > begun.deadline_seconds:
        why = f"the shards began {apart:,.0f} s apart, and the trial ends after {begun.deadline_seconds:,.0f} s"
        return begun.ended("failed", why)
    try:
        return _merged(begun, reports)
    except ValidationError as error:
        return begun.ended("failed", f"impossible figure: {first_problem(error)}")


def _merged(begun: Begun, reports: Sequence[ShardReport]) -> Trial:
    outcomes = [one.outcome for one in reports]
    # The busiest machine limits the trial. To each shard, the others on its machine are other programs.
    outcome = replace(summed(outcomes), disturbance=most_disturbed([one.disturbance for one in outcomes]))
    whole = WholeTrial(
        outcome=outcome,
        requests=_requests(reports),
        servers=last_of([one.after for one in reports]).since(first_of([one.before for one in reports])),
        load=_load(begun, reports),
        usable=_cores(reports),
        by_shard=[_shard(report, outcome.began) for report in reports],
        loaded=_loaded(begun, reports),
    )
    return judged(begun, whole)


def _requests(reports: Sequence[ShardReport]) -> RequestFigures:
    latencies = [one.latency for one in reports]
    overheads = [one.overhead for one in reports if one.overhead is not None]
    failed = [one.failed for one in latencies if one.failed is not None]
    return RequestFigures(
        counts=_request_counts([one.counts for one in reports]),
        latency=quantiles_of_histograms(latencies),
        overhead=quantiles_of_histograms(overheads) if len(overheads) == len(reports) else None,
        histogram=added_part([one.answered for one in latencies]),
        failed_histogram=added_part(failed) if failed else None,
        over_time=_over_time(reports),
    )


def _request_counts(parts: Sequence[RequestCounts]) -> RequestCounts:
    return RequestCounts(
        finished=sum(one.finished for one in parts),
        errors=dict(sum((Counter(one.errors) for one in parts), Counter())),
        error_examples={kind: text for one in parts for kind, text in one.error_examples.items()},
        sent=sum(one.sent for one in parts),
        received_bytes=sum(one.received_bytes for one in parts),
        in_flight_seconds=sum(one.in_flight_seconds for one in parts),
        delay_seconds=over_known(sum, (one.delay_seconds for one in parts)),
        elapsed_seconds=over_known(sum, (one.elapsed_seconds for one in parts)),
    )


def _cores(reports: Sequence[ShardReport]) -> float:
    """Cores that the clients may use: those of their control groups, and no more than each machine has."""
    machines: dict[str, list[ShardReport]] = {}
    for report in reports:
        machines.setdefault(report.machine, []).append(report)
    return sum(min(sum(one.cores for one in there), there[0].machine_cores) for there in machines.values())


def _shard(report: ShardReport, first: float) -> Shard:
    began, latency = report.outcome.began - first, quantiles_of_histograms([report.latency])
    particulars = (report.planned, report.outcome, report.counts, latency, began, report.host, report.clock)
    return shard_part(*particulars, report.loaded)


def _loaded(begun: Begun, reports: Sequence[ShardReport]) -> WholeLoad | None:
    """What the shards did while all of them had requests; None where the wall time counts."""
    if is_open(begun.workload):
        return None
    if begun.workload.requests is None:
        known = [one.loaded for one in reports if one.loaded is not None]
        if len(known) < len(reports):
            return None
        return WholeLoad(
            seconds=max(one.seconds for one in known),
            requests=sum(one.requests for one in known),
            in_flight_seconds=sum(one.in_flight_seconds for one in known),
        )
    first = min(one.outcome.began for one in reports)
    until = first_end([one.outcome for one in reports])
    # Until its end, a shard has as many in flight as it may.
    spans = [(one, until - (one.outcome.began - first)) for one in reports]
    in_flight = sum(one.counts.in_flight_seconds * span / one.outcome.wall_seconds for one, span in spans)
    requests = sum(_done_until(one.slices, span) for one, span in spans)
    if requests <= 0 or in_flight <= 0:
        return None
    return WholeLoad(seconds=until, requests=requests, in_flight_seconds=in_flight)


def _done_until(slices: ShardSlices, seconds: float) -> float:
    """Requests that a shard did in so many seconds, as if they were spread evenly over each slice."""
    edges = 2.0**slices.exponent * np.arange(len(slices.done) + 1)
    return float(np.interp(seconds, edges, np.cumsum([0.0, *slices.done])))


def _over_time(reports: Sequence[ShardReport]) -> list[Slice]:
    length, (ended, failed) = _coarse(reports, ("ended", "failed"))
    return [
        Slice(at=index * length, requests=requests, errors=errors)
        for index, (requests, errors) in enumerate(zip(ended, failed, strict=True))
    ]


def _coarse(reports: Sequence[ShardReport], names: Sequence[str]) -> tuple[float, list[list[int]]]:
    """Seconds of a slice, and the counts in the slices of all shards, up to the last with a request.

    A slice of a power of two of seconds holds whole slices of every lower power.
    """
    exponent = max(report.slices.exponent for report in reports)
    totals = []
    for name in names:
        total: Counter[int] = Counter()
        for report in reports:
            finer = exponent - report.slices.exponent
            for index, count in enumerate(getattr(report.slices, name)):
                total[index >> finer] += count
        totals.append(total)
    used = 1 + max((index for total in totals for index, count in total.items() if count), default=-1)
    return 2.0**exponent, [[total[index] for index in range(used)] for total in totals]


def _load(begun: Begun, reports: Sequence[ShardReport]) -> OpenLoad | None:
    schedule, parts = arrivals_of(begun.workload), [one.load for one in reports if one.load is not None]
    if schedule is None or len(parts) < len(reports):
        return None
    length, (planned, sent, dropped) = _coarse(reports, ("planned", "sent", "dropped"))
    numbers = range(schedule.count)
    starts = np.fromiter(map(schedule.start_of, numbers), np.float64, schedule.count)
    seconds = seconds_of(unavoidable_of(begun.workload, begun.planned.link), numbers)
    edges: Floats = length * np.arange(len(planned) + 1, dtype=np.float64)
    return open_load(
        schedule,
        _load_counts([one.counts for one in parts]),
        lateness=quantiles_of_histograms([one.lateness for one in parts]),
        sent=quantiles_of_histograms([one.sent for one in parts]),
        over_time=load_slices_of(edges[:-1].tolist(), planned, sent, dropped, delayed_at(starts, seconds, edges)),
    )


def _load_counts(parts: Sequence[ScheduleCounts]) -> ScheduleCounts:
    added = {name: sum(getattr(one, name) for one in parts) for name in ScheduleCounts.model_fields}
    return ScheduleCounts(**added | {"last_sent_seconds": max(one.last_sent_seconds for one in parts)})
