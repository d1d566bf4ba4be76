"""The metrics of a trial, read from its sample log while it grows. Dashboards and docs rely on their names."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from clientlab import strategies
from clientlab.analysis.histogram import Floats
from clientlab.errors import DROPPED, ERROR_OTHER
from clientlab.measuring.outcome import Outcome
from clientlab.measuring.usage import footprint
from clientlab.results import labels
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.samples.log import ERROR_CODES, process_notes
from clientlab.samples.log_reader import Flags, Integers, LogFollower, Records
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload, delay_of

BUCKETS = (
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075,
    0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper bounds of the histograms' buckets, in seconds."""

_KIND_OF = {0: "ok", **{code: kind for kind, code in ERROR_CODES.items()}}

_MEMORY_PAUSE = 1000
"""Reading the memory, which holds up the processes, may take 1/1000 of the time."""


class _Histogram:
    """Counts of times in buckets, and their sum."""

    def __init__(self) -> None:
        self._counts = np.zeros(len(BUCKETS) + 1, np.int64)
        self._sum = 0.0

    def add(self, seconds: Floats, bounded: Flags) -> None:
        """Add times. Those that are not `bounded` count in the last bucket, +Inf."""
        places = np.where(bounded, np.searchsorted(BUCKETS, seconds), len(BUCKETS))
        self._counts += np.bincount(places, minlength=len(BUCKETS) + 1)
        self._sum += float(seconds.sum())

    def metric(self, name: str, text: str, values: list[str]) -> Metric:
        family = HistogramMetricFamily(name, text, labels=labels.ARM)
        below = np.cumsum(self._counts).tolist()
        family.add_metric(values, list(zip([*map(str, BUCKETS), "+Inf"], below, strict=True)), self._sum)
        return family


