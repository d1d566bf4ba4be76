"""The search for a capacity, against upstreams whose capacity is known by construction: so many threads of one delay.

A thread of Flask's upstream holds a request for the delay and for its own work of about a millisecond, so the truth is
a little less than threads over delay. Arrivals are uniform.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import BenchmarkRow

_DELAY = 0.2
_SEARCHES = (8, 12, 16, 20, 24, 28, 32, 40, 48, 64)
"""Threads of the upstream."""

_WITHIN = 0.05
_ENOUGH = 9


def rows() -> Iterator[BenchmarkRow]:
    """A row for each search, and one of how many came within 5 % of the truth."""
    shares = []
    for threads in _SEARCHES:
        truth = threads / _DELAY
        run = _searched(threads)
        probes = len(run["probes"])
        share = _capacity(run) / truth
        shares.append(share)
        name = f"capacity of {threads} threads of {_DELAY:g} s, {probes} probes"
        yield BenchmarkRow(name, share, share, share, "found over true", "none", met=True, unit="x")
    good = sum(abs(share - 1) <= _WITHIN for share in shares)
    yield BenchmarkRow(
        f"searches within {100 * _WITHIN:g} % of the truth, of {len(shares)}", good, min(shares), max(shares),
        "range of found over true", f">= {_ENOUGH}", good >= _ENOUGH, "searches",
    )  # fmt: skip


def _capacity(run: dict[str, Any]) -> float:
    """The capacity of the only arm in the only round; 0 where it held no rate."""
    return next((trial["search"]["capacity_per_second"] for trial in run["trials"]), 0.0)


def _searched(threads: int) -> dict[str, Any]:
    """The run document of a search in one round. Raises SystemExit where the run failed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "clientlab", "run", "-t", "aiohttp@workers", "-c", "128", "--rounds", "1",
            "--upstream", f"flask?workers=1&threads={threads}", "--delay", f"{_DELAY:g}s",
            "--find-max", "p99<500ms,errors<0.1%", "--out", str(Path(folder) / "runs"),
            "--json",
        ]  # fmt: skip
        called = subprocess.run(command, capture_output=True, text=True, check=False)
    if called.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {called.returncode}\n{called.stderr}")
    found: dict[str, Any] = json.loads(called.stdout)
    return found
