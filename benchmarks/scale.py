"""A thousand simulated workers and one lab service: how soon turns are answered, and what their results cost the lab.

The lab is the real service, in a process of its own; the workers are one process that speaks the real API over real
sockets. Many trials of one worker each are given, and then trials of a thousand shards.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.figures import BenchmarkRow
from benchmarks.simulated_workers import MEASURING_SECONDS, REQUESTS, STRATEGY, TOKEN, notes_in
from clientlab.results.document import Run
from clientlab.results.store import Store

WORKERS = 1000
_TRIALS = 200
_DIVIDED = 3
_TURN_MS, _MERGE_SECONDS, _LAB_MB = 100.0, 2.0, 500.0
_PATIENCE = 300.0
_EXPERIMENT = """
question = "What does the lab hold?"
strategies = ["{strategy}"]
rounds = {rounds}
[workloads.w]
requests = {requests}
concurrency = {workers}
shards = {shards}
delay = "1ms"
"""


def rows() -> Iterator[BenchmarkRow]:
    """Turns of single workers, then turns, meeting, results and merging of trials with a shard for each worker."""
    with _measured(shards=1, rounds=_TRIALS) as found:
        yield from found.turns("trials of one worker", _TURN_MS)
        yield from found.lab("trials of one worker")
    with _measured(shards=WORKERS, rounds=_DIVIDED) as found:
        yield from found.turns(f"all turns of a trial of {WORKERS:,} shards at once", _TURN_MS)
        yield from found.of_shards()
        yield from found.lab(f"trials of {WORKERS:,} shards")


class ScaleRun:
    """What the lab and the workers noted of a run."""

    def __init__(self, run: Run, notes: Sequence[dict[str, Any]], peak: float, health: Sequence[float]) -> None:
        self.run = run
        self._notes = notes
        self._peak = peak
        self._health = health

    def turns(self, what: str, limit: float | None) -> Iterator[BenchmarkRow]:
        """Milliseconds from the moment at which there is a turn to the first byte of its answer at the worker.

        There is a turn when the lab has a trial, and as many workers wait for it as the trial has shards. The first
        trial does not count: the workers still come.
        """
        turns = {(note["order"], note["shard"]): note["at"] for note in self._of("turn")}
        took = [
            1e3 * (note["at"] - turns[note["order"], note["shard"] or 0])
            for note in self._of("assigned")
            if note["order"] > 0
        ]
        yield _row(f"a turn answered, p99 of {len(took):,}: {what}", took, 99, limit, "ms")

    def of_shards(self) -> Iterator[BenchmarkRow]:
        """The meeting, the results, and the merging."""
        margins = [1e3 * (note["start"] - note["learned"]) for note in self._of("met")]
        name = f"the agreed start known before it, the latest of {len(margins):,} shards"
        yield BenchmarkRow(name, min(margins), min(margins), max(margins), "range", "> 0", min(margins) > 0, "ms")
        taken = self._by_order("taken")
        took = [
            max(note["at"] for note in taken[order]) - max(note["at"] for note in notes)
            for order, notes in self._by_order("reported").items()
        ]
        yield _row("the last result sent to all results answered", took, 50, None, "s")
        turns = self._by_order("turn")
        whole = [
            max(note["at"] for note in taken[order]) - turns[order][0]["at"] - MEASURING_SECONDS for order in taken
        ]
        yield _row(
            "a divided trial, from its turns to its last answer, without the measured part", whole, 50, None, "s"
        )
        merged = [note["seconds"] for note in self._of("merged")]
        yield _row(f"merging {WORKERS:,} results", merged, 100, _MERGE_SECONDS, "s")

    def lab(self, what: str) -> Iterator[BenchmarkRow]:
        """The memory of the lab, its health checks, and requests that were made again."""
        met = self._peak <= _LAB_MB
        name = f"peak memory of the lab: {what}"
        yield BenchmarkRow(name, self._peak, self._peak, self._peak, "one run", f"<= {_LAB_MB:g}", met, "MB")
        yield _row(f"health check of the lab meanwhile, p99 of {len(self._health)}", self._health, 99, None, "ms")
        again = float(len(list(self._of("retry"))))
        yield BenchmarkRow(f"requests made again: {what}", again, again, again, "one run", "none", met=True, unit="")
        lost = float(sum(trial.status != "done" for trial in self.run.trials))
        name = f"trials not done, of {len(self.run.trials)}"
        yield BenchmarkRow(name, lost, lost, lost, "one run", "<= 0", lost == 0, "")

    def _of(self, event: str) -> Iterator[dict[str, Any]]:
        return (note for note in self._notes if note["event"] == event)

    def _by_order(self, event: str) -> dict[int, list[dict[str, Any]]]:
        found: dict[int, list[dict[str, Any]]] = {}
        for note in self._of(event):
            found.setdefault(note["order"], []).append(note)
        return found


def _row(name: str, values: Sequence[float], percent: float, limit: float | None, unit: str) -> BenchmarkRow:
    value = float(np.percentile(values, percent))
    spread = f"median {np.median(values):.2f}"
    target, met = ("none", True) if limit is None else (f"<= {limit:g}", value <= limit)
    return BenchmarkRow(name, value, min(values), max(values), spread, target, met, unit)


@contextlib.contextmanager
def _measured(shards: int, rounds: int) -> Iterator[ScaleRun]:
    """A run whose trials have so many shards, to its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scale.toml").write_text(
            _EXPERIMENT.format(
                strategy=STRATEGY, rounds=rounds, requests=REQUESTS * shards, workers=WORKERS, shards=shards
            )
        )
        with _lab(folder) as (lab, port), _workers(folder, port), _health(port) as health:
            run = _ended(Store(folder / "results"), lab, folder)
            _await_answers(folder / "workers.notes", shards * rounds)
            peak = _peak_bytes(lab.pid) / 1e6
        notes = [*notes_in(folder / "lab.notes"), *notes_in(folder / "workers.notes")]
        yield ScaleRun(run, notes, peak, health)


