"""The runs of a results folder as Prometheus metrics: `clientlab exporter --out results`.

A finished run is read once, and its text is kept: rendering 20 runs takes 0.1 s of CPU time, which would disturb the
trial that is being measured. The run in progress is read at each scrape.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from clientlab.cluster import run_metrics
from clientlab.errors import LabError
from clientlab.judging.judgement import find_judged
from clientlab.printable import printable
from clientlab.results.document import Run
from clientlab.results.store import Store
from clientlab.running.due import due_trials

NEWEST = 50
"""Runs that are published. Older ones are in their files."""


class StoredRuns:
    """The newest runs of a store in Prometheus' text format. `say` takes a line about a run that cannot be read."""

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._read: dict[str, tuple[object, Run | None]] = {}
        self._finished: list[Run] | None = None
        self._finished_text = b""
        self._lock = threading.Lock()

    def page(self) -> bytes:
        """Return the metrics of the finished runs, and those of the run in progress under names of their own."""
        with self._lock:
            runs = list(filter(None, map(self._find, self._store.names()[-NEWEST:])))
            present, schedule = run_metrics.families("present"), run_metrics.schedule()
            for run in runs:
                if run.status == "running":
                    run_metrics.fill(present, run)
                    failed = sum(trial.status != "done" for trial in run.trials)
                    left = len(due_trials(run).trials)
                    for state, count in (("done", len(run.trials) - failed), ("failed", failed), ("left", left)):
                        schedule.add_metric([run.run, run.experiment.name, state], count)
            finished = [run for run in runs if run.status != "running"]
            if self._finished is None or list(map(id, finished)) != list(map(id, self._finished)):
                families = run_metrics.families()
                for run in finished:
                    run_metrics.fill(families, run)
                self._finished, self._finished_text = finished, _text_of(families.values())
            return self._finished_text + _text_of([*present.values(), schedule])

    def _find(self, name: str) -> Run | None:
        """Return the run, from memory if its file has not changed; None if it cannot be read."""
        try:
            version = self._store.version(name)
        except FileNotFoundError:  # removed just now
            return None
        known, run = self._read.get(name, (None, None))
        if known != version:
            try:
                found = find_judged(self._store, name)
                run = found.model_copy(update={"run": name})  # a copied folder has another name
            except LabError as error:
                run = None
                self._say(str(error))
            self._read[name] = version, run
        return run


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> list[Metric]:
        return self._families


def _text_of(families: Iterable[Metric]) -> bytes:
    """Return metrics in Prometheus' text format, without the control characters that names in a run file may hold."""
    return printable(generate_latest(_Families(families)).decode()).encode()


class _Handler(BaseHTTPRequestHandler):
    runs: StoredRuns

    def do_GET(self) -> None:
        page = self.runs.page()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_LATEST)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Log no scrape."""


@contextmanager
def serve(store: Store, host: str, port: int, say: Callable[[str], None]) -> Iterator[int]:
    """Serve the metrics of a store from a thread; the value is the port. Raise LabError if it cannot listen there."""
    handler = type("Handler", (_Handler,), {"runs": StoredRuns(store, say)})
    try:
        server = ThreadingHTTPServer((host, port), handler)
    except OSError as error:
        raise LabError(f"--host {host} --port {port}: {error.strerror}; choose another") from error
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()
