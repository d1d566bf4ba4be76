"""The lab's rates over those of continuous loops that share no code with it.

Loops are measured before, between and after the trials of all durations, quiet and
beside a busy core. A cell is met if the lab's rate is within 5 % of the mean of the
loops, or if the lab does not rank the arm.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.figures import BenchmarkRow
from clientlab.judging.ranking import shortfall
from clientlab.machine import child_processes
from clientlab.results.document import Run
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.servers import choose_workers

MOST_WRONG = 0.05
DURATIONS = (1, 3, 10)
"""Seconds of the lab's trials. Each run has one."""
LOOP_SECONDS = 5.0
"""Seconds that a loop counts after its warm-up."""
SPIN = "while True: pass"


@dataclass(frozen=True)
class Case:
    """A client and a server."""

    name: str
    strategy: str

    waits: dict[int, str]
    """Seconds that a request waits, by the number in flight. Those of hangs follow."""

    server: str = ""
    """Places and times of `slow_servers`. Empty: an upstream of the lab."""

    upstream: str = "aiohttp"
    route: str = "direct"

    pool: int | None = None
    """Connections of the client. None: one for each request in flight."""

    warm_up: float = 2.0
    """Seconds before the loop counts."""

    spinners: int = 0
    """Processes that keep a core busy, even if it is quiet otherwise."""


# With 256 in flight, requests wait so long that neither client nor server is busy.
CASES = (
    Case("constant-delay", "urllib3@threads", {16: "0.02", 256: "0.32"}),
    Case("pool-of-4", "aiohttp@workers?pool=4", {16: "0.1", 256: "0.01"}, pool=4),
    Case(
        "http2-streams",
        "httpx-async-h2@workers",
        {16: "0.1", 256: "0.3"},
        route="proxy-tls",
    ),
    Case(
        "server-threads",
        "requests-session@threads",
        {16: "0.05", 256: "0.02"},
        upstream="flask?workers=1&threads=8",
    ),
    Case("hidden-limit", "aiohttp@workers", {16: "0.05", 256: "0.02"}, "8 constant"),
    Case(
        "short-hangs",
        "httpx-client@threads",
        {16: "0.015 1", 256: "0.3 2"},
        "1000 hangs",
        warm_up=4.0,
    ),
    Case(
        "long-hangs",
        "httpx-client@threads",
        {16: "0.015 5"},
        "1000 hangs",
        warm_up=7.0,
    ),
    Case("heavy-tail", "aiohttp@workers", {16: "0.02", 256: "0.15"}, "1000 lognormal"),
    Case("busy-core", "requests-session@threads", {16: "0", 256: "0"}, spinners=1),
)
NAMES = tuple(case.name for case in CASES)


@dataclass(frozen=True)
class Site:
    """A running server. `options`: those of `clientlab run` for such a server."""

    url: str
    options: Sequence[str]
    ca_file: str = ""


class Cell(NamedTuple):
    """A row of the benchmark. `text`: its ratio in the Markdown table.

    There, a dash means not ranked, and brackets mean unmeasurable.
    """

    row: BenchmarkRow
    text: str


def rows(names: Sequence[str], markdown: Path | None) -> Iterator[BenchmarkRow]:
    """Yield a row for each cell of these cases, and write all of them as a table."""
    durations = " | ".join(f"-d {duration}s" for duration in DURATIONS)
    table = [f"| case | c | {durations} |"]
    table.append("| --- | ---: |" + " ---: |" * len(DURATIONS))
    for case in CASES:
        if case.name not in names:
            continue
        for concurrency in case.waits:
            quiet = measure(case, concurrency, "quiet", case.spinners)
            yield from (cell.row for cell in quiet)
            busy = measure(case, concurrency, "busy core", case.spinners + 1)
            yield from (cell.row for cell in busy)
            pairs = zip(quiet, busy, strict=True)
            texts = " | ".join(f"{one.text} · {other.text}" for one, other in pairs)
            table.append(f"| {case.name} | {concurrency} | {texts} |")
            if markdown is not None:
                markdown.write_text("\n".join(table) + "\n")


