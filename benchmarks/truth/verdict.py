"""The verdict where the bottleneck is known: a row for each case, with the shares that led to it.

Most cases are real trials. What a trial cannot be made to do is constructed from its figures.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.constructed_cases import CONSTRUCTED
from benchmarks.truth.verdict_cases import CASES, Case
from clientlab.judging.verdict import verdict
from clientlab.reports.rows import bottleneck_shares
from clientlab.results.surroundings import cpu_usable
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.testbed import Testbed
from clientlab.running.trial_runner import TrialRunner
from clientlab.strategies import plugins
from clientlab.testbeds.external import ExternalTarget
from clientlab.testbeds.linked import LinkedTestbed
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import WorkerCounts
from clientlab.workload.delays import Delay
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload

MOST_ATTEMPTS = 5
NOISY = 0.25
"""Cores that other programs used. A trial beside more of them is measured again, except where they are the case."""

WORKERS = WorkerCounts(flask=2, aiohttp=1, threads=32)
_BURNERS = 3  # for each core
_BURN = "while True: pass"  # each in a session of its own, since Linux shares the cores among sessions
_SERVER = Path(__file__).with_name("busy_server.py")


def rows(seed: int = 0) -> Iterator[BenchmarkRow]:  # noqa: ARG001 - nothing is drawn
    """A row for each case, and one for all. The value is 1 if the verdict is right."""
    right = 0
    for case in CASES:
        trial, attempts = measured(case)
        met = trial.verdict in case.expected
        right += met
        name = f"{case.name}: {trial.verdict} ({bottleneck_shares(trial.verdict, trial.busy)})"
        target = " or ".join(case.expected)
        yield BenchmarkRow(name, met, met, met, f"trial {attempts}", target, met, "right")
    for constructed in CONSTRUCTED:
        shares = constructed.shares()
        found = verdict(shares, constructed.planned.concurrency, threads=constructed.threads)
        met = found == constructed.expected
        right += met
        known = {part: share for part, share in vars(shares).items() if share is not None}
        name = f"{constructed.name}: {found} ({bottleneck_shares(found, known)})"
        yield BenchmarkRow(name, met, met, met, "constructed", constructed.expected, met, "right")
    count = len(CASES) + len(CONSTRUCTED)
    share = right / count
    yield BenchmarkRow(
        f"verdicts that are right, of {count}", share, share, share, "one trial each", "1", share == 1, "of all"
    )


def measured(case: Case) -> tuple[Trial, int]:
    """A trial of the case, and its number: trials disturbed by other programs were before it."""
    attempt = 1
    while True:
        with tempfile.TemporaryDirectory() as folder, _around(case):
            trial = _measure(case, Path(folder))
        if case.around in {"burners", "own server"} or others(trial) <= NOISY or attempt == MOST_ATTEMPTS:
            return trial, attempt
        attempt += 1


def others(trial: Trial) -> float:
    """Cores that programs outside the trial used, on average; 0 if it is unknown."""
    share, wall = trial.busy.get("machine"), trial.wall_seconds
    if share is None or not wall:
        return 0.0
    uses = [use.cpu_seconds for use in (trial.upstream_use, trial.proxy_use) if use is not None]
    return share * cpu_usable() - (sum(uses) + (trial.cpu_seconds or 0.0)) / wall


def _measure(case: Case, folder: Path) -> Trial:
    """Raises SystemExit if the trial fails."""
    plugins.admit([case.strategy])
    workload = Workload(
        requests=case.requests,
        concurrency=case.concurrency,
        delay=None if case.delay is None else Delay.parse(case.delay),
        **case.workload,
    )
    planned = PlannedTrial(
        arm="case", strategy=case.strategy, upstream=case.upstream, route=case.route, workload="workload",
        round=1, order=0, concurrency=case.concurrency, link=case.link,
    )  # fmt: skip
    with _testbed(case, folder) as testbed, contextlib.ExitStack() as stack:
        links: dict[Link, Testbed] = {}
        if case.link is not None and isinstance(testbed, LocalTestbed):
            links[case.link] = stack.enter_context(LinkedTestbed(testbed, case.link, folder))
        trial = TrialRunner(testbed, links=links)(planned, workload, folder, lambda _: None)
    if trial.status != "done" or trial.errors:
        raise SystemExit(f"{case.name}: {trial.reason or trial.error_examples}")
    return trial


@contextlib.contextmanager
def _testbed(case: Case, folder: Path) -> Iterator[Testbed]:
    if case.around == "own server":
        with own_server() as url:
            yield ExternalTarget(url)
        return
    pinned = case.around == "pinned proxy"
    with _environment("GOMAXPROCS", "1" if pinned else None):
        local = LocalTestbed([case.upstream], [case.route], folder, replace(WORKERS))
        with local:
            yield local


@contextlib.contextmanager
def _around(case: Case) -> Iterator[None]:
    """The programs beside the trial, ended after it."""
    count = _BURNERS * (os.cpu_count() or 1) if case.around == "burners" else 0
    burners = [subprocess.Popen([sys.executable, "-c", _BURN], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@contextlib.contextmanager
def own_server() -> Iterator[str]:
    """The URL of a server in a process of its own that spends CPU time on each request."""
    with subprocess.Popen([sys.executable, str(_SERVER)], stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int((server.stdout or sys.stdin).readline())
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.kill()


@contextlib.contextmanager
def _environment(name: str, value: str | None) -> Iterator[None]:
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        if value is not None:
            os.environ.pop(name)
            if before is not None:
                os.environ[name] = before
