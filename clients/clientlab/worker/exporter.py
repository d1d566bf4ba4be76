"""The metrics of a trial, read off its sample log while it grows. Their names are what dashboards are built on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import psutil
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from clientlab import strategies
from clientlab.analysis.histogram import Floats
from clientlab.errors import CANCELLED, DROPPED, ERROR_OTHER, KINDS
from clientlab.measuring.outcome import Outcome
from clientlab.measuring.usage import LiveMemory
from clientlab.results import labels
from clientlab.results.machine import shares_clock
from clientlab.results.server_counters import ServerCounters
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.samples.log import ERROR_CODES, process_notes
from clientlab.samples.log_reader import LogFollower, NewRecords
from clientlab.worker.arm_families import ArmFamilies, LiveHistogram
from clientlab.worker.channel import waiting
from clientlab.worker.stream_metrics import StreamMetrics
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload, delay_of

BUCKETS = (
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075,
    0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper ends of the histogram's buckets, in seconds."""

_KIND_OF = {0: "ok", **{code: kind for kind, code in ERROR_CODES.items()}}


class Exporter(Collector):
    """Collects one trial. A scrape reads what is new in the log, and wakes nothing in the measured processes."""

    def __init__(self, run: str, experiment: str, planned: PlannedTrial, workload: Workload, folder: Path) -> None:
        """`planned`, `workload`: of a shard, with its own share."""
        self._of_arm = ArmFamilies(labels.of_arm(run, experiment, planned.arm, planned))
        self._round = str(planned.round)
        self._most_in_flight = planned.concurrency
        self._delay = workload.delay
        self._delay_of = delay_of(workload)
        self._schedule = arrivals_of(workload)
        self._folder = folder
        self._log = LogFollower(folder)
        self._lock = threading.Lock()
        self._outcomes = dict.fromkeys(("ok",) if self._schedule is None else ("ok", DROPPED), 0)
        self._latencies, self._lateness = LiveHistogram(BUCKETS), LiveHistogram(BUCKETS)
        self._planned = self._backlog = 0
        self._delayed = self._in_flight = 0.0
        self._connections = self._connections_before = 0
        self._hidden = strategies.client_spec(strategies.find(planned.strategy).client).quirks.uncounted
        self._memory = LiveMemory()
        self._cpu = self._cpu_before = 0.0
        self._streams = None if workload.stream is None else StreamMetrics(folder, planned.concurrency)
        self._shards = workload.shards
        self._started: float | None = None
        self._agreed: float | None = None
        self._ended: float | None = None
        self._looked = time.monotonic()

    def served(self, before: ServerCounters) -> None:
        """Take the servers' counters from before the measured part: they name the machine of the upstream."""
        if self._streams is not None:
            upstream = before.upstream
            self._streams.one_clock = shares_clock(None if upstream is None else upstream.machine)

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
            self._ended = time.time()
            self._hold_nothing()

    def settle(self, measured: Trial | Outcome | None) -> None:
        """Show the trial's own figures instead of those seen from outside; None for a trial that was given up."""
        with self._lock:
            if self._started is not None and self._ended is None:
                self._look(last=True)
            self._ended = self._ended or time.time()
            self._hold_nothing()
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
            families = [waiting(0), *self._of_requests(), *self._of_processes(), *self._of_the_trial()]
            families += self._of_the_schedule() if self._schedule is not None else []
            families += self._streams.families(self._of_arm) if self._streams is not None else []
        yield from families

    def _hold_nothing(self) -> None:
        self._in_flight, self._backlog = 0.0, 0
        if self._streams is not None:
            self._streams.over()

    def _begun_streams(self) -> Iterable[int]:
        return () if self._streams is None else self._streams.begun

    def _look(self, *, last: bool = False) -> None:
        fresh, now = self._log.new_records(last=last, begun=self._begun_streams()), time.monotonic()
        self._count(fresh)
        if self._streams is not None:
            self._streams.look(fresh.numbers[fresh.records["error"] != ERROR_CODES[DROPPED]])
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
        answers = fresh.records["error"] != ERROR_CODES[CANCELLED]
        # A failed request was not answered: it ranks after every successful one, as in the quantiles of the run file.
        late = self._lateness_of(fresh)
        seconds: Floats = fresh.records["seconds"] if late is None else fresh.records["seconds"] + late
        self._latencies.add(seconds[answers], fresh.records["error"][answers] == 0)
        if late is not None:
            self._lateness.add(late, fresh.records["error"] != ERROR_CODES[DROPPED])
        if self._delay is not None and self._delay_of is not None:
            if self._delay.constant is not None:
                self._delayed += self._delay.constant * len(fresh.numbers)
            else:
                self._delayed += sum(map(self._delay_of, fresh.numbers.tolist()))

    def _lateness_of(self, fresh: NewRecords) -> Floats | None:
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
            requests.add_metric([*self._of_arm.values, outcome], count)
        yield requests
        yield self._of_arm.histogram(
            "clientlab_request_seconds",
            "Latency of all requests; of an open load, from the planned start. A failed request counts in the bucket "
            "+Inf alone, however fast it failed.",
            self._latencies,
        )
        if self._delay is not None:
            yield self._of_arm.counter(
                "clientlab_delay_seconds", "Delay asked of the upstream, all requests.", self._delayed
            )
        yield self._of_arm.gauge(
            "clientlab_requests_in_flight",
            "By Little's law over the requests that ended since the last scrape, for a request is logged as it ends.",
            self._in_flight,
        )

    def _of_the_schedule(self) -> Iterator[Metric]:
        text = "Open load: requests whose planned start is past."
        yield self._of_arm.counter("clientlab_planned_requests", text, self._planned)
        yield self._of_arm.histogram(
            "clientlab_lateness_seconds",
            "Open load: time from the planned to the real start. A dropped request counts in the bucket +Inf alone.",
            self._lateness,
        )
        text = "Open load: requests that are due and have not ended, beyond those that may be in flight."
        yield self._of_arm.gauge("clientlab_backlog_requests", text, self._backlog)

    def _of_processes(self) -> Iterator[Metric]:
        yield self._of_arm.counter(
            "clientlab_measured_seconds",
            "Seconds that the trial has been measured: requests over these are its throughput. A shard has its part of "
            "them, so that the sum over the workers of a trial is that of the trial.",
            self._measured(),
        )
        if not self._hidden:
            yield self._of_arm.counter("clientlab_connections_opened", "Connections opened.", self._connections)
        yield self._of_arm.counter("clientlab_cpu_seconds", "CPU time of the trial's processes.", self._cpu)
        text = "Memory of the trial's processes, shared pages in proportion (PSS); after the trial, its peak."
        yield self._of_arm.gauge("clientlab_memory_bytes", text, self._memory.bytes)

    def _of_the_trial(self) -> Iterator[Metric]:
        running = GaugeMetricFamily(
            "clientlab_trial_running", "1 while the trial is measured.", labels=[*labels.ARM, "round"]
        )
        measured = self._started is not None and self._ended is None
        running.add_metric([*self._of_arm.values, self._round], int(measured))
        yield running
        for name, at in (("started", self._started if self._agreed is None else self._agreed), ("ended", self._ended)):
            if at is not None:
                more = "; all shards of a trial have the same moment" if name == "started" else ""
                text = f"When its measured part {name}{more}."
                yield self._of_arm.gauge(f"clientlab_trial_{name}_timestamp_seconds", text, at)


OUTCOMES = ("ok", *KINDS, ERROR_OTHER)
"""All values that the label `outcome` can have."""
