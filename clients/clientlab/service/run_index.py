"""The newest finished runs, read once each: as rows and as metrics.

A run file does not change once its run has ended, and 50 of them are some megabytes of metrics: they are
rendered when one is added, and not for each scrape.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from clientlab.errors import LabError
from clientlab.judging.judgement import find_judged
from clientlab.results.document import Run
from clientlab.results.store import RUN_FILE, Store
from clientlab.results.trial import Trial
from clientlab.service import run_metrics
from clientlab.service.schemas import RunRow

NEWEST = 50
_HEAD = 1000  # bytes; the status stands before the experiment


@dataclass(frozen=True)
class _Known:
    changed: tuple[int, int, bool]  # the store's version of it
    row: RunRow
    run: Run | None  # of one that has ended; its histograms and slices left out


class RunIndex:
    """The newest runs of a store. `say` takes a line about one that can't be shown."""

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._known: dict[str, _Known] = {}
        self._rendered: tuple[list[_Known], bytes] = ([], b"")
        self._lock = threading.Lock()

    def rows(self) -> list[RunRow]:
        """A row a run, the newest first."""
        with self._lock:
            self._look(unfinished=True)
            return [known.row for known in self._known.values()]

    def metrics(self) -> bytes:
        """The finished runs in Prometheus' text format."""
        with self._lock:
            self._look(unfinished=False)
            ended = [known for known in self._known.values() if known.run is not None]
            if self._rendered[0] != ended:
                self._rendered = ended, self._render(known.run for known in ended if known.run is not None)
            return self._rendered[1]

    def _look(self, *, unfinished: bool) -> None:
        """Read what is new or has changed; an unfinished run, which changes with each trial, only if asked for."""
        found: dict[str, _Known] = {}
        for name in reversed(self._store.names()[-NEWEST:]):
            try:
                changed = self._store.version(name)
            except FileNotFoundError:
                continue  # removed just now
            known = self._known.get(name)
            if known and known.changed == changed:
                found[name] = known
            elif unfinished or not self._running(name):
                found[name] = self._read(name, changed)
        self._known = found

    def _running(self, name: str) -> bool:
        """Whether a run is unfinished, by the first lines of its file: it may be long."""
        try:
            with (self._store.folder / name / RUN_FILE).open("rb") as file:
                return b'"status": "running"' in file.read(_HEAD)
        except OSError:  # `_read` names it
            return False

    def _read(self, name: str, changed: tuple[int, int, bool]) -> _Known:
        try:
            return _known(name, changed, find_judged(self._store, name))
        except LabError as error:
            self._say(str(error))
            row = RunRow(run=name, experiment="", created="", status="unreadable", trials=0, problem=str(error))
            return _Known(changed, row, None)

    def _render(self, runs: Iterable[Run]) -> bytes:
        """Metrics of all runs."""
        found = run_metrics.families()
        for run in runs:
            run_metrics.fill(found, run)
        registry = CollectorRegistry()
        registry.register(_Finished(found))
        return generate_latest(registry)


def _known(name: str, changed: tuple[int, int, bool], run: Run) -> _Known:
    ended = run.status != "running"
    row = RunRow(
        run=name,
        experiment=run.experiment.name,
        created=run.created,
        status=run.status,
        trials=len(run.trials),
    )
    return _Known(changed, row, _lean(run, name) if ended else None)


def _lean(run: Run, name: str) -> Run:
    """What metrics are made of, under the name of its folder: a copied folder holds a run of the same name."""
    trials = [_without_curves(trial) for trial in run.trials]
    return run.model_copy(update={"trials": trials, "probes": [], "run": name})


def _without_curves(trial: Trial) -> Trial:
    of = None if trial.open_load is None else trial.open_load.model_copy(update={"over_time": []})
    return trial.model_copy(update={"histogram": None, "failed_histogram": None, "over_time": [], "open_load": of})


class _Finished(Collector):
    def __init__(self, found: run_metrics.Families) -> None:
        self._found = found

    def collect(self) -> list[Metric]:
        return list(self._found.values())
