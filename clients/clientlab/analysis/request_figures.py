"""Computes the figures of a trial's requests from its samples.

They are counts, sums, percentiles, and their course over time.

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
from clientlab.observing.samples import Flags, Records, Samples, evaluate
from clientlab.observing.stream_times import StreamTimes
from clientlab.results.trial import (
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
from clientlab.statistics.histogram import (
    FEWEST_REQUESTS,
    QUANTILES,
    SLICES,
    Floats,
    make_histogram,
    rank_of,
)
from clientlab.text import mask_text
from clientlab.workload.load import Arrivals, arrivals_of
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
        self, samples: Samples, workload: Workload, counted: Flags | None = None
    ) -> None:
        records = samples.records
        self.samples = samples
        self.sent = samples
        self.timed = records
        self._workload = workload
        self._counted: Flags | slice = slice(None)
        if counted is not None:
            self._counted = counted
        self._schedule: Arrivals | None = None
        if samples.schedule_began and len(records):
            self._schedule = arrivals_of(workload)
        if self._schedule is not None:
            codes = [code for code, kind in samples.kinds.items() if kind == DROPPED]
            self._dropped = np.isin(records["error"], codes)
            self.sent = samples.only(~self._dropped)
            # As if each request had begun at its planned start, in monotonic seconds.
            starts = evaluate(self._schedule.start_of, samples.numbers)
            self._planned = samples.schedule_began + starts
            self.timed = records.copy()
            self.timed["seconds"] = ends_of(records) - self._planned
            self.timed["start"] = self._planned
        self.finished = len(records)
        self.succeeded = self.finished - sum(samples.errors.values())
        self.received_bytes = int(self.sent.records["bytes"].sum())
        self.in_flight_seconds = float(records["seconds"].sum())

    @cached_property
    def delays(self) -> Floats | None:
        """The requested delay of each request that was sent, in seconds.

        None: the workload has no delays.
        """
        delay = delay_of(self._workload)
        if delay is None:
            return None
        return self.sent.delays(delay)

    @property
    def mean_delay(self) -> float | None:
        """Mean requested delay in seconds; None without delays or requests."""
        if self.delays is None or not len(self.delays):
            return None
        return float(self.delays.mean())

    @property
    def longest(self) -> float:
        """Seconds of the request that took longest; 0 without requests."""
        return float(self.samples.records["seconds"].max(initial=0.0))

    @property
    def mean_seconds(self) -> float:
        """Mean time of the requests that percentiles are about; 0 without requests."""
        records = self.samples.records[self._counted]
        if not len(records):
            return 0.0
        return float(records["seconds"].mean())

    @property
    def succeeded_share(self) -> float:
        """Share of the requests that percentiles are about which succeeded.

        It is 0 without requests.
        """
        records = self.timed[self._counted]
        if not len(records):
            return 0.0
        is_good = records["error"] == 0
        return float(is_good.mean())

    @property
    def share_in_turn(self) -> float | None:
        """Share of the requests that ended at least their delay after the one before.

        None: the workload has no delays. The share is 1 if the upstream holds one
        request at a time. Requests that wait side by side end at any moment.
        """
        records = self.sent.records
        if self.delays is None or len(records) <= 1:
            return None
        ends = ends_of(records)
        order = np.argsort(ends)
        between_ends = np.diff(ends[order])
        delays = self.delays[order][1:]
        is_in_turn = between_ends >= _TIMER * delays
        return float(is_in_turn.mean())

    def compute_figures(
        self, began: float, wall: float, **others: Any
    ) -> RequestFigures:
        """Return all figures.

        `began` is monotonic; `wall` is in seconds; `others` are those that samples do
        not tell.

        Raise ValidationError for figures that no trial can have.
        """
        answered, failed = split_by_success(self.timed[self._counted])
        histogram = make_histogram(answered).encode().decode()
        examples = self.samples.examples.items()
        return RequestFigures(
            requests=self.finished,
            errors=self.samples.errors,
            error_examples={kind: mask_text(text) for kind, text in examples},
            latency_seconds=compute_quantiles(answered, failed),
            elapsed_seconds_sum=self._sum_elapsed(),
            first_byte_seconds=self._compute_first_byte(),
            bytes_received=self.received_bytes,
            histogram=Histogram(encoded=histogram),
            over_time=slice_over_time(self.timed, began, wall),
            **others,
        )

    def _sum_elapsed(self) -> float | None:
        if not self._workload.reading.elapsed:
            return None
        records = self.samples.records
        elapsed = records["elapsed"][records["error"] == 0]
        return float(elapsed.sum(dtype="f8"))

    def _compute_first_byte(self) -> Quantiles | None:
        """Return the quantiles of the times to the first byte; None if not recorded.

        They start like latencies.
        """
        if not self._workload.reading.first_byte:
            return None
        timed = self.timed[self._counted]
        seconds = timed["seconds"] - timed["elapsed"]
        answered, failed = _split(seconds, timed)
        return compute_quantiles(answered, failed)

    def compute_stream(self, times: StreamTimes) -> StreamFigures:
        """Return the figures of the streams.

        Failed streams count as longer than all others to their first event.
        """
        numbers = self.samples.numbers
        order = np.argsort(numbers)
        ranks = np.searchsorted(numbers, times.numbers, sorter=order)
        late = self.timed["seconds"] - self.samples.records["seconds"]
        first_event = times.first + late[order[ranks]]
        _, failed = split_by_success(self.timed)
        together_share = None
        if times.together is not None and len(times.gaps):
            together_share = times.together / len(times.gaps)
        return StreamFigures(
            events=times.events,
            first_event_seconds=compute_quantiles(first_event, failed),
            gap_seconds=compute_quantiles(times.gaps),
            lag_seconds=compute_quantiles(times.lags),
            write_error_seconds=compute_quantiles(times.late),
            together_share=together_share,
        )

    def compute_overhead(self, unavoidable: Callable[[int], float]) -> Quantiles | None:
        """Return the quantiles of the times minus the seconds no client can save."""
        # Percentiles leave out requests of a closed load only, and all of these are
        # sent.
        records = self.sent.records[self._counted]
        numbers = self.sent.numbers[self._counted]
        overhead = records["seconds"] - evaluate(unavoidable, numbers)
        answered, failed = _split(overhead, records)
        return compute_quantiles(answered, failed)

    def compute_paths(self) -> list[PathFigures]:
        """Return the figures of the most frequent paths of recorded requests.

        These paths have no query.
        """
        replay = self._workload.replay
        if replay is None:
            return []
        recorded = read_recorded_requests(replay)
        place_of = choose_places(self._workload, recorded)
        paths = [request.url.partition("?")[0] for request in recorded.requests]
        indices: dict[str, list[int]] = {path: [] for path in paths}
        for index, number in enumerate(self.samples.numbers.tolist()):
            path = paths[place_of(number)]
            indices[path].append(index)
        frequent = sorted(indices, key=lambda path: len(indices[path]), reverse=True)
        return [
            _figures_of_path(path, self.timed[indices[path]])
            for path in frequent[:MOST_PATHS]
            if indices[path]
        ]

    def compute_load(
        self,
        began: float,
        wall: float,
        unavoidable: Callable[[int], float] | None = None,
    ) -> OpenLoad | None:
        """Return how the trial kept to its schedule; None for a closed load.

        `began` is monotonic; `wall` is in seconds. Return None, too, for a trial that
        ended before its schedule began. The achieved rate is that of the requests that
        were sent, over the time for which they were planned, or until the last one was
        sent if that is longer. `unavoidable` maps the number of a request to its delay
        and round trip, in seconds.
        """
        schedule = self._schedule
        if schedule is None:
            return None
        samples = self.samples
        sent = self.sent.records
        starts = sent["start"]
        ends = ends_of(sent)
        schedule_began = samples.schedule_began
        last_sent = float(starts.max(initial=schedule_began))
        seconds = max(schedule.span, last_sent - schedule_began)
        schedule_ended = schedule_began + schedule.length
        is_in_flight = (starts <= schedule_ended) & (ends > schedule_ended)
        answered, failed = split_by_success(sent)
        # A dropped request is at least this late.
        late = samples.records["start"] - self._planned
        kept: Floats | float = 0.0
        if unavoidable is not None:
            kept = evaluate(unavoidable, samples.numbers)
        edges = began + np.linspace(0.0, wall, SLICES + 1)
        return OpenLoad(
            planned_per_second=schedule.count / schedule.span,
            achieved_per_second=len(sent) / seconds,
            lateness_seconds=compute_quantiles(
                late[~self._dropped], late[self._dropped]
            ),
            sent_seconds=compute_quantiles(answered, failed),
            dropped=int(self._dropped.sum()),
            most_backlog=_find_most_backlog(self._planned, samples.records["start"]),
            most_in_flight=count_at_once(starts, ends),
            in_flight_at_end=int(is_in_flight.sum()),
            over_time=slice_load(self._planned, edges, kept),
        )


def _figures_of_path(path: str, records: Records) -> PathFigures:
    answered, failed = split_by_success(records)
    return PathFigures(
        path=mask_text(path),
        requests=len(records),
        errors=len(failed),
        **_find_exact(answered, failed),
    )


def _find_most_backlog(planned: Floats, starts: Floats) -> int:
    """Return the largest number of requests that were due and not yet sent.

    A backlog is largest just before a request is sent. `starts` are sorted.
    """
    due = np.searchsorted(np.sort(planned), starts, side="right")
    sent = np.arange(len(starts))
    return int((due - sent).max())


def ends_of(records: Records) -> Floats:
    """Return when each request ended, in monotonic seconds."""
    ends: Floats = records["start"] + records["seconds"]
    return ends


def split_by_success(records: Records) -> tuple[Floats, Floats]:
    """Return the seconds of the successful and of the failed requests."""
    return _split(records["seconds"], records)


def _split(values: Floats, records: Records) -> tuple[Floats, Floats]:
    good = records["error"] == 0
    return values[good], values[~good]


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
    ranked = np.sort(answered)
    recorded = np.sort(np.concatenate([answered, failed]))
    quantiles = {"mean": float(recorded.mean()), "max": float(recorded[-1])}
    at_least: list[Any] = []
    for name, percent in QUANTILES.items():
        if len(recorded) < FEWEST_REQUESTS.get(name, 1):
            continue
        rank = rank_of(percent, len(recorded))
        values = ranked
        if rank > len(ranked):
            values = recorded
            at_least.append(name)
        quantiles[name] = float(values[rank - 1])
    if len(failed):
        at_least = ["mean", *at_least, "max"]
    return Quantiles(**quantiles, at_least=at_least)


def _find_exact(answered: Floats, failed: Floats) -> dict[str, float]:
    """Return median and p99 by name, without those that fall on a failed request."""
    quantiles = compute_quantiles(answered, failed)
    if quantiles is None:
        return {}
    exact = {"p50", "p99"} - {*quantiles.at_least}
    return {name: getattr(quantiles, name) for name in exact}


def slice_over_time(records: Records, began: float, wall: float) -> list[Slice]:
    """Return the requests that ended in each of 60 slices of equal length.

    A quantile that falls on a failed request is unknown.
    """
    length = max(wall / SLICES, 1e-9)
    ended = ends_of(records) - began
    places = (ended / length).astype(np.int64)
    places = np.minimum(places, SLICES - 1)
    slices = []
    for index in range(SLICES):
        answered, failed = split_by_success(records[places == index])
        part = Slice(
            at=index * length,
            requests=len(answered) + len(failed),
            errors=len(failed),
            p99=_find_exact(answered, failed).get("p99"),
        )
        slices.append(part)
    return slices


def slice_load(planned: Floats, edges: Floats, kept: Floats | float) -> list[LoadSlice]:
    """Return the requests planned in each slice.

    `planned`: the moments. `edges`: where slices begin, and the end of the last one.
    `kept`: unavoidable seconds of each request; `delayed` counts the requests that
    would be in flight if each took only these.
    """

    def count_until_end(moments: Floats) -> npt.NDArray[np.int64]:
        """Return how many of the moments lie before the end of each slice."""
        return np.searchsorted(np.sort(moments), edges[1:], side="right")

    due = count_until_end(planned)
    begins = edges[:-1] - edges[0]
    counts = np.diff(due, prepend=0)
    delayed = due - count_until_end(planned + kept)
    rows = zip(begins.tolist(), counts.tolist(), delayed.tolist(), strict=True)
    return [LoadSlice(at=at, planned=count, delayed=left) for at, count, left in rows]


def count_at_once(starts: Floats, ends: Floats) -> int:
    """Return the largest number of requests that were in flight at one moment."""
    return int(count_at_starts(np.sort(starts), ends).max(initial=0))


def count_at_starts(starts: Floats, ends: Floats) -> npt.NDArray[np.int64]:
    """Return how many requests were in flight when each began, in their order.

    `starts` are sorted; `ends` may have another order.
    """
    begun = np.arange(1, len(starts) + 1)
    return begun - np.searchsorted(np.sort(ends), starts, side="right")
