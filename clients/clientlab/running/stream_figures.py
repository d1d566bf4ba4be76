"""What the streams of a trial amount to, from the log of their events, or from the reports of its shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clientlab.analysis.histogram import Floats
from clientlab.analysis.latencies import QUANTILES, rank_of
from clientlab.measuring.noise import over_known
from clientlab.results.shard import ShardStreams, ShardTimes
from clientlab.results.streams import Streams
from clientlab.results.times import Histogram, Quantiles
from clientlab.running.quantiles import added_part, histogram_part, quantiles_of, quantiles_of_histograms, times_of
from clientlab.samples.event_log_reader import StreamEvents
from clientlab.samples.log_reader import Flags, Samples
from clientlab.workload.streams import StreamLimits
from clientlab.workload.workload import Workload

Ranking = Literal["cpu", "lag"]

_NAMES = ("head", "first", "gap", "lag", "late")
_NONE = np.empty(0)


@dataclass(frozen=True)
class MeasuredStreams:
    """Times of the streams and events of a trial, in seconds. Each is empty where nobody knows it.

    `head`, `first`: of the streams that have them. `gap`, `lag`, `late`: of events. `followers`: events behind another
    of their stream; `together`: of these, how many had been written when the one before arrived, None if unknown.
    `kept`: None without limits.
    """

    events: int
    head: Floats
    first: Floats
    gap: Floats
    lag: Floats
    late: Floats
    followers: int
    together: int | None
    most_open: int
    kept: int | None
    disordered: int

    def part(self, ranked_by: Ranking) -> Streams:
        """The figures of a trial, from all its events."""
        return Streams(
            ranked_by=ranked_by,
            events=self.events,
            head_seconds=quantiles_of(self.head),
            first_seconds=quantiles_of(self.first),
            gap_seconds=quantiles_of(self.gap),
            lag_seconds=quantiles_of(self.lag),
            late_seconds=quantiles_of(self.late),
            together=_share(self.together, self.followers),
            most_open=self.most_open,
            kept=self.kept,
            gap_histogram=histogram_part(self.gap) if len(self.gap) else None,
            lag_histogram=histogram_part(self.lag) if len(self.lag) else None,
        )

    def shard(self) -> ShardStreams:
        """The figures of a shard's streams, which can be added to those of others."""
        return ShardStreams(
            events=self.events,
            **{name: times_of(found, _NONE) for name in _NAMES if len(found := getattr(self, name))},
            followers=self.followers,
            together=self.together,
            most_open=self.most_open,
            kept=self.kept,
            disordered=self.disordered,
        )


def streams_of(
    found: Samples, events: StreamEvents, workload: Workload, *, one_clock: bool, one_way: float = 0.0
) -> MeasuredStreams:
    """The streams of the finished requests. `one_clock`: client and server have the same monotonic clock.

    `one_way`: seconds that the link takes from the server to the client. Events that it carries are not late for that.
    """
    events = events.only(np.isin(events.requests, found.numbers))
    gaps, followers = _gaps(events)
    lag = events.arrived - events.written if one_clock else np.full(events.count, np.nan)
    known = not np.isnan(lag).any() and bool(len(lag))
    early = events.written[1:] + one_way <= events.arrived[:-1] if known else np.empty(0, np.bool_)
    firsts = events.first[:-1][events.counts > 0]
    return MeasuredStreams(
        events=events.count,
        head=_known(events.answered - events.begun),
        first=events.arrived[firsts] - events.begun[events.counts > 0],
        gap=gaps,
        lag=lag if known else _NONE,
        late=_known(events.late),
        followers=len(gaps),
        together=int(np.count_nonzero(early & followers[1:])) if known else None,
        most_open=_most_open(found),
        kept=None if workload.goodput is None else _kept(found, events, lag, workload.goodput),
        disordered=_disordered(events),
    )


