"""What the lab adds: a strategy's wall time in the lab over the same loop written bare."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.bare_loops import LOOPS, SECURE, WARM_UP
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

FEWEST_ROUNDS, MOST_TIMES = 3, 3
"""Where the interval holds the limit, so many times the rounds and the seconds at most."""


@dataclass(frozen=True)
class Site:
    """Where an upstream is reached; `ca_file` with TLS."""

    url: str
    ca_file: str | None = None


def rows(plain: Site, secure: Site, rounds: int, clients: Sequence[str] = ()) -> Iterator[Row]:
    """A row a client, of those named or of all. Each pair is two fresh processes, the first of them in turn.

    Raises SystemExit where a client that is a library has no bare loop.
    """
    wanted = clients or [name for name, row in strategies.CLIENTS.items() if not row.program]
    chosen = {name: strategies.find(name) for name in (*LOOPS, *SECURE)}
    if missing := sorted(set(wanted) - {strategy.client for strategy in chosen.values()}):
        raise SystemExit(f"overhead: no bare loop of {', '.join(missing)}; write it, and its row in bare_loops.py")
    for name in (name for name, strategy in chosen.items() if strategy.client in wanted):
        ratios = _ratios(name, secure if name in SECURE else plain, rounds)
        flights = "" if chosen[name].concurrency == 1 else f", c={chosen[name].concurrency}"
        yield at_most(f"lab over bare loop, {name}, N={REQUESTS:,}{flights}", ratios, LIMIT)


def _ratios(name: str, site: Site, rounds: int) -> list[float]:
    """As many as are asked for or fit into the time; more of both while the interval holds the limit."""
    ratios: list[float] = []
    began, seconds = time.monotonic(), SECONDS_IN_ALL / (len(LOOPS) + len(SECURE))
    times = 1
    while len(ratios) < FEWEST_ROUNDS or (
        len(ratios) < times * rounds and time.monotonic() < began + times * seconds
    ):  # fmt: skip
        ratios.append(_pair(name, site, lab_first=len(ratios) % 2 == 0))
        row = at_most(name, ratios, LIMIT)
        times = MOST_TIMES if row.low <= LIMIT <= row.high else 1
    return ratios


def _pair(name: str, site: Site, *, lab_first: bool) -> float:
    """Wall time in the lab over that of the bare loop."""
    if lab_first:
        lab = lab_seconds(name, site)
        return lab / bare_seconds(name, site)
    bare = bare_seconds(name, site)
    return lab_seconds(name, site) / bare


def lab_seconds(strategy: str, site: Site) -> float:
    """Wall seconds of one trial."""
    return lab_trial(strategy, site, REQUESTS)[0]


def lab_trial(strategy: str, site: Site, requests: int) -> tuple[float, int]:
    """Wall seconds and peak memory in bytes of one trial."""
    outcome = outcome_of(strategy, site, Workload(requests=requests, warmup=WARM_UP))
    return outcome.wall_seconds, outcome.peak_rss_bytes


def outcome_of(strategy: str, site: Site, workload: Workload) -> Outcome:
    """One trial in the lab. Raises SystemExit where a request failed: that is another workload."""
    with tempfile.TemporaryDirectory() as folder:
        address = Address(urlsplit(site.url).port or 80)
        bench = TrialBench(strategies.find(strategy), workload, site.url, folder, address, site.ca_file)
        outcome = run_trial(bench, samples.Tail(Path(folder)).finished, _nothing, _nothing)
        if errors := samples.read(Path(folder), outcome.began).errors:
            raise SystemExit(f"{strategy}: {errors}")
    return outcome


def bare_seconds(strategy: str, site: Site) -> float:
    """Seconds of one bare loop."""
    command = [sys.executable, "-m", "benchmarks.bare_loops", strategy, site.url, str(REQUESTS)]
    command += [site.ca_file] if site.ca_file is not None else []
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _nothing() -> None:
    """Nothing is read off the servers."""
