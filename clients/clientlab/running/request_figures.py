"""The requests of a trial: counts, sums, quantiles, and their course over time, from its samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from clientlab.analysis.latencies import QUANTILES, SLICES, rank_of
from clientlab.redaction import mask_text
from clientlab.results.trial import Quantiles, Slice
from clientlab.running.open_load import kept_schedule
from clientlab.running.quantiles import histogram_part, quantiles_of, seconds_of, times_by_success
from clientlab.samples.log_reader import Records, Samples
from clientlab.workload.workload import Workload, delay_of

_TIMER = 0.9
"""Share of its delay after which a request may end: clocks of client and server differ a little."""


class TrialRequests:
    """The finished requests of a trial, or of one of its shards. `schedule`: None for a closed load."""

    def __init__(self, found: Samples, workload: Workload) -> None:
        self.samples, self._workload = found, workload
        self.schedule = kept_schedule(found, workload)
        self.sent, self.timed = found, found.records
        if self.schedule is not None:  # some were dropped, and latencies are from the planned starts
            self.sent, self.timed = self.schedule.sent, self.schedule.from_planned
        self.finished = len(found.records)
        self.succeeded = self.finished - sum(found.errors.values())
        self.received_bytes = int(self.sent.records["bytes"].sum())
        self.in_flight_seconds = float(found.records["seconds"].sum())

    @cached_property
    def latency(self) -> Quantiles | None:
        """The quantiles of all requests; None if none succeeded."""
        return quantiles_of(*times_by_success(self.timed))

    def overhead(self, unavoidable: Callable[[int], float]) -> Quantiles | None:
        """Return the quantiles of the times less the seconds that no client can save."""
        overhead = self.sent.records["seconds"] - seconds_of(unavoidable, self.sent.numbers.tolist())
        good = self.sent.records["error"] == 0
        return quantiles_of(overhead[good], overhead[~good])

    @property
    def delay_seconds(self) -> float | None:
        """The sum of the requested delays; None without delays."""
        delay = delay_of(self._workload)
        return None if delay is None else sum(map(delay, self.sent.numbers.tolist()))

    @property
    def in_turn(self) -> float | None:
        """Share of the requests that ended at least their own requested delay after the one before; None without one.

        If the upstream holds one request at a time, it is 1. Requests that wait side by side end at any moment.
        """
        delay, records = delay_of(self._workload), self.sent.records
        if delay is None or len(records) <= 1:
            return None
        ends = records["start"] + records["seconds"]
        order = np.argsort(ends)
        least = seconds_of(delay, self.sent.numbers[order][1:].tolist())
        return float(np.mean(np.diff(ends[order]) >= _TIMER * least))

    def fields(self, began: float, wall: float) -> dict[str, Any]:
        """Return the fields of `Trial` that are known from the samples. `began` is monotonic; `wall` is in seconds."""
        records, (answered, failed) = self.samples.records, times_by_success(self.timed)
        own = float(records["elapsed"][records["error"] == 0].sum(dtype="f8")) if self._workload.elapsed else None
        return {
            "wall_seconds": wall,
            "requests": self.finished,
            "errors": self.samples.errors,
            "error_examples": {kind: mask_text(text) for kind, text in self.samples.examples.items()},
            "latency_seconds": self.latency,
            "elapsed_seconds_sum": own,
            "bytes_received": self.received_bytes,
            "histogram": histogram_part(answered),
            "failed_histogram": histogram_part(failed) if len(failed) else None,
            "over_time": slices_of(self.timed, began, wall),
        }


def slices_of(records: Records, began: float, wall: float) -> list[Slice]:
    """Return the requests that ended in each of 60 slices of equal length, with their median and p99.

    A quantile that falls on a failed request is unknown.
    """
    length = max(wall / SLICES, 1e-9)
    ended = records["start"] + records["seconds"] - began
    places = np.minimum((ended / length).astype(np.int64), SLICES - 1)
    slices = []
    for index in range(SLICES):
        part = records[places == index]
        answered = np.sort(times_by_success(part)[0]).tolist()
        ranks = {name: rank_of(QUANTILES[name], len(part)) for name in ("p50", "p99")}
        known = {name: answered[rank - 1] for name, rank in ranks.items() if 0 < rank <= len(answered)}
        slices.append(Slice(at=index * length, requests=len(part), errors=len(part) - len(answered), **known))
    return slices
