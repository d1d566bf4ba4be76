"""The figures of streams, from the events of a trial, and from the reports of its shards."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.running.stream_figures import merged_streams, streams_of
from clientlab.samples.event_log_reader import StreamEvents
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.streams import StreamLimits
from clientlab.workload.workload import Workload

PLAIN = Workload(stream="sse", events=3)


def samples(*spans: tuple[float, float], failed: tuple[int, ...] = ()) -> Samples:
    """Requests from a start to an end each."""
    records = np.zeros(len(spans), RECORD)
    for place, (start, end) in enumerate(spans):
        records[place] = (start, end - start, 0, 200, 1 if place in failed else 0, 1, 0.0)
    return Samples(records, np.arange(len(spans)), {"reset": len(failed)} if failed else {}, {}, {1: "reset"})


def events(*streams: list[tuple[float, float]], begun: float = 0.0, late: float = 0.001) -> StreamEvents:
    """Streams of events that were written and arrived at these moments."""
    counts = [len(one) for one in streams]
    flat = [event for one in streams for event in one]
    return StreamEvents(
        requests=np.arange(len(streams)),
        begun=np.full(len(streams), begun),
        answered=np.full(len(streams), begun + 0.5),
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        arrived=np.array([arrived for _, arrived in flat]),
        number=np.array([number for one in streams for number in range(len(one))]),
        written=np.array([written for written, _ in flat]),
        late=np.full(len(flat), late),
    )


def test_times_are_those_of_the_events():
    """First byte and first event from the send, gaps within a stream, lags from the write."""
    found = streams_of(
        samples((0.0, 4.0), (0.0, 9.0)),
        events([(1.0, 1.25), (2.0, 2.25)], [(5.0, 5.5), (7.0, 7.25)]),
        PLAIN,
        one_clock=True,
    )
    assert found.head.tolist() == [0.5, 0.5]
    assert found.first.tolist() == [1.25, 5.5]
    assert found.gap.tolist() == [1.0, 1.75]
    assert found.lag.tolist() == [0.25, 0.25, 0.5, 0.25]
    assert found.late.tolist() == [0.001] * 4
    assert (found.events, found.followers, found.together, found.disordered) == (4, 2, 0, 0)


def test_an_event_came_together_if_it_was_written_when_the_one_before_arrived():
    """Three of four: a client that handed over 512 bytes at a time."""
    found = streams_of(
        samples((0.0, 9.0)), events([(1.0, 4.0), (2.0, 4.0), (3.0, 4.0), (3.5, 6.0), (7.0, 7.1)]), PLAIN, one_clock=True
    )
    assert (found.together, found.followers) == (3, 4)
    assert found.part("cpu").together == 0.75


def test_without_one_clock_lags_are_unknown():
    """Two machines have two clocks. Gaps need one only."""
    found = streams_of(samples((0.0, 9.0)), events([(1.0, 1.5), (2.0, 2.5)]), PLAIN, one_clock=False)
    part = found.part("lag")
    assert part.lag_seconds is None
    assert part.lag_histogram is None
    assert part.together is None
    assert part.gap_seconds.p50 == 1.0
    assert part.late_seconds.p50 == 0.001


def test_streams_of_requests_that_do_not_count_are_left_out():
    """Those that were in flight when a trial was ended."""
    found = streams_of(samples((0.0, 3.0)), events([(1.0, 1.5)], [(2.0, 2.5)]), PLAIN, one_clock=True)
    assert found.events == 1


def test_the_most_streams_open_are_those_at_a_moment():
    """One that ends makes room for one that begins in the same moment."""
    spans = samples((0.0, 2.0), (1.0, 3.0), (2.0, 4.0), (3.5, 5.0))
    found = streams_of(spans, events([(1.0, 1.5)]), PLAIN, one_clock=True)
    assert found.most_open == 2


def test_events_out_of_order_are_counted():
    """By the numbers in their marks."""
    given = events([(1.0, 1.5), (2.0, 2.5), (3.0, 3.5)])
    given.number[:] = [0, 2, 1]
    assert streams_of(samples((0.0, 4.0)), given, PLAIN, one_clock=True).disordered == 2


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ("first<1.6s", 1), ("first<6s", 2), ("gap_max<1.1s", 1), ("gap_p50<2s", 2), ("lag_p99<300ms", 1),
        ("lag_max<600ms", 2), ("head<500ms", 0), ("total<5s", 1), ("first<6s,total<5s", 1),
    ],
)  # fmt: skip
def test_a_good_stream_keeps_every_limit(limits, kept):
    """Of its own events."""
    workload = Workload(stream="sse", events=2, goodput=StreamLimits.parse(limits))
    streams = events([(1.0, 1.25), (2.0, 2.25)], [(5.0, 5.5), (7.0, 7.25)])
    assert streams_of(samples((0.0, 4.0), (0.0, 9.0)), streams, workload, one_clock=True).kept == kept


def test_a_failed_stream_is_never_good():
    """However soon its first event came."""
    workload = Workload(stream="sse", events=2, goodput=StreamLimits.parse("first<6s"))
    found = streams_of(samples((0.0, 4.0), failed=(0,)), events([(1.0, 1.2)]), workload, one_clock=True)
    assert found.kept == 0


def test_the_reports_of_shards_add_up():
    """Quantiles are those of all events, to the width of a histogram's bucket; counts are sums."""
    parts = [
        streams_of(
            samples((0.0, 9.0)), events([(t, t + 0.1 * (shard + 1)) for t in range(1, 4)]), PLAIN, one_clock=True
        )
        for shard in range(2)
    ]
    found = merged_streams([part.shard() for part in parts], "cpu")
    assert found.events == 6
    assert found.lag_seconds.p50 == pytest.approx(0.1, rel=1e-3)
    assert found.lag_seconds.p99 == pytest.approx(0.2, rel=1e-3)
    assert found.lag_seconds.mean == pytest.approx(0.15, rel=1e-9)
    assert found.most_open == 2
    assert found.together == 0


def test_what_one_shard_does_not_know_is_not_known_of_all():
    """A shard on another machine than the upstream has no lags."""
    both = [
        streams_of(samples((0.0, 9.0)), events([(1.0, 1.5), (2.0, 2.5)]), PLAIN, one_clock=one_clock).shard()
        for one_clock in (True, False)
    ]
    found = merged_streams(both, "cpu")
    assert found.lag_seconds is None
    assert found.together is None
    assert found.gap_seconds.p50 == pytest.approx(1.0, rel=1e-3)


def test_the_way_through_a_link_makes_no_events_come_together():
    """Several are on their way at once; each is handed over when it comes."""
    given = events([(1.0, 1.5), (1.2, 1.7), (1.4, 1.9)])
    assert streams_of(samples((0.0, 9.0)), given, PLAIN, one_clock=True).together == 2
    assert streams_of(samples((0.0, 9.0)), given, PLAIN, one_clock=True, one_way=0.5).together == 0
