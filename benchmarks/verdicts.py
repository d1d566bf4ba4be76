"""Verdicts on real trials whose bottleneck is known, with the shares that
led to them.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import BenchmarkRow
from clientlab import plugins
from clientlab.machine.usage import cpu_usable
from clientlab.reports.rows import bottleneck_shares
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.trial_runner import Testbed, TrialRunner
from clientlab.testbeds.external import ExternalServers
from clientlab.testbeds.linked import LinkedTestbed, LinkProcess
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.servers import WorkerCounts
from clientlab.workload.values import Delay, Link
from clientlab.workload.workload import make_workload

MOST_ATTEMPTS, NOISY = 5, 0.25
"""A trial is measured at most `MOST_ATTEMPTS` times, until other programs use at most
`NOISY` cores.
"""
OWN_SERVER = "own server"
_FILE = Path(__file__).with_name("verdict_clients.py")


@dataclass(frozen=True)
class Case:
    """A trial with a known limit.

    `expected`: the right verdict, or two. `requests`: None if it has a duration.
    """

    name: str
    strategy: str
    expected: str
    requests: int | None
    concurrency: int = 32
    delay: str | None = None
    upstream: str = "aiohttp"
    route: str = "direct"
    link: Link | None = None
    workload: dict[str, Any] = field(default_factory=dict)


CASES = (
    Case(
        "httpx threads, bound by their CPU",
        "httpx-client@threads",
        "client-bound",
        2500,
    ),
    Case(
        "requests threads, bound by their CPU",
        "requests-session@threads",
        "client-bound",
        3000,
    ),
    Case("a client with one lock", f"{_FILE}:Locked@threads", "client-lock", 3000),
    Case(
        "a client with one lock, delayed",
        f"{_FILE}:Locked@threads",
        "client-lock",
        300,
        32,
        "5ms",
    ),
    Case(
        "gather with a pool of 4",
        "aiohttp@gather?pool=4",
        "client-connections",
        400,
        32,
        "20ms",
    ),
    Case(
        "a pool of 40, 64 in flight",
        "aiohttp@workers?pool=40",
        "client-connections",
        800,
        64,
        "100ms",
    ),
    Case(
        "100 streams of HTTP/2, 150 in flight",
        "httpx-async-h2@workers",
        "client-streams",
        1000,
        150,
        "500ms",
        route="proxy-tls",
    ),
    Case("pure delay", "aiohttp@workers", "latency-bound", 640, 32, "100ms"),
    Case(
        "a native client with two threads",
        f"{_FILE}:Native@threads",
        "latency-bound or chain",
        1500,
        2,
        "1ms",
    ),
    Case(
        "Flask with one worker",
        "pycurl@multi",
        "upstream-bound",
        3000,
        upstream="flask?workers=1",
    ),
    Case(
        "Flask with 4 threads",
        "pycurl@multi",
        "upstream-threads",
        400,
        32,
        "20ms",
        upstream="flask?workers=1&threads=4",
    ),
    Case(
        "Flask with 2 x 25 threads, 64 in flight",
        "aiohttp@workers",
        "upstream-threads",
        1200,
        64,
        "100ms",
        upstream="flask?workers=2&threads=25",
    ),
    Case(
        "a user's own server, bound by its CPU",
        "aiohttp@workers",
        "outside",
        800,
        upstream=OWN_SERVER,
    ),
    Case("one request after the other", "http.client", "chain", 4000, 1),
    Case(
        "one request after the other, by the proxy",
        "http.client",
        "chain",
        2500,
        1,
        route="proxy",
    ),
    Case(
        "all cores full, no part of them",
        "pycurl@multi",
        "machine",
        8000,
        64,
        upstream="aiohttp?workers=2",
        route="proxy",
    ),
    Case("one request in flight that stalls", f"{_FILE}:Stalled", "unaccounted", 40, 1),
    Case("eight threads that stall", f"{_FILE}:Stalled@threads", "unaccounted", 320, 8),
    Case(
        "uploads of 50 kB over 20 Mbit/s",
        "aiohttp@workers",
        "bandwidth-bound",
        150,
        link=Link(0.01, 20e6),
        workload={"method": "POST", "path": "/echo", "payload_size": 50_000},
    ),
    Case(
        "headers of 300 bytes over 500 kbit/s",
        "aiohttp@workers",
        "bandwidth-bound",
        500,
        link=Link(0.01, 5e5),
        workload={"headers": {"X-Padding": "x" * 300}},
    ),
    Case(
        "600/s to a server that does 300/s",
        "aiohttp@workers",
        "overloaded",
        None,
        4096,
        "10ms",
        upstream="flask?workers=1&threads=3",
        workload={"rate": 600.0, "duration": 3.0},
    ),
)


def rows() -> Iterator[BenchmarkRow]:
    """Yield a row for each case, and one for all.

    The value is 1 if the verdict is right.
    """
    right = 0
    for case in CASES:
        trial, attempts = _measure(case)
        met = trial.bound in case.expected.split(" or ")
        right += met
        shares = trial.verdict.shares.known if trial.verdict else {}
        name = f"{case.name}: {trial.bound} ({bottleneck_shares(trial.bound, shares)})"
        yield BenchmarkRow(
            name, met, met, met, f"trial {attempts}", case.expected, met, "right"
        )
    share = right / len(CASES)
    name = f"verdicts that are right, of {len(CASES)}"
    yield BenchmarkRow(
        name, share, share, share, "one trial each", "1", share == 1, "of all"
    )


def _measure(case: Case) -> tuple[Trial, int]:
    """Return a trial of the case, and how many were measured until other programs did
    not disturb it.
    """
    attempt = 1
    while True:
        with tempfile.TemporaryDirectory() as folder:
            trial = _run_trial(case, Path(folder))
        if (
            case.upstream == OWN_SERVER
            or attempt == MOST_ATTEMPTS
            or _cores_of_others(trial) <= NOISY
        ):
            return trial, attempt
        attempt += 1


def _cores_of_others(trial: Trial) -> float:
    """Return how many cores programs outside the trial used on average; 0 if it is
    unknown.
    """
    share = None if trial.verdict is None else trial.verdict.shares.machine
    if share is None or trial.measured is None:
        return 0.0
    own = trial.servers.cpu_seconds + trial.measured.cpu_seconds
    return share * cpu_usable() - own / trial.measured.wall_seconds


def _run_trial(case: Case, folder: Path) -> Trial:
    """Measure a trial of the case. Raise SystemExit if it fails."""
    plugins.admit([case.strategy])
    delay = None if case.delay is None else Delay.parse(case.delay)
    workload = make_workload(
        requests=case.requests,
        concurrency=case.concurrency,
        delay=delay,
        **case.workload,
    )
    planned = PlannedTrial(
        arm="case",
        strategy=case.strategy,
        upstream=case.upstream,
        route=case.route,
        workload="workload",
        round=1,
        order=0,
        concurrency=case.concurrency,
        link=case.link,
    )
    with contextlib.ExitStack() as stack:
        links: dict[Link, Testbed] = {}
        testbed: LocalTestbed | ExternalServers
        if case.upstream == OWN_SERVER:
            testbed = ExternalServers(
                {OWN_SERVER: stack.enter_context(_own_server())}, None, lambda _: False
            )
        else:
            workers = WorkerCounts(flask=2, aiohttp=1, threads=32)
            testbed = stack.enter_context(
                LocalTestbed([case.upstream], [case.route], folder, workers)
            )
        if case.link is not None:
            process = stack.enter_context(
                LinkProcess(case.link, testbed.targets(), folder)
            )
            links[case.link] = LinkedTestbed(testbed, process)
        trial = TrialRunner(testbed, links=links)(
            planned, workload, folder, lambda _: None
        )
    if trial.status != "done" or trial.figures.errors:
        raise SystemExit(f"{case.name}: {trial.reason or trial.figures.error_examples}")
    return trial


@contextlib.contextmanager
def _own_server() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(_FILE)], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            yield f"http://127.0.0.1:{int((server.stdout or sys.stdin).readline())}/"
        finally:
            server.kill()
