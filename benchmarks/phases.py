"""`--phases`: how far the phases that libraries report are from those of a slow server, and what recording costs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.figures import BenchmarkRow, ratio
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.phases import PhaseName
from clientlab.results.store import Store

_STRATEGIES = (
    "aiohttp", "httpx-async", "httpx2-async", "httpx-client", "httpx2-client", "requests-session", "urllib3", "pycurl",
    "curl-cffi",
)  # fmt: skip
_PLANNED: dict[PhaseName, float] = {"first_byte": 0.02, "body": 0.03}
"""Seconds."""
_MOST_ERROR = 1.0
"""Milliseconds."""
_RUNS = 5


def rows() -> Iterator[BenchmarkRow]:
    """Rows of each phase and library, then of each library's rate while it is observed."""
    with tempfile.TemporaryDirectory() as folder:
        slow = "--delay", "20ms", "--fault", "stall-body=30ms:100%"
        runs = [_run(Path(folder) / f"slow-{number}", "-n", "50", *slow) for number in range(_RUNS)]
        for phase, planned in _PLANNED.items():
            for place, name in enumerate(_STRATEGIES):
                yield _error(f"{name}: median {phase}", [run.phases[place].phases[phase].p50 - planned for run in runs])
        runs = [_run(Path(folder) / f"quick-{number}", "-n", "2000") for number in range(_RUNS)]
        for place, name in enumerate(_STRATEGIES):
            yield ratio(f"{name}: rate while phases are recorded", [_rate_kept(run, place) for run in runs])


def _run(folder: Path, *words: str) -> Run:
    strategies = [word for name in _STRATEGIES for word in ("-t", name)]
    command = [sys.executable, "-m", "clientlab", "run", *strategies, *words, "-c", "1", "--rounds", "1", "--phases"]
    subprocess.run([*command, "--out", str(folder)], check=True, capture_output=True)
    return Store(folder).read("last")


def _error(name: str, errors: list[float]) -> BenchmarkRow:
    """How much longer than planned, in milliseconds."""
    found = [1000 * error for error in errors]
    met = abs(median(found)) <= _MOST_ERROR
    target = f"±{_MOST_ERROR:g}"
    return BenchmarkRow(name, median(found), min(found), max(found), f"range of {_RUNS}", target, met, "ms off")


def _rate_kept(run: Run, place: int) -> float:
    observed = run.phases[place]
    rate = BY_KEY["throughput"].over_rounds(run.trials_of(observed.arm))
    if rate is None or observed.requests_per_second is None:
        raise ValueError(f"{observed.arm} has no rate")
    return observed.requests_per_second / rate
