"""What the lab adds: a strategy's wall time in the lab over the same loop written bare."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.bare_loops import LOOPS, WARM_UP
from benchmarks.figures import Row, at_most
from clientlab import strategies
from clientlab.analysis import samples
from clientlab.measuring.connections import Address
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.trial import Outcome, run_trial
from clientlab.workload import Workload

REQUESTS = 3000
LIMIT = 1.03
SECONDS_IN_ALL = 660.0
"""Shared out among the clients: those that are slow get fewer rounds, and `FEWEST_ROUNDS` at least."""

FEWEST_ROUNDS = 3


def rows(url: str, rounds: int, clients: Sequence[str] = ()) -> Iterator[Row]:
    """A row a client, of those named or of all. Each pair is two fresh processes, the first of them in turn."""
    chosen = {name: strategies.find(name) for name in LOOPS}
    chosen = {name: strategy for name, strategy in chosen.items() if strategy.client in (clients or strategies.CLIENTS)}
    for client in sorted(set(clients or strategies.CLIENTS) - {strategy.client for strategy in chosen.values()}):
        print(f"overhead: {client} is left out, it has no bare loop", file=sys.stderr)
    for name in chosen:
        ratios: list[float] = []
        end = time.monotonic() + SECONDS_IN_ALL / len(LOOPS)
        while len(ratios) < FEWEST_ROUNDS or (len(ratios) < rounds and time.monotonic() < end):
            ratios.append(_pair(name, url, lab_first=len(ratios) % 2 == 0))
        flights = "" if chosen[name].concurrency == 1 else f", c={chosen[name].concurrency}"
        yield at_most(f"lab over bare loop, {name}, N={REQUESTS:,}{flights}", ratios, LIMIT)


def _pair(name: str, url: str, *, lab_first: bool) -> float:
    """Wall time in the lab over that of the bare loop."""
    if lab_first:
        lab = lab_seconds(name, url)
        return lab / bare_seconds(name, url)
    bare = bare_seconds(name, url)
    return lab_seconds(name, url) / bare


def lab_seconds(strategy: str, url: str, requests: int = REQUESTS) -> float:
    """Wall seconds of one trial."""
    return lab_trial(strategy, url, requests)[0]


def lab_trial(strategy: str, url: str, requests: int) -> tuple[float, int]:
    """Wall seconds and peak memory in bytes of one trial."""
    outcome = outcome_of(strategy, url, Workload(requests=requests, warmup=WARM_UP))
    return outcome.wall_seconds, outcome.peak_rss_bytes


def outcome_of(strategy: str, url: str, workload: Workload) -> Outcome:
    """One trial in the lab. Raises SystemExit where a request failed: that is another workload."""
    with tempfile.TemporaryDirectory() as folder:
        address = Address(urlsplit(url).port or 80)
        bench = TrialBench(strategies.find(strategy), workload, url, folder, address)
        outcome = run_trial(bench, samples.Tail(Path(folder)).finished, _nothing, _nothing)
        if errors := samples.read(Path(folder), outcome.began).errors:
            raise SystemExit(f"{strategy}: {errors}")
    return outcome


def bare_seconds(strategy: str, url: str) -> float:
    """Seconds of one bare loop."""
    command = [sys.executable, "-m", "benchmarks.bare_loops", strategy, url, str(REQUESTS)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _nothing() -> None:
    """Nothing is read off the servers."""
