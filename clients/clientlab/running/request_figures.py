"""What the requests of a trial amount to: counts, sums, quantiles, and their course over time, from its samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.histogram import Floats
from clientlab.analysis.latencies import QUANTILES, SLICES, rank_of
from clientlab.redaction import mask_text
from clientlab.results.shard import RequestCounts
from clientlab.results.trial import Histogram, Quantiles, Slice
from clientlab.running.busy_shares import delays_in
from clientlab.running.open_load import KeptSchedule
from clientlab.running.quantiles import histogram_part, quantiles_of, times_by_success
from clientlab.samples.log_reader import Records, Samples
from clientlab.workload.workload import Workload, delay_of


@dataclass(frozen=True)
class RequestFigures:
    """Figures of all finished requests of a trial. `overhead`: None where nobody knows what it leaves out."""

    counts: RequestCounts
    latency: Quantiles | None
    overhead: Quantiles | None
    histogram: Histogram
    failed_histogram: Histogram | None
    over_time: list[Slice]


def figures_of(
    found: Samples,
    kept: KeptSchedule | None,
    workload: Workload,
    span: tuple[float, float],
    unavoidable: Callable[[int], float] | None,
) -> RequestFigures:
    """The figures of a trial's samples. Latencies of an open load are from the planned starts (`kept`).

    `span`: the beginning in monotonic seconds, and wall seconds. `unavoidable`: a function from the number of a request
    to the seconds that the overhead leaves out; None: it is unknown.
    """
    sent, timed = (found, found.records) if kept is None else (kept.sent, kept.from_planned.records)
    answered, failed = times_by_success(timed)
    return RequestFigures(
        counts=counts_of(found, sent, workload),
        latency=quantiles_of(answered, failed),
        overhead=None if unavoidable is None else quantiles_of(*overheads_of(sent, unavoidable)),
        histogram=histogram_part(answered),
        failed_histogram=histogram_part(failed) if len(failed) else None,
        over_time=slices_of(timed, *span),
    )


def counts_of(found: Samples, sent: Samples, workload: Workload) -> RequestCounts:
    """The sums over samples. `sent`: without the dropped ones."""
    good = found.records["error"] == 0
    return RequestCounts(
        finished=len(found.records),
        errors=found.errors,
        error_examples={kind: mask_text(text) for kind, text in found.examples.items()},
        sent=len(sent.records),
        received_bytes=int(sent.records["bytes"].sum()),
        in_flight_seconds=float(found.records["seconds"].sum()),
        delay_seconds=delays_in(workload, sent),
        in_turn=in_turn(workload, sent),
        elapsed_seconds=float(found.records["elapsed"][good].sum(dtype="f8")) if workload.elapsed else None,
    )


_TIMER = 0.9
"""Share of its delay after which a request may end: clocks of client and server differ a little."""


def in_turn(workload: Workload, sent: Samples) -> float | None:
    """Share of the requests that ended at least their own requested delay after the one before; None without delays.

    If the upstream holds one request at a time, it is 1. Requests that wait side by side end at any moment.
    """
    delay = delay_of(workload)
    if delay is None or len(sent.records) <= 1:
        return None
    ends = sent.records["start"] + sent.records["seconds"]
    order = np.argsort(ends)
    least = np.fromiter(map(delay, sent.numbers[order][1:].tolist()), np.float64, len(order) - 1)
    return float(np.mean(np.diff(ends[order]) >= _TIMER * least))


def overheads_of(sent: Samples, unavoidable: Callable[[int], float]) -> tuple[Floats, Floats]:
    """The times of the successful and of the failed requests, less the seconds that no client can save."""
    spared = np.fromiter(map(unavoidable, sent.numbers.tolist()), np.float64, len(sent.numbers))
    overhead, good = sent.records["seconds"] - spared, sent.records["error"] == 0
    return overhead[good], overhead[~good]


def slices_of(records: Records, began: float, wall: float) -> list[Slice]:
    """The trial in 60 slices of equal length: the requests that ended in each, their median and p99.

    A quantile that falls on a failed request is unknown.
    """
    ended = records["start"] + records["seconds"] - began
    length = max(wall / SLICES, 1e-9)
    places = np.minimum((ended / length).astype(np.int64), SLICES - 1)
    return [_slice(index * length, records[places == index]) for index in range(SLICES)]


def _slice(at: float, part: Records) -> Slice:
    answered = np.sort(times_by_success(part)[0])

    def known(percent: float) -> float | None:
        rank = rank_of(percent, len(part))
        return float(answered[rank - 1]) if 0 < rank <= len(answered) else None

    errors = len(part) - len(answered)
    return Slice(at=at, requests=len(part), errors=errors, p50=known(QUANTILES["p50"]), p99=known(QUANTILES["p99"]))