class TrialMetrics(Collector):
    """The metrics of one trial. A scrape reads what is new in the log, and wakes nothing in the measured processes."""

    def __init__(self, run: str, experiment: str, planned: PlannedTrial, workload: Workload, folder: Path) -> None:
        """`planned`, `workload`: those of a shard have its own share."""
        self._labels = labels.of_arm(run, experiment, planned.arm, planned)
        self._planned_trial, self._workload, self._folder = planned, workload, folder
        self._delay_of, self._schedule = delay_of(workload), arrivals_of(workload)
        self._hides_connections = strategies.client_spec(strategies.find(planned.strategy).client).quirks.uncounted
        self._log = LogFollower(folder)
        self._lock = threading.Lock()
        self._outcomes = dict.fromkeys(("ok",) if self._schedule is None else ("ok", DROPPED), 0)
        self._latency, self._lateness = _Histogram(), _Histogram()
        self._planned = self._backlog = 0
        self._delayed = self._in_flight = 0.0
        self._cpu = self._cpu_before = 0.0
        self._connections = self._connections_before = 0
        self._memory: int | None = None
        self._next_memory = 0.0
        self._shown: dict[str, float] = {}  # counters as they were scraped last
        self._started: float | None = None
        self._agreed: float | None = None
        self._ended: float | None = None
        self._looked = time.monotonic()

    def started(self, at: float | None = None, agreed: float | None = None) -> None:
        """Start counting: the measured part begins now, or at the moment `at`.

        `agreed`: the same moment by the lab's clock, which is equal for all shards of the trial.
        """
        with self._lock:
            self._cpu_before, self._connections_before = self._read_cpu(), self._count_connections()
            self._started, self._looked = time.time() if at is None else at, time.monotonic()
            self._agreed = self._started if agreed is None else agreed

    def ended(self) -> None:
        """Read the last values: the measured part is over, and its processes are still there."""
        with self._lock:
            self._end()

    def settle(self, measured: Trial | Outcome | None) -> None:
        """Show the trial's own figures instead of those seen from outside; None for a trial that was given up."""
        with self._lock:
            self._end()
            if measured is not None:
                self._cpu = self._cpu if measured.cpu_seconds is None else measured.cpu_seconds
                opened = measured.connections_opened
                self._connections = self._connections if opened is None else opened
                self._memory = self._memory if measured.peak_pss_bytes is None else measured.peak_pss_bytes

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics as they are now."""
        with self._lock:
            if self._started is not None and self._ended is None:
                self._look()
            families = [*self._requests(), *self._processes_and_trial()]
            families += self._open_load() if self._schedule is not None else []
        yield from families

    def _end(self) -> None:
        if self._started is not None and self._ended is None:
            self._look()
        self._ended = self._ended or time.time()
        self._in_flight, self._backlog = 0.0, 0

    def _look(self) -> None:
        (records, numbers), now = self._log.new_records(), time.monotonic()
        self._count(records, numbers)
        # Little's law: in flight = arrivals per second x mean seconds, of the requests that ended since the last look.
        elapsed = max(now - self._looked, 1e-6)
        most_in_flight = self._planned_trial.concurrency
        self._in_flight = min(most_in_flight, float(records["seconds"].sum()) / elapsed)
        self._looked = now
        if self._schedule is not None and self._log.schedule_began:
            self._planned = self._schedule.due(now - self._log.schedule_began)
            self._backlog = max(0, self._planned - sum(self._outcomes.values()) - most_in_flight)
        self._cpu = max(self._cpu, self._read_cpu() - self._cpu_before)
        self._connections = max(0, self._count_connections() - self._connections_before)

    def _count(self, records: Records, numbers: Integers) -> None:
        codes, counts = np.unique(records["error"], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            kind = _KIND_OF.get(code, ERROR_OTHER)
            self._outcomes[kind] = self._outcomes.get(kind, 0) + count
        seconds: Floats = records["seconds"]
        if self._schedule is not None and self._log.schedule_began:
            starts = np.fromiter(map(self._schedule.start_of, numbers.tolist()), np.float64, len(numbers))
            late = records["start"] - self._log.schedule_began - starts
            self._lateness.add(late, records["error"] != ERROR_CODES[DROPPED])
            seconds = seconds + late
        # A failed request was not answered: it ranks after every successful one, as in the quantiles of the run file.
        self._latency.add(seconds, records["error"] == 0)
        if self._delay_of is not None:
            self._delayed += sum(map(self._delay_of, numbers.tolist()))

    def _count_connections(self) -> int:
        return sum(note.opened for note in process_notes(self._folder))

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
            found = footprint(pids)
            self._memory = self._memory if found is None else found.now
            self._next_memory = time.monotonic() + _MEMORY_PAUSE * (time.monotonic() - began)
        return seconds

    def _requests(self) -> Iterator[Metric]:
        text = 'Requests finished, by outcome: "ok" or the kind of error.'
        requests = CounterMetricFamily("clientlab_requests", text, labels=[*labels.ARM, "outcome"])
        for outcome, count in self._outcomes.items():
            requests.add_metric([*self._labels, outcome], count)
        yield requests
        text = "Latency of all requests; in an open load, from the planned start. Failed requests count only in +Inf."
        yield self._latency.metric("clientlab_request_seconds", text, self._labels)
        if self._delay_of is not None:
            yield self._counter("clientlab_delay_seconds", "Delay asked of the upstream, all requests.", self._delayed)
        text = "By Little's law over the requests that ended since the last scrape."
        yield self._gauge("clientlab_requests_in_flight", text, self._in_flight)

    def _open_load(self) -> Iterator[Metric]:
        text = "Open load: requests whose planned start is past."
        yield self._counter("clientlab_planned_requests", text, self._planned)
        text = "Open load: time from the planned to the real start. Dropped requests count only in +Inf."
        yield self._lateness.metric("clientlab_lateness_seconds", text, self._labels)
        text = "Open load: requests that are due and have not ended, beyond those that may be in flight."
        yield self._gauge("clientlab_backlog_requests", text, self._backlog)

    def _processes_and_trial(self) -> Iterator[Metric]:
        until = time.time() if self._ended is None else self._ended
        measured = 0.0 if self._started is None else max(0.0, until - self._started)
        text = "Measured time: requests over it are the throughput. Each of n shards has 1/n of it."
        yield self._counter("clientlab_measured_seconds", text, measured / self._workload.shards)
        if not self._hides_connections:
            yield self._counter("clientlab_connections_opened", "Connections opened.", self._connections)
        yield self._counter("clientlab_cpu_seconds", "CPU time of the trial's processes.", self._cpu)
        text = "Memory of the trial's processes, shared pages in proportion (PSS); after the trial, its peak."
        yield self._gauge("clientlab_memory_bytes", text, self._memory)
        text = "1 while the trial is measured."
        running = GaugeMetricFamily("clientlab_trial_running", text, labels=[*labels.ARM, "round"])
        is_running = self._started is not None and self._ended is None
        running.add_metric([*self._labels, str(self._planned_trial.round)], int(is_running))
        yield running
        for name, at in (("started", self._agreed), ("ended", self._ended)):
            if at is not None:
                yield self._gauge(f"clientlab_trial_{name}_timestamp_seconds", f"When its measured part {name}.", at)

    def _counter(self, name: str, text: str, value: float) -> Metric:
        # A value seen from outside may exceed the trial's own figure, but rate() takes a fall for a new process.
        self._shown[name] = max(self._shown.get(name, value), value)
        family = CounterMetricFamily(name, text, labels=labels.ARM)
        family.add_metric(self._labels, self._shown[name])
        return family

    def _gauge(self, name: str, text: str, value: float | None) -> Metric:
        family = GaugeMetricFamily(name, text, labels=labels.ARM)
        if value is not None:
            family.add_metric(self._labels, value)
        return family


class LiveMetrics(Collector):
    """The metrics of the trial that this worker measures or, between two trials, of the one before."""

    shown: TrialMetrics | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        if self.shown is not None:
            yield from self.shown.collect()


LIVE = LiveMetrics()
