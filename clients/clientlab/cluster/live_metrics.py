"""The metrics of a run while it is measured, from the growing logs of its trials.

Counters go on over the trials of an arm, so that `rate()` of Prometheus is right.
Dashboards and docs rely on the names.
"""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from clientlab import strategies
from clientlab.errors import DROPPED, ERROR_OTHER
from clientlab.machine.usage import read_footprint
from clientlab.observing.samples import (
    Flags,
    Integers,
    LogFollower,
    Records,
    evaluate,
    find_delay_shares,
)
from clientlab.observing.stream_times import EventFollower, parse_marks
from clientlab.results.plan import Arm
from clientlab.results.trial import Outcome, PlannedTrial
from clientlab.statistics.histogram import Floats
from clientlab.trial.sample_log import ERROR_CODES, MAPPED_FILES, process_notes
from clientlab.workload.load import arrivals_of, is_staggered
from clientlab.workload.workload import Workload, delay_of, identify

BUCKETS = (
    0.0005,
    0.001,
    0.002,
    0.003,
    0.005,
    0.0075,
    0.01,
    0.015,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.25,
    0.5,
    1.0,
    1.5,
    2.5,
    5.0,
    7.5,
    10.0,
    15.0,
    20.0,
    30.0,
    45.0,
    60.0,
)
"""Upper bounds of the histograms' buckets, in seconds."""

ARM_LABELS = (
    "run",
    "experiment",
    "arm",
    "legend",
    "strategy",
    "workload",
    "workload_id",
    "upstream",
    "route",
    "link",
)
"""Labels of an arm, equal for live trials and for runs that have ended."""

_COUNTERS = {
    "delay_seconds": "Delay asked of the upstream, all requests.",
    "planned_requests": "Open load: requests that were due.",
    "events": "Events that the client handed over.",
    "measured_seconds": (
        "Measured time: requests over it are the throughput. Each of n shards has 1/n"
        " of it."
    ),
    "connections_opened": "Connections opened.",
    "cpu_seconds": "CPU time of the trials' processes.",
}
_HISTOGRAMS = {
    "request_seconds": (
        "Latency of all requests; in an open load, from the planned start. "
        "Failed requests count only in +Inf."
    ),
    "lateness_seconds": (
        "Open load: time from the planned to the real start. Dropped requests count"
        " only in +Inf."
    ),
    "gap_seconds": "Time between two events of a stream.",
    "lag_seconds": (
        "From the write of an event by the lab's upstream until the client handed it"
        " over."
    ),
}
_GAUGES = {
    "requests_in_flight": (
        "By Little's law over the requests that ended since the last scrape."
    ),
    "backlog_requests": (
        "Open load: requests that are due and have not ended, beyond those that may be"
        " in flight."
    ),
    "memory_bytes": (
        "Memory of the trial's processes, shared pages once; after the trial, its peak."
    ),
}
_PREFIX = "clientlab_"
_OPEN_LOAD = {"planned_requests", "lateness_seconds", "backlog_requests"}
_STREAMS = {"events", "gap_seconds", "lag_seconds"}

_MOST_LAG = 3600.0  # seconds
_KIND_OF = {0: "ok", **{code: kind for kind, code in ERROR_CODES.items()}}


def arm_labels(name: str, arm: Arm | PlannedTrial, workload: Workload) -> list[str]:
    """Return the values of `ARM_LABELS` for an arm, without run and experiment.

    Without a link, that label is empty.

    The legend is the arm's name, followed by its strategy unless the name begins with
    it.
    """
    strategy = arm.strategy.partition("?")[0]
    named_by_strategy = (
        rf"{re.escape(strategy)}(\?.*)?( \(.*\))?(\[.*\])?( in [\w.-]+)?( at [\w.-]+)?"
    )
    legend = name if re.fullmatch(named_by_strategy, name) else f"{name} · {strategy}"
    return [
        name,
        legend,
        arm.strategy,
        arm.workload,
        identify(workload),
        arm.upstream,
        arm.route,
        "" if arm.link is None else str(arm.link),
    ]


