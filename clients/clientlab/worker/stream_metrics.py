"""The metrics of a trial whose responses are streams, read off its log of events while it grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from prometheus_client.core import Metric

from clientlab.samples.event_log import BEGUN, MARKED, UNMARKED
from clientlab.samples.event_log_reader import EventFollower, EventRecords, Floats, Integers, marks_of
from clientlab.worker.arm_families import ArmFamilies, LiveHistogram

STREAM_BUCKETS = (
    0.0001, 0.0002, 0.0003, 0.0005, 0.0007, 0.0015, 0.003, 0.004, 0.006, 0.008, 0.012, 0.017, 0.024, 0.035, 0.06, 0.08,
    0.15, 0.3, 0.7, 1.5, 3.0, 7.0, 15.0, 30.0, 60.0,
)  # fmt: skip
"""Upper ends of the buckets, in seconds. Round times as 5 ms and 20 ms lie within a bucket.

The gaps of a stream lie on both sides of its `every`: a bucket that ended there would show them as two groups.
"""


class StreamMetrics:
    """Counts the events of a running trial. Those of streams that have not ended count too.

    `one_clock`: client and upstream have the same monotonic clock, so that the lag of an event is known.
    """

    def __init__(self, folder: Path, most_open: int) -> None:
        """`most_open`: requests that may be in flight."""
        self.one_clock = False
        self._most_open = most_open
        self._log = EventFollower(folder)
        self._begun: dict[int, float] = {}
        self._latest: dict[int, float] = {}  # the last event of each stream
        self._ended: list[int] = []  # at the previous look: their last events may have come after it
        self._events = self._together = self._streams = self._finished = 0
        self._first, self._gaps, self._lags = (LiveHistogram(STREAM_BUCKETS) for _ in range(3))
        self._is_over = False

    @property
    def begun(self) -> Iterable[int]:
        """Requests whose streams had begun at the last look, and had not ended at the one before."""
        return self._begun

    def look(self, ended: Integers) -> None:
        """Count what is new. `ended`: requests that have finished since the previous look, without dropped ones.

        Read the log of samples first: the events of a stream are written before its sample.
        """
        self._count(self._log.new_records())
        for request in self._ended:
            self._begun.pop(request, None)
            self._latest.pop(request, None)
        self._ended = ended.tolist()
        self._finished += len(ended)

    def over(self) -> None:
        """The trial is over: no stream is open."""
        self._is_over = True

    def families(self, of_arm: ArmFamilies) -> Iterator[Metric]:
        """All metrics as they are now."""
        text = "Streams: events that arrived."
        yield of_arm.counter("clientlab_stream_events", text, self._events)
        text = "Streams: time from the send to the first event. Streams without an event do not count."
        yield of_arm.histogram("clientlab_stream_first_event_seconds", text, self._first)
        text = "Streams: time between two events of a stream (inter-token latency)."
        yield of_arm.histogram("clientlab_stream_gap_seconds", text, self._gaps)
        text = "Streams that have begun and not ended."
        # Logs are read one after the other: streams that begin in between replace some that have ended.
        still = min(self._most_open, max(0, self._streams - self._finished))
        yield of_arm.gauge("clientlab_streams_open", text, 0 if self._is_over else still)
        if not self.one_clock:
            return
        text = (
            "Streams: time from the write of an event by the upstream to its arrival. Only where client and upstream "
            "are on one machine, and so have one clock."
        )
        yield of_arm.histogram("clientlab_stream_lag_seconds", text, self._lags)
        text = "Streams: events that had been written when the one before was handed over. On one machine, as the lag."
        yield of_arm.counter("clientlab_stream_events_together", text, self._together)

    def _count(self, records: EventRecords) -> None:
        kinds = records["kind"]
        begun = records[kinds == BEGUN]
        self._streams += len(begun)
        self._begun.update(zip(begun["request"].tolist(), begun["at"].tolist(), strict=True))
        events = records[(kinds == MARKED) | (kinds == UNMARKED)]
        if not len(events):
            return
        self._events += len(events)
        # Of one stream, they stand in the order of their arrival already.
        events = events[np.argsort(events["request"], kind="stable")]
        arrived: Floats = events["at"].astype(np.float64)
        before = self._moments_before(events["request"], arrived)
        self._gaps.add((arrived - before)[~np.isnan(before)])
        if self.one_clock:
            _, written, _ = marks_of(events["digits"], events["kind"] == MARKED)
            lags = arrived - written
            self._lags.add(lags[~np.isnan(lags)])
            self._together += int(np.count_nonzero(written <= before))  # NaN is no less

    def _moments_before(self, requests: Integers, arrived: Floats) -> Floats:
        """When the event before each event of its stream arrived; NaN for a first one, which is counted as such.

        `requests`: in ascending order.
        """
        before = np.empty(len(arrived))
        before[1:] = arrived[:-1]
        starts = np.flatnonzero(np.diff(requests, prepend=requests[0] - 1))
        ends = np.append(starts[1:], len(arrived)) - 1
        firsts = []
        streams = requests[starts].tolist()
        for request, start, first, last in zip(
            streams, starts.tolist(), arrived[starts].tolist(), arrived[ends].tolist(), strict=True
        ):
            known = self._latest.get(request)
            before[start] = np.nan if known is None else known
            if known is None and request in self._begun:
                firsts.append(first - self._begun[request])
            self._latest[request] = last
        self._first.add(np.array(firsts, np.float64))
        return before
