"""What the lab adds: a strategy's wall time in the lab over the same loop written bare."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.bare_loops import LOOPS, SECURE
from benchmarks.figures import Row, at_most
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


def rows(plain: Site, secure: Site, rounds: int, clients: Sequence[str] = ()) -> Iterator[Row]:
    """A row a client, of those named or of all. Each round is a fresh process, the lab first in every other.

    Raises SystemExit where a client that is a library has no bare loop, or a round fails.
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
