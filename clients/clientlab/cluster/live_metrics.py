"""The metrics of a trial, read from its sample log while it grows. Dashboards and docs rely on their names."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from clientlab import strategies
from clientlab.errors import DROPPED, ERROR_OTHER
from clientlab.results.plan import Arm
from clientlab.statistics.histogram import Floats
from clientlab.trial.result import Outcome, PlannedTrial
from clientlab.trial.sample_log import ERROR_CODES, process_notes
from clientlab.trial.samples import Flags, Integers, LogFollower, evaluate, find_delay_shares
from clientlab.trial.stream_times import EventFollower, parse_marks
from clientlab.trial.usage import read_footprint
from clientlab.workload.load import arrivals_of, is_staggered
from clientlab.workload.workload import Workload, delay_of

BUCKETS = (
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075,
    0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper bounds of the histograms' buckets, in seconds."""

_MOST_LAG = 3600.0  # seconds
_KIND_OF = {0: "ok", **{code: kind for kind, code in ERROR_CODES.items()}}
ARM_LABELS = ("run", "experiment", "arm", "legend", "strategy", "workload", "upstream", "route", "link")
"""Labels of an arm, equal for live trials and for finished runs."""


def arm_labels(run: str, experiment: str, name: str, its: Arm | PlannedTrial) -> list[str]:
    """Return the values of `ARM_LABELS` for an arm. Without a link, that label is empty.

    The legend is the arm's name, followed by its strategy unless the name begins with the strategy. So dashboards can
    give each strategy one colour, whatever an experiment calls its arms.
    """
    strategy = its.strategy.partition("?")[0]
    named_by_strategy = rf"{re.escape(strategy)}(\?.*)?( \(.*\))?(\[.*\])?( in [\w.-]+)?( at [\w.-]+)?"
    legend = name if re.fullmatch(named_by_strategy, name) else f"{name} · {strategy}"
    link = "" if its.link is None else str(its.link)
    return [run, experiment, name, legend, its.strategy, its.workload, its.upstream, its.route, link]


class _Histogram:
    def __init__(self) -> None:
        self._counts = np.zeros(len(BUCKETS) + 1, np.int64)
        self._sum = 0.0

    def add(self, seconds: Floats, bounded: Flags) -> None:
        """Add times. Those that are not `bounded` count in the last bucket, +Inf."""
        places = np.where(bounded, np.searchsorted(BUCKETS, seconds), len(BUCKETS))
        self._counts += np.bincount(places, minlength=len(BUCKETS) + 1)
        self._sum += float(seconds.sum())

    def metric(self, name: str, text: str, values: list[str]) -> Metric:
        family = HistogramMetricFamily(name, text, labels=ARM_LABELS)
        below = np.cumsum(self._counts).tolist()
        family.add_metric(values, list(zip([*map(str, BUCKETS), "+Inf"], below, strict=True)), self._sum)
        return family


