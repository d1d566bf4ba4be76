"""What the lab adds: a strategy's wall time in the lab over the same loop written bare."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
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

REQUESTS = 5000
LIMIT = 1.02


def rows(url: str, rounds: int) -> Iterator[Row]:
    """A row a strategy. Each pair is two fresh processes, the first of them in turn."""
    for name in LOOPS:
        ratios = []
        for number in range(rounds):
            if number % 2:
                bare = bare_seconds(name, url)
                lab = lab_seconds(name, url)
            else:
                lab = lab_seconds(name, url)
                bare = bare_seconds(name, url)
            ratios.append(lab / bare)
        yield at_most(f"lab over bare loop, {name}, N={REQUESTS:,}", ratios, LIMIT)


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
