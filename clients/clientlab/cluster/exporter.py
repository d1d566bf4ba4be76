"""The runs of a results folder as Prometheus metrics: `clientlab exporter --out results`.

A run has the metrics of the list of figures, as medians over its rounds. An unknown figure has no sample.
"""

from __future__ import annotations

import hashlib
import json
import math
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from clientlab.cluster.live_metrics import ARM_LABELS, arm_labels
from clientlab.errors import LabError
from clientlab.judging.cautions import commonest_verdict
from clientlab.judging.comparison import simultaneous
from clientlab.judging.judgement import read_judged
from clientlab.judging.ranking import arm_key, rank_arms
from clientlab.reports.contents import claim_doubts, claim_sentence
from clientlab.reports.rows import speed_of
from clientlab.results.document import Run
from clientlab.results.figures import EXPORTED
from clientlab.results.plan import Arm
from clientlab.results.store import Store
from clientlab.running.schedule import find_due
from clientlab.statistics.ratios import FEWEST_ROUNDS, typical_estimate
from clientlab.text import make_printable

NEWEST = 50  # runs that are published; older ones are only in their files
_Row = tuple[str, list[str], float]  # name of the metric, values of its labels, and its own value
_COMPARED = [figure for figure, _ in EXPORTED if figure.compared]


