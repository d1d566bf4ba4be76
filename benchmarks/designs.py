"""How a run's time is best divided: whole trials, short ones, and slices by turns, each for the same wall time.

Five arms do the same work, two of them alike, and the others slower by a known CPU time for each request. A design is
judged by the width of the intervals, and by what it finds.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.figures import BenchmarkRow
from clientlab import strategies
from clientlab.analysis.decisions import decision_of
from clientlab.judging.ranking import ranked
from clientlab.results.document import Run
from clientlab.results.figures import cost_of
from clientlab.results.store import Store
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import workers_for

SECONDS = 30.0
"""Wall time of each run."""

SLOWER = (0.05, 0.1, 0.2)

_FILE = """
from time import perf_counter

from {module} import {base} as Base


def slowed(seconds):
    class Slowed(Base):
        {is_async}def send(self, request):
            answer = {wait}super().send(request)
            until = perf_counter() + seconds
            while perf_counter() < until:
                pass
            return answer

    return Slowed


{classes}
"""


@dataclass(frozen=True)
class Kind:
    """An executor with a client. `parallel`: of its requests that use CPU time, so many do at once."""

    client: str
    executor: str
    concurrency: int
    parallel: int = 1


KINDS = (
    Kind("requests-session", "serial", 1),
    Kind("requests-session", "threads", 8),
    Kind("aiohttp", "workers", 16),
    Kind("requests-session", "processes", 4, parallel=2),
)


@dataclass(frozen=True)
class Design:
    """Trials of so many seconds, each in so many slices."""

    seconds: float
    slices: int

    def __str__(self) -> str:
        one = f"trials of {self.seconds:g} s"
        return one if self.slices == 1 else f"{one} in {self.slices} slices"


DESIGNS = (Design(0.8, 1), Design(0.2, 1), Design(0.25, 5), Design(0.4, 8), Design(0.8, 16), Design(1.6, 8))


def rows() -> Iterator[BenchmarkRow]:
    """For each kind and design: half-width of the intervals, rounds, and which arms were decided rightly."""
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as name,
        LocalTestbed(["aiohttp"], ["direct"], Path(name) / "logs", workers_for(1)) as testbed,
    ):
        lab = _DesignLab(Path(name), testbed.base_url("aiohttp", "direct") + "/")
        for kind in KINDS:
            yield from _of_kind(lab, kind)
    low, high = sorted((load, os.getloadavg()[0]))
    yield BenchmarkRow("load average before all of it", load, low, high, "before and after", "none", met=True, unit="")


def _of_kind(lab: _DesignLab, kind: Kind) -> Iterator[BenchmarkRow]:
    with lab.clients(kind, seconds=0.0):
        cost = median(map(cost_of, lab.run(kind, Design(0.5, 1), arms=1, rounds=5).trials)) * kind.parallel
    with lab.clients(kind, seconds=cost):
        for design in DESIGNS:
            yield from _of_design(lab.run(kind, design), f"{kind.client}@{kind.executor}, {design}")


def _of_design(run: Run, about: str) -> Iterator[BenchmarkRow]:
    (table,) = ranked(run).values()
    ratios = {row.name.rpartition(":")[2].partition("@")[0]: row.ratio for row in table if row.ratio is not None}
    halves = [
        math.sqrt(one.high / one.low) - 1 for one in ratios.values() if one.low and one.high and one.low < one.high
    ]
    rounds = max(trial.round for trial in run.trials)
    if halves:
        yield BenchmarkRow(
            f"{about}: half of an interval", 100 * median(halves), 100 * min(halves), 100 * max(halves),
            f"range of {len(halves)}, {rounds} rounds", "none", met=True, unit="%",
        )  # fmt: skip
    words = {name: decision_of(one).word for name, one in ratios.items()}
    found = sum(words.get(f"Slower{index}") == "slower" for index in range(len(SLOWER)))
    false = sum(words.get(name) == "slower" for name in ("Same", "Alike"))
    yield BenchmarkRow(
        f"{about}: of 5, 10 and 20 % found; of two equal arms called slower: {false}", found, found, found,
        ", ".join(f"{name} {one.value:.3f}" for name, one in sorted(ratios.items())), "none", met=True, unit="arms",
    )  # fmt: skip


@dataclass(frozen=True)
class _DesignLab:
    """Runs against one server. `folder` takes the run files, and the file of the clients."""

    folder: Path
    url: str

    @contextmanager
    def clients(self, kind: Kind, seconds: float) -> Iterator[None]:
        """The file with two equal clients, and those that are slower by parts of so many seconds."""
        module, _, base = strategies.client_spec(kind.client).import_path.partition(":")
        costs = {"Same": 0.0, "Alike": 0.0} | {f"Slower{i}": share * seconds for i, share in enumerate(SLOWER)}
        is_async, wait = ("async ", "await ") if kind.executor == "workers" else ("", "")
        classes = "\n".join(f"class {name}(slowed({cost!r})):\n    pass\n" for name, cost in costs.items())
        text = _FILE.format(module=module, base=base, classes=classes, is_async=is_async, wait=wait)
        self._file.write_text(text, encoding="utf-8")
        yield

    @property
    def _file(self) -> Path:
        return self.folder / "slowed.py"

    def run(self, kind: Kind, design: Design, arms: int = 2 + len(SLOWER), rounds: int | None = None) -> Run:
        """Rounds for `SECONDS`, or as many as given. Raises SystemExit where it is not done."""
        names = ["Same", "Alike", *(f"Slower{index}" for index in range(len(SLOWER)))][:arms]
        command = [sys.executable, "-m", "clientlab", "run", "--url", self.url, "--out", str(self.folder / "results")]
        command += [word for name in names for word in ("-t", f"{self._file}:{name}@{kind.executor}")]
        command += ["-d", f"{design.seconds:g}s", "--slices", str(design.slices), "-c", str(kind.concurrency)]
        command += ["--rounds", str(rounds or 3)]
        if rounds is None:
            command += ["--until-precision", "0.01%", "--time-budget", f"{SECONDS:g}s"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"designs: exit code {ended.returncode}\n{ended.stderr}")
        store = Store(self.folder / "results")
        run = store.read("last")
        store.remove(run.run)
        return run
