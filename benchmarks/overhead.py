"""What the lab adds: a strategy's wall time in the lab over the same loop written bare."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks import bare_loops
from benchmarks.figures import BenchmarkRow, at_most
from benchmarks.trials import Site
from clientlab import strategies

REQUESTS = 3000
LIMIT = 1.03
SECONDS_IN_ALL = 660.0
"""Shared out among the clients: those that are slow get fewer rounds, and `FEWEST_ROUNDS` at least."""

FEWEST_ROUNDS, MOST_TIMES = 3, 3
"""Where the interval holds the limit, so many times the rounds and the seconds at most."""

SECONDS_A_ROUND = 2.0
"""Of one fresh process, which sends all requests in the lab and bare once at least."""


def rows(plain: Site, secure: Site, rounds: int, clients: Sequence[str] = ()) -> Iterator[BenchmarkRow]:
    """A row for each client, of those named or of all. Each round is a fresh process, the lab first in every other.

    Raises SystemExit if a round fails.
    """
    measured = bare_loops.strategies()
    for client in (name for name in measured if not clients or name in clients):
        name = measured[client]
        ratios = _ratios(
            name, secure if bare_loops.is_secure(client) else plain, rounds, SECONDS_IN_ALL / len(measured)
        )
        other = "bare loop" if bare_loops.has_loop(client) else "its client alone"
        concurrency = strategies.find(name).concurrency
        flights = "" if concurrency == 1 else f", c={concurrency}"
        yield at_most(f"lab over {other}, {name}, N={REQUESTS:,}{flights}", ratios, LIMIT)


def _ratios(name: str, site: Site, rounds: int, seconds: float) -> list[float]:
    """As many as are asked for or fit into the time; more of both while the interval holds the limit."""
    ratios: list[float] = []
    began, times = time.monotonic(), 1
    while len(ratios) < FEWEST_ROUNDS or (
        len(ratios) < times * rounds and time.monotonic() < began + times * seconds
    ):  # fmt: skip
        ratios.append(_round(name, site, "lab" if len(ratios) % 2 == 0 else "bare"))
        row = at_most(name, ratios, LIMIT)
        times = MOST_TIMES if row.low <= LIMIT <= row.high else 1
    return ratios


def _round(name: str, site: Site, first: str) -> float:
    """Wall time in the lab over that of the bare loop."""
    command = [sys.executable, "-m", "benchmarks.in_turn", name, site.url, str(REQUESTS), str(SECONDS_A_ROUND), first]
    command += [site.ca_file] if site.ca_file is not None else []
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"overhead: {name}: {ended.stderr}")
    return float(ended.stdout)
