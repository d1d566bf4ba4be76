"""Every bundled experiment but the demo in its quick form: how long each takes, and what becomes of its claims."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator

from benchmarks.figures import BenchmarkRow
from clientlab.experiments.file import bundled

LIMIT = 300.0
EXPERIMENTS = tuple(name for name in bundled() if name != "demo")


def rows() -> Iterator[BenchmarkRow]:
    """A row an experiment, and one of all. Raises SystemExit where a run is not done."""
    took: list[float] = []
    verdicts: Counter[str] = Counter()
    for name in EXPERIMENTS:
        seconds, found = _run(name)
        took.append(seconds)
        verdicts += found
        yield BenchmarkRow(
            f"{name} --quick ({_said(found)})", seconds, seconds, seconds, "one run", "none", met=True, unit="s"
        )
    whole = sum(took)
    yield BenchmarkRow(f"all {len(took)} --quick ({_said(verdicts)})", whole, min(took), max(took), "range of them",
              f"<= {LIMIT:g}", whole <= LIMIT, "s")  # fmt: skip


def _run(name: str) -> tuple[float, Counter[str]]:
    """Seconds of the whole program, and how many claims got which verdict."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "clientlab", "run", name, "--quick", "--json", "--out", folder]
        began = time.perf_counter()
        called = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
    if called.returncode:
        raise SystemExit(f"{name} --quick: exit code {called.returncode}\n{called.stderr}")
    return seconds, Counter(claim["verdict"] for claim in json.loads(called.stdout)["claims"])


def _said(verdicts: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) or "no claims"
