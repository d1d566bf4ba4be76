"""What `report` and `compare` cost for runs of 200 trials and 1,000,000 requests: the whole program, time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Row
from benchmarks.large_run import REQUESTS, TRIALS, large_run
from clientlab.runs.store import Store

SECONDS, BYTES = 3.0, 300 * 10**6
_COMMANDS = {
    "report": ("report", "large-1"),
    "report --csv --markdown --junit": (
        "report", "large-1", "--csv", "x.csv", "--markdown", "x.md", "--junit", "x.xml", "--fail-on", "p99 > 1s",
    ),
    "compare": ("compare", "large-1", "large-2", "--fail-on", "p99 +50%"),
    "runs (five such runs)": ("runs",),
}  # fmt: skip


def rows(rounds: int) -> Iterator[Row]:
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


def _row(name: str, found: list[float], most: float, unit: str) -> Row:
    middle = sorted(found)[len(found) // 2]
    spread = f"range of {len(found)} calls"
    return Row(name, middle, min(found), max(found), spread, f"<= {most:g}", middle <= most, unit)


def _call(words: tuple[str, ...], folder: str) -> tuple[float, int]:
    """Seconds and peak resident bytes of one call of the program; raises CalledProcessError where it failed."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "clientlab", *words], cwd=folder, stdout=subprocess.DEVNULL) as called:
        _, status, usage = os.wait4(called.pid, 0)
        seconds = time.perf_counter() - began
        called.returncode = os.waitstatus_to_exitcode(status)
    if called.returncode:
        raise subprocess.CalledProcessError(called.returncode, words)
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