def measure(case: Case, concurrency: int, place: str, spinners: int) -> list[Cell]:
    """Return the cells of all durations. `place`: what rows call so many spinners."""
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(_serve(case, concurrency))
        for _ in range(spinners):
            stack.enter_context(_start([sys.executable, "-c", SPIN]))
        loops = [_measure_loop(case, concurrency, site)]
        runs = {}
        for duration in DURATIONS:
            runs[duration] = _run_lab(case, concurrency, site, duration)
            if duration > 1:  # a loop takes longer than a second
                loops.append(_measure_loop(case, concurrency, site))
    cells = []
    for duration, run in runs.items():
        name = f"{case.name}, c={concurrency}, {place}, -d {duration}s"
        cells.append(judge(name, run, loops))
    return cells


def judge(name: str, run: Run, loops: Sequence[float]) -> Cell:
    """Return the ratio of the rate of a run's only trial and the mean of the loops.

    It is unmeasurable if the loops differ by more than 5 %, and the rate is right for
    one of them, or between them.
    """
    rate = run.trials[0].figures.requests_per_second or 0.0
    loop = fmean(loops)
    ratio = rate / loop
    low = rate / max(loops)
    high = rate / min(loops)
    is_right = abs(ratio - 1) <= MOST_WRONG
    may_be_right = low <= 1 + MOST_WRONG and high >= 1 - MOST_WRONG
    loop_spread = (max(loops) - min(loops)) / loop
    outcome = "ranked"
    text = f"{ratio:.2f}"
    if (refusal := find_refusal(run)) is not None:
        outcome = f"not ranked: {refusal}"
        text = "–"
    elif not is_right and may_be_right and loop_spread > MOST_WRONG:
        outcome = f"unmeasurable: the loop varies by {loop_spread:.0%}"
        text = f"({text})"
    row = BenchmarkRow(
        name=f"{name}, loop {loop:.0f}/s: {outcome}",
        value=ratio,
        low=low,
        high=high,
        spread=f"by each of {len(loops)} loops",
        target=f"within {MOST_WRONG:.0%}",
        met=is_right or outcome != "ranked",
    )
    return Cell(row, text)


def find_refusal(run: Run) -> str | None:
    """Return why the lab does not rank the only arm of a run; None if it does."""
    return shortfall(run.trials)


@contextlib.contextmanager
def _serve(case: Case, concurrency: int) -> Iterator[Site]:
    """Run the server of a case. The lab starts another one if it is an upstream."""
    wait = case.waits[concurrency]
    if case.server:
        words = ["-m", "benchmarks.slow_servers", *case.server.split(), *wait.split()]
        with _start([sys.executable, *words]) as server:
            port = int((server.stdout or sys.stdin.buffer).readline())
            url = f"http://127.0.0.1:{port}/"
            yield Site(url, ["--url", url])
        return
    workers = choose_workers(concurrency)
    with (
        tempfile.TemporaryDirectory() as logs,
        LocalTestbed([case.upstream], [case.route], Path(logs), workers) as testbed,
    ):
        testbed.serve(case.upstream)
        address = testbed.address(case.upstream, case.route)
        options = ["--upstream", case.upstream, "--route", case.route]
        options += ["--delay", f"{wait}s"]
        url = f"{address.url}/?delay={wait}"
        yield Site(url, options, address.ca_file or "")


@contextlib.contextmanager
def _start(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = child_processes.start(command, None, os.environ, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        child_processes.stop(process, patience=5)


def _measure_loop(case: Case, concurrency: int, site: Site) -> float:
    """Return the requests per second of a continuous loop in a fresh process."""
    client = case.strategy.partition("@")[0]
    pool = case.pool or concurrency
    numbers = [concurrency, pool, case.warm_up, LOOP_SECONDS]
    words = [client, site.url, site.ca_file, *map(str, numbers)]
    return float(_read_output("benchmarks.continuous_loops", words))


def _run_lab(case: Case, concurrency: int, site: Site, duration: int) -> Run:
    """Return a run of the lab. Raise SystemExit if it fails, or has errors."""
    with tempfile.TemporaryDirectory() as results:
        words = ["run", "-t", case.strategy, "-c", str(concurrency), *site.options]
        words += ["-d", f"{duration}s", "--rounds", "1"]
        words += ["--json", "--out", results]
        run = Run.model_validate_json(_read_output("clientlab", words))
    for trial in run.trials:
        if trial.figures.errors:
            raise SystemExit(f"{case.name}: {trial.figures.error_examples}")
    return run


def _read_output(module: str, words: Sequence[str]) -> str:
    command = [sys.executable, "-m", module, *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: {ended.stderr}")
    return ended.stdout