def merged_streams(parts: Sequence[ShardStreams], ranked_by: Ranking) -> Streams:
    """The figures of all shards together: histograms are added, and quantiles are never averaged."""

    def times(name: str) -> list[ShardTimes]:
        return [found for part in parts if (found := getattr(part, name)) is not None]

    def quantiles(name: str) -> Quantiles | None:
        # What one shard does not know is not known of all.
        found = times(name)
        return (
            quantiles_of_histograms(found) if len(found) == sum(part.events > 0 for part in parts) and found else None
        )

    def histogram(name: str) -> Histogram | None:
        return None if quantiles(name) is None else added_part([one.answered for one in times(name)])

    return Streams(
        ranked_by=ranked_by,
        events=sum(part.events for part in parts),
        head_seconds=quantiles("head"),
        first_seconds=quantiles("first"),
        gap_seconds=quantiles("gap"),
        lag_seconds=quantiles("lag"),
        late_seconds=quantiles("late"),
        together=_share(over_known(sum, (part.together for part in parts)), sum(part.followers for part in parts)),
        most_open=sum(part.most_open for part in parts),
        kept=over_known(sum, (part.kept for part in parts)),
        gap_histogram=histogram("gap"),
        lag_histogram=histogram("lag"),
    )


def _share(count: int | None, of: int) -> float | None:
    return None if count is None or not of else count / of


def _known(seconds: Floats) -> Floats:
    found: Floats = seconds[~np.isnan(seconds)]
    return found


def _gaps(events: StreamEvents) -> tuple[Floats, Flags]:
    """Seconds between each two neighbours of a stream, and whether each event is behind another of its stream."""
    behind = np.ones(events.count, np.bool_)
    behind[events.first[:-1][events.counts > 0]] = False
    gaps = np.diff(events.arrived, prepend=np.nan)
    return gaps[behind], behind


def _disordered(events: StreamEvents) -> int:
    """Events with a mark whose number is not that of their place in the stream."""
    places = np.arange(events.count) - np.repeat(events.first[:-1], events.counts)
    return int(np.count_nonzero((events.number >= 0) & (events.number != places)))


def _most_open(found: Samples) -> int:
    """The most requests in flight at a moment. One that ends makes room for one that begins at the same moment."""
    starts = found.records["start"]
    ends = starts + found.records["seconds"]
    moments = np.concatenate([starts, ends])
    steps = np.concatenate([np.ones(len(starts), np.int64), -np.ones(len(ends), np.int64)])
    order = np.lexsort((steps, moments))
    return int(np.cumsum(steps[order]).max(initial=0))


def _kept(found: Samples, events: StreamEvents, lag: Floats, limits: StreamLimits) -> int:
    """Successful streams within all limits."""
    total = dict(zip(found.numbers.tolist(), found.records["seconds"].tolist(), strict=True))
    good = frozenset(found.numbers[found.records["error"] == 0].tolist())
    kept = 0
    for index, request in enumerate(events.requests.tolist()):
        begin, end = events.first[index : index + 2].tolist()
        if request not in good or begin == end:
            continue
        values = {
            "head": float(events.answered[index] - events.begun[index]),
            "first": float(events.arrived[begin] - events.begun[index]),
            "total": total[request],
            **_of_events("gap", np.diff(events.arrived[begin:end])),
            **_of_events("lag", lag[begin:end]),
        }
        kept += all(values[name] < limit for name, limit in limits.each)
    return kept


def _of_events(name: str, seconds: Floats) -> dict[str, float]:
    """The quantiles of a stream that can have a limit. A stream of one event has no gap, so it keeps each limit."""
    ranked = np.sort(seconds)

    def at(quantile: str) -> float:
        return float(ranked[rank_of(QUANTILES[quantile], len(ranked)) - 1]) if len(ranked) else 0.0

    return {
        f"{name}_p50": at("p50"),
        f"{name}_p99": at("p99"),
        f"{name}_max": float(ranked[-1]) if len(ranked) else 0.0,
    }