class Families(dict[str, GaugeMetricFamily], Collector):
    """The metrics of runs, by their names without the first part."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self.values()


def make_server(store: Store, host: str, port: int, say: Callable[[str], None]) -> ThreadingHTTPServer:
    """Return a server of a store's metrics. `say` gets a line for each run that cannot be read. Raise LabError."""
    runs = StoredRuns(store, say)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = runs.render()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
            """Log no scrape."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    try:
        return Server((host, port), Handler)
    except OSError as error:
        raise LabError(f"--host {host} --port {port}: {error.strerror}; choose another") from error


class StoredRuns:
    """The newest runs of a store in Prometheus' text format.

    A finished run is read once, and its text is kept: rendering 20 runs takes 0.1 s of CPU time, which would disturb
    the trial that is being measured. The run in progress is read at each scrape.
    """

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._known: dict[str, tuple[object, Run | None]] = {}  # name to its version and the run
        self._finished: list[Run] | None = None
        self._finished_text = b""
        self._lock = threading.Lock()

    def render(self) -> bytes:
        """Return the metrics of the finished runs, and those of the run in progress under names of their own."""
        with self._lock:
            runs = [run for name in self._store.names()[-NEWEST:] if (run := self._read(name)) is not None]
            finished = [run for run in runs if run.status != "running"]
            if self._finished is None or list(map(id, finished)) != list(map(id, self._finished)):
                self._finished, self._finished_text = finished, _render(make_families("run"), finished)
            running = [run for run in runs if run.status == "running"]
            return self._finished_text + _render(make_families("present"), running)

    def _read(self, name: str) -> Run | None:
        """Return the run, from memory if its file has not changed; None if it cannot be read."""
        try:
            version = self._store.version(name)
        except FileNotFoundError:  # removed just now
            return None
        known, run = self._known.get(name, (None, None))
        if known != version:
            try:
                run = read_judged(self._store.find(name))
                run = run.model_copy(update={"run": name})  # a copied folder has a new name
            except LabError as error:
                run = None
                self._say(str(error))
            self._known[name] = version, run
        return run


def _render(families: Families, runs: Iterable[Run]) -> bytes:
    """Return the metrics of runs as text, without the control characters that names in a run file may hold."""
    for run in runs:
        for name, labels, value in _rows_of_run(run):
            families[name].add_metric(labels, value)
    return make_printable(generate_latest(families).decode()).encode()


def make_families(stem: str) -> Families:
    """Return every metric of runs, still empty. `stem`: ``run`` for finished runs, ``present`` for one in progress."""
    margin = ("Half the width of the interval of a figure's median over rounds, of its logarithm. Two runs differ if "
              "their logarithms are further apart than the root of the margins' squares.")  # fmt: skip
    rows: dict[str, tuple[str, tuple[str, ...]]] = {
        "info": ("A run.", ("run", "experiment", "machine", "python", "surroundings")),
        "created_timestamp_seconds": ("When the run began.", ("run",)),
        "requests_per_second_low": ("Lower end of the 95 % interval of the requests per second.", ARM_LABELS),
        "requests_per_second_high": ("Upper end of that interval.", ARM_LABELS),
        "rank": ("An arm's place in its workload, upstream, route and link, by its time; 1 is the best.", ARM_LABELS),
        "rounds": ("Finished trials of an arm: its rounds so far.", ARM_LABELS),
        "concurrency": ("Requests of an arm in flight at once.", ARM_LABELS),
        "margin": (margin, (*ARM_LABELS, "figure")),
        "errors": ("Failed requests, all rounds.", ARM_LABELS),
        "verdict": ("1 for what limited most of its trials.", (*ARM_LABELS, "verdict")),
        "claim": ("b's figure over a's of a claim; NaN without one.", ("run", "experiment", "claim", "verdict")),
        "claim_info": ("1 for each claim; its sentence is a label.", ("run", "experiment", "claim", "sentence")),
    }
    for figure, metric in EXPORTED:
        labels = (*ARM_LABELS, "quantile") if metric.quantile else ARM_LABELS
        text = "Exact quantiles of all requests." if metric.quantile else figure.description
        rows.setdefault(metric.name, (f"{text[0].upper()}{text[1:]}", labels))
        if figure.bounded is not None:
            rows.setdefault(metric.name_at_least, ("Lower bounds of quantiles that fall on failed requests.", labels))
    families = Families(
        (name, GaugeMetricFamily(f"clientlab_{stem}_{name}", text, labels=labels))
        for name, (text, labels) in rows.items()
    )
    if stem == "present":
        text = "Trials of the run in progress: done, failed or left."
        states = ("run", "experiment", "state")
        families["schedule"] = GaugeMetricFamily("clientlab_schedule_trials", text, labels=states)
    return families


def _rows_of_run(run: Run) -> Iterator[_Row]:
    machine, about = run.surroundings, [run.run, run.experiment.name]
    cores = f"{machine.cpu_model}, {machine.cpu_usable:g} cores"
    yield "info", [*about, cores, machine.python, _hash_surroundings(run)], 1
    yield "created_timestamp_seconds", [run.run], datetime.fromisoformat(run.created).timestamp()
    if run.status == "running":
        failed = sum(trial.status != "done" for trial in run.trials)
        yield "schedule", [*about, "done"], len(run.trials) - failed
        yield "schedule", [*about, "failed"], failed
        yield "schedule", [*about, "left"], len(find_due(run))
    for claim in run.claims:
        yield "claim", [*about, claim.name, claim.verdict], math.nan if claim.ratio is None else claim.ratio
        yield "claim_info", [*about, claim.name, claim_sentence(claim) + claim_doubts(claim)], 1
    places = {
        (group, standing.name): place
        for group, standings in rank_arms(run).items()
        for place, standing in enumerate(standings, start=1)
        if not standing.fell_short
    }
    for arm in run.experiment.arms:
        labels = arm_labels(run.run, run.experiment.name, arm.name, arm)
        if place := places.get(arm_key(arm)):
            yield "rank", labels, place
        for name, more, value in _rows_of_arm(run, arm):
            yield name, labels + more, value


def _rows_of_arm(run: Run, arm: Arm) -> Iterator[_Row]:
    """Yield the metrics of an arm. Their labels are those that it has in addition to the arm's own."""
    trials = [trial for trial in run.trials_of(arm.name) if trial.status == "done"]
    if not trials:
        return
    for figure, metric in EXPORTED:
        if (value := figure.over_rounds(trials)) is not None:
            name = metric.name_at_least if figure.is_bound(trials) else metric.name
            yield name, [metric.quantile] if metric.quantile else [], value
    speed = speed_of(trials)
    if speed is not None and speed.low is not None and speed.high is not None:
        yield "requests_per_second_low", [], speed.low
        yield "requests_per_second_high", [], speed.high
    level = simultaneous(len(run.experiment.arms) * len(_COMPARED))  # all intervals hold together in 95 of 100 runs
    for figure in _COMPARED:
        values = figure.values(trials)
        if len(values) >= FEWEST_ROUNDS and min(values) > 0 and not figure.has_bounds(trials):
            found = typical_estimate(values, level)
            if found.low and found.high is not None:
                margin = (math.log(found.high) - math.log(found.low)) / 2 + figure.resolution
                yield "margin", [figure.key], margin
    yield "rounds", [], len(trials)
    yield "concurrency", [], trials[0].planned.concurrency
    yield "errors", [], sum(trial.figures.failed for trial in trials)
    if verdict := commonest_verdict(trials):
        yield "verdict", [verdict], 1


def _hash_surroundings(run: Run) -> str:
    """Return a hash that is equal for runs whose figures may be compared: machine, limits, versions, servers.

    Unknown fields do not count, so that a new field does not make older runs incomparable.
    The load average, the lab's commit and the host's name, which is new for each container, do not count either.
    """
    machine = run.surroundings.model_dump(
        exclude={"load_average", "host", "lab_commit", "environments"}, exclude_none=True
    )
    if environments := run.surroundings.environments:
        machine["environments"] = {name: one.model_dump(exclude={"folder"}) for name, one in environments.items()}
    return hashlib.sha256(json.dumps(machine, sort_keys=True).encode()).hexdigest()[:8]
