"""The metrics of a trial, read off its sample log while it grows. Their names are what dashboards are built on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from clientlab import strategies
from clientlab.analysis.histogram import Floats
from clientlab.errors import DROPPED, ERROR_OTHER, KINDS
from clientlab.measuring.outcome import Outcome
from clientlab.measuring.usage import LiveMemory
from clientlab.results import labels
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.samples.log import ERROR_CODES, process_notes
from clientlab.samples.log_reader import Flags, LogFollower, NewRecords
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload, delay_of

BUCKETS = (
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075,
    0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper ends of the histogram's buckets, in seconds."""

_KIND_OF = {0: "ok", **{code: kind for kind, code in ERROR_CODES.items()}}


class TrialMetrics(Collector):
    """The metrics of one trial. A scrape reads what is new in the log, and wakes nothing in the measured processes."""

    def __init__(self, run: str, experiment: str, planned: PlannedTrial, workload: Workload, folder: Path) -> None:
        """`planned`, `workload`: of a shard, with its own share."""
        self._labels = labels.of_arm(run, experiment, planned.arm, planned)
        self._round = str(planned.round)
        self._most_in_flight = planned.concurrency
        self._delay = workload.delay
        self._delay_of = delay_of(workload)
        self._schedule = arrivals_of(workload)
        self._folder = folder
        self._log = LogFollower(folder)
        self._lock = threading.Lock()
        self._outcomes = dict.fromkeys(("ok",) if self._schedule is None else ("ok", DROPPED), 0)
        self._buckets = np.zeros(len(BUCKETS) + 1, np.int64)
        self._late_buckets, self._late_seconds = self._buckets.copy(), 0.0
        self._planned = self._backlog = 0
        self._seconds = self._delayed = self._in_flight = 0.0
        self._connections = self._connections_before = 0
        self._hidden = strategies.client_spec(strategies.find(planned.strategy).client).quirks.uncounted
        self._memory = LiveMemory()
        self._cpu = self._cpu_before = 0.0
        self._shown: dict[str, float] = {}  # counters as they were scraped last
        self._shards = workload.shards
        self._started: float | None = None
        self._agreed: float | None = None
        self._ended: float | None = None
        self._looked = time.monotonic()

    def started(self, at: float | None = None, agreed: float | None = None) -> None:
        """The measured part begins now, or at a moment that is near: what came before is not counted.

        `agreed`: the same moment by the lab's clock, which is equal for all shards of the trial.
        """
        with self._lock:
            self._cpu_before = self._tree()
            self._connections_before = self._notes()
            self._started, self._looked = time.time() if at is None else at, time.monotonic()
            self._agreed = agreed

    def ended(self) -> None:
        """The measured part is over and its processes are still there: the last values are read."""
        with self._lock:
            self._look(last=True)
            self._ended, self._in_flight, self._backlog = time.time(), 0.0, 0

    def settle(self, measured: Trial | Outcome | None) -> None:
        """Show the trial's own figures instead of those seen from outside; None for a trial that was given up."""
        with self._lock:
            if self._started is not None and self._ended is None:
                self._look(last=True)
            self._ended = self._ended or time.time()
            self._in_flight, self._backlog = 0.0, 0
            if measured is not None and measured.cpu_seconds is not None:
                self._cpu = measured.cpu_seconds
            if measured is not None and measured.connections_opened is not None:
                self._connections = measured.connections_opened
            if measured is not None and measured.peak_pss_bytes is not None:
                self._memory.bytes = measured.peak_pss_bytes

    def describe(self) -> list[Metric]:
        """Nothing beforehand: the registry would collect to find out."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics as they are now."""
        with self._lock:
            if self._started is not None and self._ended is None:
                self._look()
            families = [*self._of_requests(), *self._of_processes(), *self._of_the_trial()]
            families += self._of_the_schedule() if self._schedule is not None else []
        yield from families

    def _look(self, *, last: bool = False) -> None:
        fresh, now = self._log.new_records(last=last), time.monotonic()
        self._count(fresh)
        # Little's law: in flight = arrivals a second x mean seconds, of the requests that ended since the last look.
        elapsed = max(now - self._looked, 1e-6)
        self._in_flight = min(self._most_in_flight, float(fresh.records["seconds"].sum()) / elapsed)
        self._looked = now
        if self._schedule is not None and self._log.schedule_began:
            self._planned = self._schedule.due(now - self._log.schedule_began)
            self._backlog = max(0, self._planned - sum(self._outcomes.values()) - self._most_in_flight)
        self._cpu = max(self._cpu, self._tree() - self._cpu_before)
        self._connections = max(0, self._notes() - self._connections_before)

    def _count(self, fresh: NewRecords) -> None:
        codes, counts = np.unique(fresh.records["error"], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            kind = _KIND_OF.get(code, ERROR_OTHER)
            self._outcomes[kind] = self._outcomes.get(kind, 0) + count
        # A failed request was not answered: it ranks after every successful one, as in the quantiles of the run file.
        late = self._lateness(fresh)
        seconds: Floats = fresh.records["seconds"] if late is None else fresh.records["seconds"] + late
        self._buckets += _in_buckets(seconds, fresh.records["error"] == 0)
        self._seconds += float(seconds.sum())
        if late is not None:
            self._late_buckets += _in_buckets(late, fresh.records["error"] != ERROR_CODES[DROPPED])
            self._late_seconds += float(late.sum())
        if self._delay is not None and self._delay_of is not None:
            if self._delay.constant is not None:
                self._delayed += self._delay.constant * len(fresh.numbers)
            else:
                self._delayed += sum(map(self._delay_of, fresh.numbers.tolist()))

    def _lateness(self, fresh: NewRecords) -> Floats | None:
        """Seconds from the planned to the real start of each request; None in a closed load."""
        began = self._log.schedule_began
        if self._schedule is None or not began:
            return None
        starts = np.fromiter(map(self._schedule.start_of, fresh.numbers.tolist()), np.float64, len(fresh.numbers))
        return np.asarray(fresh.records["start"] - began - starts, np.float64)

    def _measured(self) -> float:
        """Seconds of the trial: each of its shards has a part of them, so that the sum is that of the trial."""
        if self._started is None:
            return 0.0
        return max(0.0, (self._ended or time.time()) - self._started) / self._shards

    def _notes(self) -> int:
        return sum(note.opened for note in process_notes(self._folder))

    def _tree(self) -> float:
        """CPU seconds of the trial's processes so far, in steps of 10 ms; their memory is noted beside."""
        seconds, pids = 0.0, []
        for process in psutil.Process().children(recursive=True):
            try:
                seconds += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue  # ended meanwhile: its parent's times hold it
            pids.append(process.pid)
        self._memory.read(pids)
        return seconds

    def _of_requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "clientlab_requests",
            'Requests finished, by outcome: "ok" or the kind of error.',
            labels=[*labels.ARM, "outcome"],
        )
        for outcome, count in self._outcomes.items():
            requests.add_metric([*self._labels, outcome], count)
        yield requests
        yield self._histogram(
            "clientlab_request_seconds",
            "Latency of all requests; of an open load, from the planned start. A failed request counts in the bucket "
            "+Inf alone, however fast it failed.",
            (self._buckets, self._seconds),
        )
        if self._delay is not None:
            yield self._counter("clientlab_delay_seconds", "Delay asked of the upstream, all requests.", self._delayed)
        yield self._gauge(
            "clientlab_requests_in_flight",
            "By Little's law over the requests that ended since the last scrape, for a request is logged as it ends.",
            self._in_flight,
        )

    def _of_the_schedule(self) -> Iterator[Metric]:
        text = "Open load: requests whose planned start is past."
        yield self._counter("clientlab_planned_requests", text, self._planned)
        yield self._histogram(
            "clientlab_lateness_seconds",
            "Open load: time from the planned to the real start. A dropped request counts in the bucket +Inf alone.",
            (self._late_buckets, self._late_seconds),
        )
        text = "Open load: requests that are due and have not ended, beyond those that may be in flight."
        yield self._gauge("clientlab_backlog_requests", text, self._backlog)

    def _of_processes(self) -> Iterator[Metric]:
        yield self._counter(
            "clientlab_measured_seconds",
            "Seconds that the trial has been measured: requests over these are its throughput. A shard has its part of "
            "them, so that the sum over the workers of a trial is that of the trial.",
            self._measured(),
        )
        if not self._hidden:
            yield self._counter("clientlab_connections_opened", "Connections opened.", self._connections)
        yield self._counter("clientlab_cpu_seconds", "CPU time of the trial's processes.", self._cpu)
        text = "Memory of the trial's processes, shared pages in proportion (PSS); after the trial, its peak."
        yield self._gauge("clientlab_memory_bytes", text, self._memory.bytes)

    def _of_the_trial(self) -> Iterator[Metric]:
        running = GaugeMetricFamily(
            "clientlab_trial_running", "1 while the trial is measured.", labels=[*labels.ARM, "round"]
        )
        measured = self._started is not None and self._ended is None
        running.add_metric([*self._labels, self._round], int(measured))
        yield running
        for name, at in (("started", self._started if self._agreed is None else self._agreed), ("ended", self._ended)):
            if at is not None:
                more = "; all shards of a trial have the same moment" if name == "started" else ""
                text = f"When its measured part {name}{more}."
                yield self._gauge(f"clientlab_trial_{name}_timestamp_seconds", text, at)

    def _histogram(self, name: str, text: str, counted: tuple[npt.NDArray[np.int64], float]) -> Metric:
        """`counted`: requests in each bucket, and the sum of their seconds."""
        family = HistogramMetricFamily(name, text, labels=labels.ARM)
        below = np.cumsum(counted[0]).tolist()
        ends = [*map(str, BUCKETS), "+Inf"]
        family.add_metric(self._labels, list(zip(ends, below, strict=True)), counted[1])
        return family

    def _counter(self, name: str, text: str, value: float) -> Metric:
        # What is seen from outside may be more than the trial's own figure: rate() takes a fall for a new process.
        self._shown[name] = max(self._shown.get(name, value), value)
        family = CounterMetricFamily(name, text, labels=labels.ARM)
        family.add_metric(self._labels, self._shown[name])
        return family

    def _gauge(self, name: str, text: str, value: float | None) -> Metric:
        """A gauge without a sample where the value is unknown."""
        family = GaugeMetricFamily(name, text, labels=labels.ARM)
        if value is not None:
            family.add_metric(self._labels, value)
        return family


def _in_buckets(seconds: Floats, inside: Flags) -> npt.NDArray[np.int64]:
    """How many seconds are in each bucket. Those that are not `inside` any are in the last one, +Inf."""
    places = np.where(inside, np.searchsorted(BUCKETS, seconds), len(BUCKETS))
    return np.bincount(places, minlength=len(BUCKETS) + 1)


OUTCOMES = ("ok", *KINDS, ERROR_OTHER)
"""All values that the label `outcome` can have."""


class LiveMetrics(Collector):
    """The metrics of the trial that this worker measures or, between two trials, of the one before."""

    def __init__(self) -> None:
        self._shown: TrialMetrics | None = None

    def show(self, metrics: TrialMetrics) -> None:
        """Show the metrics of another trial."""
        self._shown = metrics

    def describe(self) -> list[Metric]:
        """Name no metric in advance, so that registering collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        if self._shown is not None:
            yield from self._shown.collect()


LIVE = LiveMetrics()
