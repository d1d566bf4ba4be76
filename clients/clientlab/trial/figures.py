"""The figures of a trial's requests, computed from its samples: counts, sums,
percentiles, and their course over time.

A failed request was not answered, so it ranks after every successful one: a fast error
must not make a strategy look fast.

In an open load, a latency counts from the planned start of the request. A request that
waits for a free place begins late, and a latency from its real start would leave that
wait out ("coordinated omission": Tene 2015, How NOT to Measure Latency).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from clientlab.errors import DROPPED
from clientlab.statistics.histogram import (
    FEWEST_REQUESTS,
    QUANTILES,
    SLICES,
    Floats,
    make_histogram,
    rank_of,
)
from clientlab.text import mask_text
from clientlab.trial.result import (
    MOST_PATHS,
    Histogram,
    LoadSlice,
    OpenLoad,
    PathFigures,
    Quantiles,
    RequestFigures,
    Slice,
    StreamFigures,
)
from clientlab.trial.samples import Flags, Records, Samples, evaluate
from clientlab.trial.stream_times import StreamTimes
from clientlab.workload.load import arrivals_of
from clientlab.workload.recordings import choose_places, read_recorded_requests
from clientlab.workload.workload import Workload, delay_of

# Share of its delay after which a request may end: the clocks of client and server
# differ a little.
_TIMER = 0.9
_EMPTY = np.empty(0)


class TrialRequests:
    """The finished requests of a trial, or of one of its shards.

    `sent`: the samples of the requests that were sent; in an open load, others were too
    late. `timed`: the records whose times are the latencies. `counted`: those that
    percentiles are about; None means all.
    """

    def __init__(
        self, found: Samples, workload: Workload, counted: Flags | None = None
    ) -> None:
        self.samples, self._workload, self._schedule = (
            found,
            workload,
            arrivals_of(workload),
        )
        self._counted = (
            np.ones(len(found.records), np.bool_) if counted is None else counted
        )
        if not found.schedule_began or not len(found.records):
            self._schedule = None
        self.sent, self.timed = found, found.records
        if self._schedule is not None:
            codes = [code for code, kind in found.kinds.items() if kind == DROPPED]
            self._dropped: Flags = np.isin(found.records["error"], codes)
            self.sent = found.only(~self._dropped)
            # As if each request had begun at its planned start, in monotonic seconds.
            self._planned: Floats = found.schedule_began + evaluate(
                self._schedule.start_of, found.numbers
            )
            self.timed = found.records.copy()
            self.timed["seconds"] = (
                self.timed["start"] + self.timed["seconds"] - self._planned
            )
            self.timed["start"] = self._planned
        self.finished = len(found.records)
        self.succeeded = self.finished - sum(found.errors.values())
        self.received_bytes = int(self.sent.records["bytes"].sum())
        self.in_flight_seconds = float(found.records["seconds"].sum())

    @cached_property
    def delays(self) -> Floats | None:
        """The requested delay of each request that was sent, in seconds; None without
        delays.
        """
        delay = delay_of(self._workload)
        return None if delay is None else self.sent.delays(delay)

    @property
    def mean_delay(self) -> float | None:
        """Mean delay that was asked for, in seconds; None without delays or
        requests.
        """
        return (
            None
            if self.delays is None or not len(self.delays)
            else float(self.delays.mean())
        )

    @property
    def mean_seconds(self) -> float:
        """Mean time of the requests that percentiles are about; 0 without requests."""
        records = self.samples.records[self._counted]
        return float(records["seconds"].mean()) if len(records) else 0.0

    @property
    def succeeded_share(self) -> float:
        """Share of the requests that percentiles are about which succeeded; 0 without
        requests.
        """
        records = self.timed[self._counted]
        return float(np.mean(records["error"] == 0)) if len(records) else 0.0

    @property
    def share_in_turn(self) -> float | None:
        """Share of the requests that ended at least their own delay after the one
        before; None without delays.

        It is 1 if the upstream holds one request at a time. Requests that wait side by
        side end at any moment.
        """
        records = self.sent.records
        if self.delays is None or len(records) <= 1:
            return None
        ends = records["start"] + records["seconds"]
        order = np.argsort(ends)
        return float(np.mean(np.diff(ends[order]) >= _TIMER * self.delays[order][1:]))

    def compute_figures(
        self, began: float, wall: float, **others: Any
    ) -> RequestFigures:
        """Return all figures.

        `began` is monotonic; `wall` is in seconds; `others` are those that samples do
        not tell.

        Raise ValidationError for figures that no trial can have.
        """
        records, (answered, failed) = (
            self.samples.records,
            split_by_success(self.timed[self._counted]),
        )
        elapsed = (
            float(records["elapsed"][records["error"] == 0].sum(dtype="f8"))
            if self._workload.elapsed
            else None
        )
        found: dict[str, Any] = {
            "wall_seconds": wall,
            "requests": self.finished,
            "errors": self.samples.errors,
            "error_examples": {
                kind: mask_text(text) for kind, text in self.samples.examples.items()
            },
            "latency_seconds": compute_quantiles(answered, failed),
            "elapsed_seconds_sum": elapsed,
            "first_byte_seconds": self._compute_first_byte(),
            "bytes_received": self.received_bytes,
            "histogram": Histogram(encoded=make_histogram(answered).encode().decode()),
            "failed_histogram": Histogram(
                encoded=make_histogram(failed).encode().decode()
            )
            if len(failed)
            else None,
            "over_time": slice_over_time(self.timed, began, wall),
        }
        return RequestFigures(**found | others)

    def _compute_first_byte(self) -> Quantiles | None:
        """Return the quantiles of the times to the first byte, which start like
        latencies; None if not recorded.
        """
        if not self._workload.first_byte:
            return None
        timed = self.timed[self._counted]
        good, seconds = timed["error"] == 0, timed["seconds"] - timed["elapsed"]
        return compute_quantiles(seconds[good], seconds[~good])

    def compute_stream(self, times: StreamTimes) -> StreamFigures:
        """Return the figures of the streams.

        Failed streams count as longer than all others to their first event.
        """
        sent, failed = self.samples, self.timed["error"] != 0
        order = np.argsort(sent.numbers)
        places = order[np.searchsorted(sent.numbers, times.numbers, sorter=order)]
        waited = (self.timed["seconds"] - sent.records["seconds"])[
            places
        ]  # until the real start
        followers = len(times.gaps)
        return StreamFigures(
            events=times.events,
            first_event_seconds=compute_quantiles(
                times.first + waited, self.timed["seconds"][failed]
            ),
            gap_seconds=compute_quantiles(times.gaps),
            lag_seconds=compute_quantiles(times.lags),
            write_error_seconds=compute_quantiles(times.late),
            together_share=None
            if times.together is None or not followers
            else times.together / followers,
        )

    def compute_overhead(self, unavoidable: Callable[[int], float]) -> Quantiles | None:
        """Return the quantiles of the times minus the seconds that no
        client can save.
        """
        # Percentiles leave out requests of a closed load only, and all of these are
        # sent.
        counted = self._counted if self._schedule is None else slice(None)
        records, numbers = self.sent.records[counted], self.sent.numbers[counted]
        good = records["error"] == 0
        overhead = records["seconds"] - evaluate(unavoidable, numbers)
        return compute_quantiles(overhead[good], overhead[~good])

    def compute_paths(self) -> list[PathFigures]:
        """Return the figures of the most frequent paths of recorded requests, without
        queries.
        """
        if self._workload.replay is None:
            return []
        recorded = read_recorded_requests(self._workload)
        paths = [one.url.partition("?")[0] for one in recorded.requests]
        names = {path: index for index, path in enumerate(dict.fromkeys(paths))}
        place_of, numbers = (
            choose_places(self._workload, recorded),
            self.samples.numbers.tolist(),
        )
        sent = np.fromiter(
            (names[paths[place_of(number)]] for number in numbers),
            np.int64,
            len(numbers),
        )
        counts, found = (
            np.bincount(sent, minlength=len(names)).tolist(),
            list[PathFigures](),
        )
        for path, index in sorted(names.items(), key=lambda item: -counts[item[1]])[
            :MOST_PATHS
        ]:
            if not counts[index]:
                break
            answered, failed = split_by_success(self.timed[sent == index])
            times = compute_quantiles(answered, failed)
            known = (
                {}
                if times is None
                else {
                    name: getattr(times, name)
                    for name in {"p50", "p99"} - {*times.at_least}
                }
            )
            found.append(
                PathFigures(
                    path=mask_text(path),
                    requests=counts[index],
                    errors=len(failed),
                    **known,
                )
            )
        return found

    def compute_load(
        self,
        began: float,
        wall: float,
        unavoidable: Callable[[int], float] | None = None,
    ) -> OpenLoad | None:
        """Return how the trial, which began at `began` (monotonic) and took `wall`
        seconds, kept to its schedule.

        Return None for a closed load, and for a trial that ended before its schedule
        began. The achieved rate is that of the requests that were sent, over the time
        for which they were planned, or until the last one was sent if that is longer.
        `unavoidable` maps the number of a request to its delay and round trip, in
        seconds.
        """
        if self._schedule is None:
            return None
        found, sent, length = self.samples, self.sent.records, self._schedule.length
        span = self._schedule.span
        starts = found.records["start"]
        ends, end = sent["start"] + sent["seconds"], found.schedule_began + length
        last = float(sent["start"].max()) - found.schedule_began if len(sent) else 0.0
        late = starts - self._planned  # a dropped request is at least this late
        # A backlog is largest just before a request is sent, when this many are due and
        # as many were sent.
        due = np.searchsorted(
            np.sort(self._planned), np.sort(starts), side="right"
        ) - np.arange(len(starts))
        return OpenLoad(
            planned_per_second=self._schedule.count / span,
            achieved_per_second=len(sent) / max(span, last),
            lateness_seconds=compute_quantiles(
                late[~self._dropped], late[self._dropped]
            ),
            sent_seconds=compute_quantiles(*split_by_success(sent)),
            dropped=int(self._dropped.sum()),
            most_backlog=int(due.max()),
            most_in_flight=count_at_once(sent),
            in_flight_at_end=int(((sent["start"] <= end) & (ends > end)).sum()),
            over_time=slice_load(
                self._planned,
                starts[~self._dropped],
                starts[self._dropped],
                began + np.linspace(0.0, wall, SLICES + 1),
                0.0 if unavoidable is None else evaluate(unavoidable, found.numbers),
            ),
        )


def split_by_success(records: Records) -> tuple[Floats, Floats]:
    """Return the seconds of the successful and of the failed requests."""
    good = records["error"] == 0
    return records["seconds"][good], records["seconds"][~good]


def compute_quantiles(answered: Floats, failed: Floats = _EMPTY) -> Quantiles | None:
    """Return the quantiles over all requests, in seconds, or None if none succeeded.

    The quantile of rank r is exact if at least r requests succeeded. Otherwise it is
    only known to be at least the value of rank r among all recorded times, and
    `at_least` contains its name. Mean and maximum are lower bounds if any request
    failed. This is how right-censored data are ranked (Klein and Moeschberger 2003,
    3.2).
    """
    if not len(answered):
        return None
    ranked, recorded = np.sort(answered), np.sort(np.concatenate([answered, failed]))
    found: dict[str, Any] = {"mean": float(recorded.mean()), "max": float(recorded[-1])}
    bounds = []
    for name, percent in QUANTILES.items():
        if len(recorded) >= FEWEST_REQUESTS.get(name, 1):
            rank = rank_of(percent, len(recorded))
            is_bound = rank > len(ranked)
            found[name] = float((recorded if is_bound else ranked)[rank - 1])
            bounds += [name] * is_bound
    found["at_least"] = ["mean", *bounds, "max"] if len(failed) else []
    return Quantiles(**found)


def slice_over_time(records: Records, began: float, wall: float) -> list[Slice]:
    """Return the requests that ended in each of 60 slices of equal length, with their
    median and p99.

    A quantile that falls on a failed request is unknown.
    """
    length = max(wall / SLICES, 1e-9)
    ended = records["start"] + records["seconds"] - began
    places = np.minimum((ended / length).astype(np.int64), SLICES - 1)
    slices = []
    for index in range(SLICES):
        part = records[places == index]
        answered = np.sort(split_by_success(part)[0]).tolist()
        ranks = {name: rank_of(QUANTILES[name], len(part)) for name in ("p50", "p99")}
        known = {
            name: answered[rank - 1]
            for name, rank in ranks.items()
            if 0 < rank <= len(answered)
        }
        slices.append(
            Slice(
                at=index * length,
                requests=len(part),
                errors=len(part) - len(answered),
                **known,
            )
        )
    return slices


def slice_load(
    planned: Floats, sent: Floats, dropped: Floats, edges: Floats, kept: Floats | float
) -> list[LoadSlice]:
    """Return the requests planned, sent and dropped in each slice, from their moments,
    and the backlog at its end.

    `edges`: where slices begin, and the end of the last one. `kept`: unavoidable
    seconds of each request; `delayed` counts the requests that would be in flight if
    each took only these.
    """

    def count_until_end(moments: Floats) -> npt.NDArray[np.int64]:
        """Return how many of the moments lie before the end of each slice."""
        return np.searchsorted(np.sort(moments), edges[1:], side="right")

    totals = [count_until_end(moments) for moments in (planned, sent, dropped)]
    counts = [np.diff(total, prepend=0).tolist() for total in totals]
    backlog = np.maximum(totals[0] - totals[1] - totals[2], 0).tolist()
    delayed = (totals[0] - count_until_end(planned + kept)).tolist()
    begins = (edges[:-1] - edges[0]).tolist()
    return [
        LoadSlice(
            at=at, planned=due, sent=begun, dropped=lost, backlog=left, delayed=waiting
        )
        for at, due, begun, lost, left, waiting in zip(
            begins, *counts, backlog, delayed, strict=True
        )
    ]


def count_at_once(records: Records) -> int:
    """Return the largest number of requests that were in flight at one moment."""
    starts, ends = (
        np.sort(records["start"]),
        np.sort(records["start"] + records["seconds"]),
    )
    ended = np.searchsorted(ends, starts, side="right")
    return int((np.arange(1, len(starts) + 1) - ended).max()) if len(starts) else 0
