"""The metrics of a run while it is measured, read from the sample logs of its trials
while they grow.

Counters go on over the trials of an arm, so that `rate()` of Prometheus is right.
Dashboards and docs rely on the names.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

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
    *(0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075),
    *(
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
    ),
)
"""Upper bounds of the histograms' buckets, in seconds."""

ARM_LABELS = (
    *("run", "experiment", "arm", "legend", "strategy", "workload", "workload_id"),
    *("upstream", "route", "link"),
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
_OPEN_LOAD = {"planned_requests", "lateness_seconds", "backlog_requests"}
_STREAMS = {"events", "gap_seconds", "lag_seconds"}

_MOST_LAG = 3600.0  # seconds
_KIND_OF = {0: "ok", **{code: kind for kind, code in ERROR_CODES.items()}}


def arm_labels(
    run: str, experiment: str, name: str, its: Arm | PlannedTrial, workload: Workload
) -> list[str]:
    """Return the values of `ARM_LABELS` for an arm.

    Without a link, that label is empty.

    The legend is the arm's name, followed by its strategy unless the name begins with
    it.
    """
    strategy = its.strategy.partition("?")[0]
    named_by_strategy = (
        rf"{re.escape(strategy)}(\?.*)?( \(.*\))?(\[.*\])?( in [\w.-]+)?( at [\w.-]+)?"
    )
    legend = name if re.fullmatch(named_by_strategy, name) else f"{name} · {strategy}"
    link = "" if its.link is None else str(its.link)
    of_workload = [its.workload, identify(workload)]
    where = [its.upstream, its.route, link]
    return [run, experiment, name, legend, its.strategy, *of_workload, *where]


class _Histogram:
    def __init__(self) -> None:
        self._counts = np.zeros(len(BUCKETS) + 1, np.int64)
        self._sum = 0.0

    def add(self, seconds: Floats, bounded: Flags) -> None:
        """Add times. Those that are not `bounded` count in the last bucket, +Inf."""
        places = np.where(bounded, np.searchsorted(BUCKETS, seconds), len(BUCKETS))
        self._counts += np.bincount(places, minlength=len(BUCKETS) + 1)
        self._sum += float(seconds.sum())

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        below = np.cumsum(self._counts).tolist()
        buckets = list(zip([*map(str, BUCKETS), "+Inf"], below, strict=True))
        family.add_metric(labels, buckets, self._sum)


@dataclass
class _Totals:
    """What the trials of an arm have counted here.

    `ended`: the counters of those that have ended.
    """

    labels: list[str]
    names: frozenset[str]  # of the metrics that it has
    outcomes: dict[str, int]
    histograms: dict[str, _Histogram]
    ended: dict[str, float] = field(default_factory=dict)
    shown: dict[str, float] = field(default_factory=dict)

    def read(self, name: str, of_trial: float) -> float:
        """Return a counter, which never falls: a value seen from outside may exceed the
        trial's own.
        """
        value = self.ended.get(name, 0.0) + of_trial
        self.shown[name] = max(self.shown.get(name, value), value)
        return self.shown[name]


class RunMetrics(Collector):
    """The metrics of the trials of one run that one worker measures, one after the
    other.
    """

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
                names = self.run, self._experiment, planned.arm
                labels = arm_labels(*names, planned, workload)
                self._arms[planned.arm] = _start_totals(labels, planned, share)
            self._trial = TrialMetrics(self._arms[planned.arm], planned, share, folder)
            return self._trial

    def collect(self) -> list[Metric]:
        """Return all metrics as they are now."""
        with self._lock:
            trial = self._trial
            if trial is not None:
                trial.look()
            return self._make_families(trial)

    def _make_families(self, trial: TrialMetrics | None) -> list[Metric]:
        text = 'Requests finished, by outcome: "ok" or the kind of error.'
        requests = CounterMetricFamily(
            "clientlab_requests", text, labels=[*ARM_LABELS, "outcome"]
        )
        counters = {
            name: CounterMetricFamily(f"clientlab_{name}", text, labels=ARM_LABELS)
            for name, text in _COUNTERS.items()
        }
        histograms = {
            name: HistogramMetricFamily(f"clientlab_{name}", text, labels=ARM_LABELS)
            for name, text in _HISTOGRAMS.items()
        }
        gauges = {
            name: GaugeMetricFamily(f"clientlab_{name}", text, labels=ARM_LABELS)
            for name, text in _GAUGES.items()
        }
        running = GaugeMetricFamily(
            "clientlab_trial_running",
            "1 while the trial is measured, and in the scrape after its end.",
            labels=[*ARM_LABELS, "round"],
        )
        for totals in self._arms.values():
            is_current = trial is not None and trial.totals is totals
            for outcome, count in totals.outcomes.items():
                requests.add_metric([*totals.labels, outcome], count)
            own = trial.counters if trial is not None and is_current else {}
            for name in totals.names & counters.keys():
                value = totals.read(name, own.get(name, 0.0))
                counters[name].add_metric(totals.labels, value)
            for name, histogram in totals.histograms.items():
                histogram.add_to(histograms[name], totals.labels)
        if trial is not None:
            for name in trial.totals.names & trial.gauges.keys():
                gauges[name].add_metric(trial.totals.labels, trial.gauges[name])
            labels = [*trial.totals.labels, str(trial.planned.round)]
            running.add_metric(labels, int(trial.was_running()))
        families = (
            requests,
            *counters.values(),
            *histograms.values(),
            *gauges.values(),
            running,
        )
        return [family for family in families if family.samples]


def _start_totals(
    labels: list[str], planned: PlannedTrial, workload: Workload
) -> _Totals:
    """Return the totals of an arm of which no trial has begun."""
    left_out = set[str]()
    if arrivals_of(workload) is None:
        left_out |= _OPEN_LOAD
    if workload.stream is None:
        left_out |= _STREAMS
    if delay_of(workload) is None:
        left_out.add("delay_seconds")
    client = strategies.client_spec(strategies.find(planned.strategy).client)
    if client.quirks.uncounted:
        left_out.add("connections_opened")
    names = frozenset({*_COUNTERS, *_HISTOGRAMS, *_GAUGES} - left_out)
    outcomes = ("ok",) if "planned_requests" in left_out else ("ok", DROPPED)
    histograms = {name: _Histogram() for name in _HISTOGRAMS if name in names}
    return _Totals(labels, names, dict.fromkeys(outcomes, 0), histograms)


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
        self.counters: dict[str, float] = {}
        self.gauges: dict[str, float] = {
            "requests_in_flight": 0.0,
            "backlog_requests": 0,
        }
        self._workload, self._folder = workload, folder
        self._delay_of, self._schedule = delay_of(workload), arrivals_of(workload)
        self._log = LogFollower(folder)
        self._events = None if workload.stream is None else EventFollower(folder)
        self._arrived = dict[
            int, float
        ]()  # of each open stream, when its last event arrived
        self._lock = threading.Lock()
        self._finished = 0
        self._cpu_before = 0.0
        self._connections_before = 0
        self._next_memory = 0.0
        self._started: float | None = None
        self._ended: float | None = None
        self._left = False
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
        was_running, self._runs = self._runs, self.is_running
        return was_running

    def started(self, at: float | None = None) -> None:
        """Start counting: the measured part begins now, or at the Unix time `at`."""
        with self._lock:
            self._runs = True
            self._cpu_before = self._read_cpu()
            self._connections_before = sum(
                note.opened for note in process_notes(self._folder)
            )
            self._started = time.time() if at is None else at
            self._looked = time.monotonic()

    def look(self) -> None:
        """Count what happened since the last look, if the trial is being measured."""
        with self._lock:
            if self.is_running:
                self._look()

    def ended(self) -> None:
        """Read the last values: the measured part is over, and its processes are still
        there.
        """
        with self._lock:
            if self.is_running:
                self._look()
            self._ended = self._ended or time.time()
            self.gauges |= {"requests_in_flight": 0.0, "backlog_requests": 0}

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
        if not self._left:
            self._left = True
            for name, value in self.counters.items():
                self.totals.ended[name] = self.totals.ended.get(name, 0.0) + value

    def _count(self, name: str, value: float) -> None:
        self.counters[name] = self.counters.get(name, 0.0) + value

    def _look(self) -> None:
        """Count the requests that ended since the last look, and read what the
        processes used so far.
        """
        (records, numbers), now = self._log.new_records(), time.monotonic()
        seconds: Floats = records["seconds"]
        codes, counts = np.unique(records["error"], return_counts=True)
        outcomes, histograms = self.totals.outcomes, self.totals.histograms
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            kind = _KIND_OF.get(code, ERROR_OTHER)
            outcomes[kind] = outcomes.get(kind, 0) + count
        self._finished += len(records)
        # By Little's law, arrivals per second x mean seconds are in flight.
        most_in_flight, elapsed = (
            self.planned.concurrency,
            max(now - self._looked, 1e-6),
        )
        in_flight = min(most_in_flight, float(seconds.sum()) / elapsed)
        self.gauges["requests_in_flight"] = in_flight
        self._looked = now
        if self._schedule is not None and (began := self._log.schedule_began):
            starts = map(self._schedule.start_of, numbers.tolist())
            late = (
                records["start"] - began - np.fromiter(starts, np.float64, len(numbers))
            )
            is_sent = records["error"] != ERROR_CODES[DROPPED]
            histograms["lateness_seconds"].add(late, is_sent)
            seconds = seconds + late
            due = self._schedule.due(now - began)
            self.counters["planned_requests"] = due
            backlog = max(0, due - self._finished - most_in_flight)
            self.gauges["backlog_requests"] = backlog
        if self._events is not None:
            self._look_at_events(self._events, numbers)
        # A failed request has no answer: it ranks after every successful one, as in the
        # quantiles of the run file.
        histograms["request_seconds"].add(seconds, records["error"] == 0)
        if self._delay_of is not None:
            asked = evaluate(self._delay_of, numbers)
            if is_staggered(self._workload):
                asked *= find_delay_shares(numbers, [0], self.planned.concurrency)
            self._count("delay_seconds", float(asked.sum()))
        used = max(
            self.counters.get("cpu_seconds", 0.0), self._read_cpu() - self._cpu_before
        )
        opened = sum(note.opened for note in process_notes(self._folder))
        measured = max(0.0, time.time() - (self._started or 0.0))
        self.counters |= {
            "cpu_seconds": used,
            "connections_opened": max(0, opened - self._connections_before),
            "measured_seconds": measured / self._workload.shards,
        }

    def _look_at_events(self, follower: EventFollower, ended: Integers) -> None:
        """Count the events since the last look.

        `ended`: the requests that have ended since then.
        """
        events = follower.new_events()
        self._count("events", len(events))
        order = np.lexsort((events["at"], events["request"]))
        requests, arrived = events["request"][order], events["at"][order]
        before = np.roll(arrived, 1)
        for place in np.flatnonzero(
            np.diff(requests, prepend=-1)
        ).tolist():  # the first of each stream
            before[place] = self._arrived.get(int(requests[place]), np.nan)
        gaps = (arrived - before)[~np.isnan(before)]
        self.totals.histograms["gap_seconds"].add(gaps, np.ones(len(gaps), bool))
        self._arrived |= zip(requests.tolist(), arrived.tolist(), strict=True)
        for number in ended.tolist():
            self._arrived.pop(number, None)
        marks = parse_marks(events["mark"])
        lags = (events["at"] - marks.written)[marks.are_valid]
        # Otherwise the server's clock is another one.
        if len(lags) and lags.min() >= 0 and lags.max() < _MOST_LAG:
            self.totals.histograms["lag_seconds"].add(lags, np.ones(len(lags), bool))

    def _read_cpu(self) -> float:
        """Return the CPU seconds of the trial's processes so far, in steps of 10 ms,
        and read their memory.
        """
        seconds, pids = 0.0, []
        for process in psutil.Process().children(recursive=True):
            try:
                seconds += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue  # it has just ended: its parent's times include it
            pids.append(process.pid)
        if (began := time.monotonic()) >= self._next_memory:
            if (found := read_footprint(pids, left_out=MAPPED_FILES)) is not None:
                self.gauges["memory_bytes"] = found.now
            # Reading the memory holds up the processes, so it may take 1/1000 of the
            # time.
            self._next_memory = time.monotonic() + 1000 * (time.monotonic() - began)
        return seconds