class TrialMetrics(Collector):
    """The metrics of one trial. A scrape reads what is new in the log, and wakes nothing in the measured processes."""

    def __init__(self, run: str, experiment: str, planned: PlannedTrial, workload: Workload, folder: Path) -> None:
        """`planned`, `workload`: for a shard, its own share."""
        self._labels = arm_labels(run, experiment, planned.arm, planned)
        self._trial, self._workload, self._folder = planned, workload, folder
        self._delay_of, self._schedule = delay_of(workload), arrivals_of(workload)
        self._hides_connections = strategies.client_spec(strategies.find(planned.strategy).client).quirks.uncounted
        self._log = LogFollower(folder)
        self._events = None if workload.stream is None else EventFollower(folder)
        self._event_count, self._arrived = 0, dict[int, float]()  # of each open stream, when its last event arrived
        self._gaps, self._lags = _Histogram(), _Histogram()
        self._lock = threading.Lock()
        self._outcomes = dict.fromkeys(("ok",) if self._schedule is None else ("ok", DROPPED), 0)
        self._latency, self._lateness = _Histogram(), _Histogram()
        self._planned = self._backlog = 0
        self._delayed = self._in_flight = self._cpu = self._cpu_before = 0.0
        self._connections = self._connections_before = 0
        self._memory: int | None = None
        self._next_memory = 0.0
        self._shown: dict[str, float] = {}  # counters as the last scrape saw them
        self._started: float | None = None
        self._agreed: float | None = None
        self._ended: float | None = None
        self._looked = time.monotonic()

    def started(self, at: float | None = None, agreed: float | None = None) -> None:
        """Start counting: the measured part begins now, or at the Unix time `at`.

        `agreed`: the same moment by the lab's clock, which is equal for all shards of the trial.
        """
        with self._lock:
            self._cpu_before = self._read_cpu()
            self._connections_before = sum(note.opened for note in process_notes(self._folder))
            self._started, self._looked = time.time() if at is None else at, time.monotonic()
            self._agreed = self._started if agreed is None else agreed

    def ended(self) -> None:
        """Read the last values: the measured part is over, and its processes are still there."""
        with self._lock:
            if self._started is not None and self._ended is None:
                self._look()
            self._ended = self._ended or time.time()
            self._in_flight, self._backlog = 0.0, 0

    def settle(self, measured: Outcome | None) -> None:
        """Show the trial's own figures instead of those seen from outside. None: the trial did not end."""
        self.ended()
        if measured is not None:
            with self._lock:
                self._cpu = measured.cpu_seconds
                opened, peak = measured.connections_opened, measured.peak_pss_bytes
                self._connections = self._connections if opened is None else opened
                self._memory = self._memory if peak is None else peak

    def _look(self) -> None:
        """Count the requests that ended since the last look, and read what the processes used so far."""
        (records, numbers), now = self._log.new_records(), time.monotonic()
        seconds: Floats = records["seconds"]
        codes, counts = np.unique(records["error"], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            kind = _KIND_OF.get(code, ERROR_OTHER)
            self._outcomes[kind] = self._outcomes.get(kind, 0) + count
        # By Little's law, arrivals per second x mean seconds are in flight.
        most_in_flight, elapsed = self._trial.concurrency, max(now - self._looked, 1e-6)
        self._in_flight = min(most_in_flight, float(seconds.sum()) / elapsed)
        self._looked = now
        if self._schedule is not None and (began := self._log.schedule_began):
            starts = np.fromiter(map(self._schedule.start_of, numbers.tolist()), np.float64, len(numbers))
            late = records["start"] - began - starts
            self._lateness.add(late, records["error"] != ERROR_CODES[DROPPED])
            seconds = seconds + late
            self._planned = self._schedule.due(now - began)
            self._backlog = max(0, self._planned - sum(self._outcomes.values()) - most_in_flight)
        if self._events is not None:
            self._look_at_events(self._events, numbers)
        # A failed request has no answer: it ranks after every successful one, as in the quantiles of the run file.
        self._latency.add(seconds, records["error"] == 0)
        if self._delay_of is not None:
            asked = evaluate(self._delay_of, numbers)
            if is_staggered(self._workload):
                asked *= find_delay_shares(numbers, [0], self._trial.concurrency)
            self._delayed += float(asked.sum())
        self._cpu = max(self._cpu, self._read_cpu() - self._cpu_before)
        opened = sum(note.opened for note in process_notes(self._folder))
        self._connections = max(0, opened - self._connections_before)

    def _look_at_events(self, follower: EventFollower, ended: Integers) -> None:
        """Count the events since the last look. `ended`: the requests that have ended since then."""
        events = follower.new_events()
        self._event_count += len(events)
        order = np.lexsort((events["at"], events["request"]))
        requests, arrived = events["request"][order], events["at"][order]
        before = np.roll(arrived, 1)
        for place in np.flatnonzero(np.diff(requests, prepend=-1)).tolist():  # the first of each stream
            before[place] = self._arrived.get(int(requests[place]), np.nan)
        gaps = (arrived - before)[~np.isnan(before)]
        self._gaps.add(gaps, np.ones(len(gaps), bool))
        self._arrived |= zip(requests.tolist(), arrived.tolist(), strict=True)
        for number in ended.tolist():
            self._arrived.pop(number, None)
        marks, is_mark = parse_marks(events["mark"])
        lags = (events["at"] - marks[1] / 1e9)[is_mark]
        if len(lags) and lags.min() >= 0 and lags.max() < _MOST_LAG:  # else the server's clock is another one
            self._lags.add(lags, np.ones(len(lags), bool))

    def _read_cpu(self) -> float:
        """Return the CPU seconds of the trial's processes so far, in steps of 10 ms, and read their memory."""
        seconds, pids = 0.0, []
        for process in psutil.Process().children(recursive=True):
            try:
                seconds += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue  # it has just ended: its parent's times include it
            pids.append(process.pid)
        if (began := time.monotonic()) >= self._next_memory:
            found = read_footprint(pids)
            self._memory = self._memory if found is None else found.now
            # Reading the memory holds up the processes, so it may take 1/1000 of the time.
            self._next_memory = time.monotonic() + 1000 * (time.monotonic() - began)
        return seconds

    def collect(self) -> list[Metric]:
        """Return all metrics as they are now."""
        with self._lock:
            if self._started is not None and self._ended is None:
                self._look()
            return list(self._families())

    def _families(self) -> Iterator[Metric]:
        text = 'Requests finished, by outcome: "ok" or the kind of error.'
        requests = CounterMetricFamily("clientlab_requests", text, labels=[*ARM_LABELS, "outcome"])
        for outcome, count in self._outcomes.items():
            requests.add_metric([*self._labels, outcome], count)
        yield requests
        text = "Latency of all requests; in an open load, from the planned start. Failed requests count only in +Inf."
        yield self._latency.metric("clientlab_request_seconds", text, self._labels)
        if self._delay_of is not None:
            yield self._counter("clientlab_delay_seconds", "Delay asked of the upstream, all requests.", self._delayed)
        text = "By Little's law over the requests that ended since the last scrape."
        yield self._gauge("clientlab_requests_in_flight", text, self._in_flight)
        if self._schedule is not None:
            yield self._counter("clientlab_planned_requests", "Open load: requests that were due.", self._planned)
            text = "Open load: time from the planned to the real start. Dropped requests count only in +Inf."
            yield self._lateness.metric("clientlab_lateness_seconds", text, self._labels)
            text = "Open load: requests that are due and have not ended, beyond those that may be in flight."
            yield self._gauge("clientlab_backlog_requests", text, self._backlog)
        if self._events is not None:
            yield self._counter("clientlab_events", "Events that the client handed over.", self._event_count)
            yield self._gaps.metric("clientlab_gap_seconds", "Time between two events of a stream.", self._labels)
            text = "From the write of an event by the lab's upstream until the client handed it over."
            yield self._lags.metric("clientlab_lag_seconds", text, self._labels)
        until = self._ended or time.time()
        measured = 0.0 if self._started is None else max(0.0, until - self._started)
        text = "Measured time: requests over it are the throughput. Each of n shards has 1/n of it."
        yield self._counter("clientlab_measured_seconds", text, measured / self._workload.shards)
        if not self._hides_connections:
            yield self._counter("clientlab_connections_opened", "Connections opened.", self._connections)
        yield self._counter("clientlab_cpu_seconds", "CPU time of the trial's processes.", self._cpu)
        text = "Memory of the trial's processes, shared pages once; after the trial, its peak."
        yield self._gauge("clientlab_memory_bytes", text, self._memory)
        text = "1 while the trial is measured."
        running = GaugeMetricFamily("clientlab_trial_running", text, labels=[*ARM_LABELS, "round"])
        running.add_metric(
            [*self._labels, str(self._trial.round)], int(self._started is not None and self._ended is None)
        )
        yield running
        for name, at in (("started", self._agreed), ("ended", self._ended)):
            if at is not None:
                yield self._gauge(f"clientlab_trial_{name}_timestamp_seconds", f"When its measured part {name}.", at)

    def _counter(self, name: str, text: str, value: float) -> Metric:
        # A value seen from outside may exceed the trial's own figure, but rate() takes a fall for a new process.
        self._shown[name] = value = max(self._shown.get(name, value), value)
        family = CounterMetricFamily(name, text, labels=ARM_LABELS)
        family.add_metric(self._labels, value)
        return family

    def _gauge(self, name: str, text: str, value: float | None) -> Metric:
        family = GaugeMetricFamily(name, text, labels=ARM_LABELS)
        if value is not None:
            family.add_metric(self._labels, value)
        return family
