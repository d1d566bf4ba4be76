"""What `report` and `compare` cost for runs of 200 trials and 1,000,000 requests: the whole program."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import BenchmarkRow
from benchmarks.large_run import REQUESTS, TRIALS, large_run
from clientlab.results.store import Store

SECONDS, BYTES = 3.0, 300 * 10**6
PAGE_BYTES = 2 * 10**6
"""Of the HTML report, which is sent by mail and opened on telephones."""
# By the process itself: what the system notes of a child begins with its parent's peak (getrusage(2)).
_PROGRAM = """
import re, resource, runpy, sys
try:
    runpy.run_module("clientlab", run_name="__main__", alter_sys=True)
finally:
    if sys.platform == "linux":
        peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak, file=sys.stderr)
"""
_COMMANDS = {
    "report": ("report", "large-1"),
    "report --csv --markdown --junit": (
        "report", "large-1", "--csv", "x.csv", "--markdown", "x.md", "--junit", "x.xml", "--fail-on", "p99 > 1s",
    ),
    "report --html": ("report", "large-1", "--html", "x.html"),
    "compare": ("compare", "large-1", "large-2", "--fail-on", "p99 +50%"),
    "runs (five such runs)": ("runs",),
}  # fmt: skip


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """Two rows a command: seconds and peak memory, the median and the range of so many calls."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "results")
        for number in range(1, 6):
            run = large_run(f"large-{number}", number)
            store.claim(run.run)
            store.save(run)
        size = store.find("large-1").stat().st_size / 1e6
        about = f"{TRIALS} trials, {TRIALS * REQUESTS:,} requests, {size:.1f} MB"
        for name, words in _COMMANDS.items():
            found = [_call(words, folder) for _ in range(rounds)]
            yield _row(f"{name}: time, {about}", [seconds for seconds, _ in found], SECONDS, "s")
            yield _row(f"{name}: peak memory", [peak / 1e6 for _, peak in found], BYTES / 1e6, "MB")
        page = Path(folder, "x.html").stat().st_size / 1e6
        yield BenchmarkRow(
            "report --html: the file",
            page,
            page,
            page,
            "one file",
            f"<= {PAGE_BYTES / 1e6:g}",
            page <= PAGE_BYTES / 1e6,
            "MB",
        )


def _row(name: str, found: list[float], most: float, unit: str) -> BenchmarkRow:
    middle = sorted(found)[len(found) // 2]
    spread = f"range of {len(found)} calls"
    return BenchmarkRow(name, middle, min(found), max(found), spread, f"<= {most:g}", middle <= most, unit)


def _call(words: tuple[str, ...], folder: str) -> tuple[float, int]:
    """Seconds and peak resident bytes of one call of the program; raises CalledProcessError where it failed."""
    began = time.perf_counter()
    called = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - began, int(called.stderr.split()[-1])