class _Histogram:
    def __init__(self) -> None:
        self._counts = np.zeros(len(BUCKETS) + 1, np.int64)
        self._sum = 0.0

    def add(self, seconds: Floats, bounded: Flags | None = None) -> None:
        """Add times. Those that are not `bounded` count in the last bucket, +Inf."""
        places = np.searchsorted(BUCKETS, seconds)
        if bounded is not None:
            places[~bounded] = len(BUCKETS)
        self._counts += np.bincount(places, minlength=len(BUCKETS) + 1)
        self._sum += float(seconds.sum())

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        below = np.cumsum(self._counts).tolist()
        buckets = list(zip([*map(str, BUCKETS), "+Inf"], below, strict=True))
        family.add_metric(labels, buckets, self._sum)


@dataclass
class _Totals:
    """What the trials of an arm have counted here."""

    labels: list[str]

    left_out: set[str]
    """Metrics that it does not have."""

    outcomes: dict[str, int]
    histograms: dict[str, _Histogram]

    ended: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The counters of the trials that have ended."""

    shown: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add_to(self, families: dict[str, Any], trial: TrialMetrics | None) -> None:
        """Add samples. `trial`: the current one, which may be of another arm.

        A counter never falls: a value seen from outside may exceed the trial's own.
        """
        for outcome, count in self.outcomes.items():
            families["requests"].add_metric([*self.labels, outcome], count)
        for name in _COUNTERS.keys() - self.left_out:
            value = self.ended[name]
            if trial is not None and trial.totals is self:
                value += trial.counters[name]
            self.shown[name] = max(self.shown[name], value)
            families[name].add_metric(self.labels, self.shown[name])
        for name, histogram in self.histograms.items():
            histogram.add_to(families[name], self.labels)


class RunMetrics(Collector):
    """The metrics of the trials of one run that one worker measures in turn."""

    def __init__(self, run: str, experiment: str) -> None:
        self.run = run
        self._experiment = experiment
        self._arms: dict[str, _Totals] = {}
        self._trial: TrialMetrics | None = None
        self._lock = threading.Lock()

    def begin(
        self, planned: PlannedTrial, workload: Workload, share: Workload, folder: Path
    ) -> TrialMetrics:
        """Follow the next trial.

        `share`: the part of the workload that this worker sends.
        """
        with self._lock:
            if self._trial is not None:
                self._trial.leave()
            if planned.arm not in self._arms:
                labels = arm_labels(planned.arm, planned, workload)
                labels = [self.run, self._experiment, *labels]
                self._arms[planned.arm] = _start_totals(labels, planned, share)
            self._trial = TrialMetrics(self._arms[planned.arm], planned, share, folder)
            return self._trial

    def collect(self) -> list[Metric]:
        """Return all metrics as they are now."""
        with self._lock:
            if self._trial is not None:
                self._trial.look()
            return self._make_families(self._trial)

    def _make_families(self, trial: TrialMetrics | None) -> list[Metric]:
        families = _describe_families()
        for totals in self._arms.values():
            totals.add_to(families, trial)
        if trial is not None:
            labels = trial.totals.labels
            for name in trial.gauges.keys() - trial.totals.left_out:
                families[name].add_metric(labels, trial.gauges[name])
            labels = [*labels, str(trial.planned.round)]
            families["trial_running"].add_metric(labels, int(trial.was_running()))
        return [family for family in families.values() if family.samples]


def _describe_families() -> dict[str, Any]:
    """Return the families of all metrics, without samples."""
    families: dict[str, Any] = {
        "requests": CounterMetricFamily(
            "clientlab_requests",
            'Requests finished, by outcome: "ok" or the kind of error.',
            labels=[*ARM_LABELS, "outcome"],
        )
    }
    for name, text in _COUNTERS.items():
        families[name] = CounterMetricFamily(_PREFIX + name, text, labels=ARM_LABELS)
    for name, text in _HISTOGRAMS.items():
        families[name] = HistogramMetricFamily(_PREFIX + name, text, labels=ARM_LABELS)
    for name, text in _GAUGES.items():
        families[name] = GaugeMetricFamily(_PREFIX + name, text, labels=ARM_LABELS)
    families["trial_running"] = GaugeMetricFamily(
        "clientlab_trial_running",
        "1 while the trial is measured, and in the scrape after its end.",
        labels=[*ARM_LABELS, "round"],
    )
    return families


def _start_totals(
    labels: list[str], planned: PlannedTrial, workload: Workload
) -> _Totals:
    """Return the totals of an arm of which no trial has begun."""
    outcomes = {"ok": 0}
    left_out = set[str]()
    if arrivals_of(workload) is None:
        left_out |= _OPEN_LOAD
    else:
        outcomes[DROPPED] = 0
    if workload.stream is None:
        left_out |= _STREAMS
    if delay_of(workload) is None:
        left_out.add("delay_seconds")
    client = strategies.client_spec(strategies.find(planned.strategy).client)
    if client.quirks.uncounted:
        left_out.add("connections_opened")
    histograms = {name: _Histogram() for name in _HISTOGRAMS.keys() - left_out}
    return _Totals(labels, left_out, outcomes, histograms)


class TrialMetrics:
    """What one trial adds to the metrics of its arm.

    A scrape wakes nothing in its processes.
    """

    def __init__(
        self, totals: _Totals, planned: PlannedTrial, workload: Workload, folder: Path
    ) -> None:
        """`planned`, `workload`: for a shard, its own share."""
        self.totals = totals
        self.planned = planned
        self.counters: dict[str, float] = defaultdict(float)
        self.gauges: dict[str, float] = {}
        self._clear_gauges()
        self._workload = workload
        self._folder = folder
        self._delay_of = delay_of(workload)
        self._schedule = arrivals_of(workload)
        self._log = LogFollower(folder)
        self._events = None if workload.stream is None else EventFollower(folder)
        # Of each open stream, when its last event arrived.
        self._arrived: dict[int, float] = {}
        self._lock = threading.Lock()
        self._finished = 0
        self._cpu_before = 0.0
        self._connections_before = 0
        self._next_memory = 0.0
        self._started: float | None = None
        self._ended: float | None = None
        self._runs = False  # or it ran since the last scrape
        self._looked = time.monotonic()

    @property
    def is_running(self) -> bool:
        """Whether its measured part has begun and not ended."""
        return self._started is not None and self._ended is None

    def was_running(self) -> bool:
        """Return whether it is running, or was since the last call.

        A trial may be shorter than the time between two scrapes.
        """
        was_running = self._runs
        self._runs = self.is_running
        return was_running

    def started(self, at: float | None = None) -> None:
        """Start counting: the measured part begins now, or at the Unix time `at`."""
        with self._lock:
            self._runs = True
            self._cpu_before = self._read_cpu()
            self._connections_before = self._count_connections()
            self._started = time.time() if at is None else at
            self._looked = time.monotonic()

    def look(self) -> None:
        """Count what happened since the last look, if the trial is being measured."""
        with self._lock:
            if self.is_running:
                self._look()

    def ended(self) -> None:
        """Read the last values: the measured part is over.

        Its processes are still there.
        """
        with self._lock:
            if self.is_running:
                self._look()
            self._ended = self._ended or time.time()
            self._clear_gauges()

    def settle(self, measured: Outcome | None) -> None:
        """Show the trial's own figures instead of those seen from outside.

        None: the trial did not end.
        """
        self.ended()
        if measured is not None:
            with self._lock:
                self.counters["cpu_seconds"] = measured.cpu_seconds
                if measured.connections_opened is not None:
                    self.counters["connections_opened"] = measured.connections_opened
                if measured.peak_pss_bytes is not None:
                    self.gauges["memory_bytes"] = measured.peak_pss_bytes

    def leave(self) -> None:
        """Add its counters to those of the trials that have ended."""
        self.ended()
        for name, value in self.counters.items():
            self.totals.ended[name] += value

    def _clear_gauges(self) -> None:
        self.gauges |= {"requests_in_flight": 0.0, "backlog_requests": 0}

    def _count_connections(self) -> int:
        return sum(note.opened for note in process_notes(self._folder))

    def _look(self) -> None:
        """Count the requests that ended since the last look, and what they used."""
        records, numbers = self._log.new_records()
        now = time.monotonic()
        self._count_outcomes(records)
        seconds: Floats = records["seconds"]
        # By Little's law, arrivals per second x mean seconds are in flight.
        in_flight = float(seconds.sum()) / max(now - self._looked, 1e-6)
        self.gauges["requests_in_flight"] = min(self.planned.concurrency, in_flight)
        self._looked = now
        began = self._log.schedule_began
        if self._schedule is not None and began:
            self._compare_to_schedule(self._schedule.due(now - began))
            planned = began + evaluate(self._schedule.start_of, numbers)
            late = records["start"] - planned
            is_sent = records["error"] != ERROR_CODES[DROPPED]
            self.totals.histograms["lateness_seconds"].add(late, is_sent)
            seconds = seconds + late
        if self._events is not None:
            self._look_at_events(self._events, numbers)
        # A failed request has no answer: it ranks after every successful one, as in the
        # quantiles of the run file.
        self.totals.histograms["request_seconds"].add(seconds, records["error"] == 0)
        if self._delay_of is not None:
            asked = evaluate(self._delay_of, numbers)
            if is_staggered(self._workload):
                asked *= find_delay_shares(numbers, [0], self.planned.concurrency)
            self.counters["delay_seconds"] += float(asked.sum())
        used = self._read_cpu() - self._cpu_before
        opened = self._count_connections() - self._connections_before
        measured = max(0.0, time.time() - (self._started or 0.0))
        self.counters |= {
            "cpu_seconds": max(self.counters["cpu_seconds"], used),
            "connections_opened": max(0, opened),
            "measured_seconds": measured / self._workload.shards,
        }

    def _count_outcomes(self, records: Records) -> None:
        self._finished += len(records)
        outcomes = self.totals.outcomes
        codes, counts = np.unique(records["error"], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            kind = _KIND_OF.get(code, ERROR_OTHER)
            outcomes[kind] = outcomes.get(kind, 0) + count

    def _compare_to_schedule(self, due: int) -> None:
        self.counters["planned_requests"] = due
        backlog = due - self._finished - self.planned.concurrency
        self.gauges["backlog_requests"] = max(0, backlog)

    def _look_at_events(self, follower: EventFollower, ended: Integers) -> None:
        """Count the events since the last look.

        `ended`: the requests that have ended since then.
        """
        events = follower.new_events()
        self.counters["events"] += len(events)
        events = events[np.lexsort((events["at"], events["request"]))]
        requests = events["request"]
        arrived = events["at"]
        before = np.roll(arrived, 1)
        is_first = np.diff(requests, prepend=-1) != 0  # of its stream
        before[is_first] = [
            self._arrived.get(request, np.nan)
            for request in requests[is_first].tolist()
        ]
        gaps = (arrived - before)[~np.isnan(before)]
        self.totals.histograms["gap_seconds"].add(gaps)
        self._arrived |= zip(requests.tolist(), arrived.tolist(), strict=True)
        for number in ended.tolist():
            self._arrived.pop(number, None)
        marks = parse_marks(events["mark"])
        lags = (arrived - marks.written)[marks.are_valid]
        # Otherwise the server's clock is another one.
        if len(lags) and lags.min() >= 0 and lags.max() < _MOST_LAG:
            self.totals.histograms["lag_seconds"].add(lags)

    def _read_cpu(self) -> float:
        """Return the CPU seconds of the trial's processes, and read their memory.

        They have steps of 10 ms.
        """
        seconds = 0.0
        pids = []
        for process in psutil.Process().children(recursive=True):
            try:
                seconds += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue  # it has just ended: its parent's times include it
            pids.append(process.pid)
        began = time.monotonic()
        if began >= self._next_memory:
            footprint = read_footprint(pids, left_out=MAPPED_FILES)
            if footprint is not None:
                self.gauges["memory_bytes"] = footprint.now
            # Reading the memory holds up the processes, so it may take 1/1000 of the
            # time.
            ended = time.monotonic()
            self._next_memory = ended + 1000 * (ended - began)
        return seconds