@contextlib.contextmanager
def _lab(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    serve = ["serve", "--experiment", str(folder / "scale.toml"), "--port", "0", "--out", str(folder / "results")]
    command = [sys.executable, "-m", "benchmarks.timed_lab", str(folder / "lab.notes"), *serve, "--patience", "120"]
    log = folder / "lab.log"
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | {"CLIENTLAB_TOKEN": TOKEN}) as process,
    ):
        try:
            until = time.monotonic() + _PATIENCE
            while (found := re.search(r"Running on http://127.0.0.1:(\d+)", log.read_text())) is None:
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"the lab did not start\n{log.read_text()}")
                time.sleep(0.05)
            yield process, int(found[1])
        finally:
            process.terminate()


@contextlib.contextmanager
def _workers(folder: Path, port: int) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.simulated_workers", str(port), str(WORKERS)]
    with subprocess.Popen([*command, str(folder / "workers.notes")]) as process:
        try:
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def _health(port: int) -> Iterator[list[float]]:
    """Milliseconds of a health check ten times a second, meanwhile."""
    took, over = [0.0], threading.Event()

    def check() -> None:
        while not over.wait(0.1):
            began = time.monotonic()
            with contextlib.suppress(OSError, http.client.HTTPException):  # refused: as long as it took
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10.0)
                with contextlib.closing(connection):
                    connection.request("GET", "/healthz")
                    connection.getresponse().read()
            took.append(1e3 * (time.monotonic() - began))

    thread = threading.Thread(target=check)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


def _ended(store: Store, lab: subprocess.Popen[bytes], folder: Path) -> Run:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and lab.poll() is None:
        time.sleep(0.5)
        if store.names() and (run := store.read("last")).status != "running":
            return run
    raise SystemExit(f"the run did not end; the lab's log ends with\n{(folder / 'lab.log').read_text()[-3000:]}")


def _await_answers(notes: Path, results: int) -> None:
    """The last results are answered when the run has ended."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if sum(note["event"] == "taken" for note in notes_in(notes)) >= results:
            return
        time.sleep(0.5)
    raise SystemExit(f"fewer than {results:,} results were answered")


def _peak_bytes(pid: int) -> float:
    """Its peak on Linux, which counts it; on other systems its present memory."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
        if found:
            return 1024.0 * int(found[1])
    return float(psutil.Process(pid).memory_info().rss)
