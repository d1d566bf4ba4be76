"""Environments as arms: intervals of two equal ones, a library that is slower by 5 %, and the set-up of an environment.

Two environments are equal if the same packages were installed into two folders: the lab refuses one folder under two
names. Each run is a `clientlab run` with two ``--env``. One upstream serves all runs.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.environment_folders import SlowedLibrary, install, set_up_rows
from benchmarks.figures import BenchmarkRow
from benchmarks.truth.shares import covered, without_target
from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.judging.contrasts import Contrast, contrasts, environment_pairs
from clientlab.results.document import Run
from clientlab.results.figures import cost_of
from clientlab.results.store import Store
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import workers_for

STRATEGY = "requests-session"
_EQUAL_SECONDS, _EQUAL_ROUNDS = 0.3, 5
_SLOWED_SECONDS, _SLOWED_ROUNDS, _SLOWED_RUNS, _FOUND = 5.0, 10, 10, 9
"""With trials of 1 s, two equal environments differ by 7 % in a round on a virtual machine, with 4 s by 4 %."""
SLOWED = 1 / 0.95
"""Time per request over that of the released library, if requests per second fall by 5 %."""

_TOLERANCE = 0.01
"""The ratio over all rounds may differ so much from `SLOWED`."""


@dataclass(frozen=True)
class _Lab:
    """Runs in two environments. `folder` takes the run files."""

    folder: Path
    url: str

    def run(self, environments: dict[str, Path], seconds: float, rounds: int, seed: int) -> Run:
        """A run with trials of so many seconds. Raises SystemExit where it is not done."""
        command = [sys.executable, "-m", "clientlab", "run", "-t", STRATEGY, "--url", self.url, "--seed", str(seed)]
        command += ["--duration", f"{seconds:g}s", "--rounds", str(rounds), "--out", str(self.folder)]
        command += [f"--env={name}={path}" for name, path in environments.items()]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"environments: exit code {ended.returncode}\n{ended.stderr}")
        store = Store(self.folder)
        run = store.read("last")
        store.remove(run.run)
        return run


def rows(runs: int) -> Iterator[BenchmarkRow]:
    """`runs` runs of two equal environments, then those of a slowed library, then the set-up."""
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as name,
        LocalTestbed(["aiohttp"], ["direct"], Path(name) / "logs", workers_for(1)) as testbed,
    ):
        folder = Path(name)
        lab = _Lab(folder / "results", testbed.base_url("aiohttp", "direct") + "/")
        equal = {name: install(folder / name) for name in ("first", "second")}
        yield from _of_equal(lab, equal, runs)
        yield from _of_slowed(lab, equal["first"], SlowedLibrary(folder / "slowed"))
    yield from set_up_rows()
    low, high = sorted((load, os.getloadavg()[0]))
    yield BenchmarkRow("load average before all of it", load, low, high, "before and after", "none", met=True, unit="")


def _of_equal(lab: _Lab, equal: dict[str, Path], runs: int) -> Iterator[BenchmarkRow]:
    """How many intervals hold 1, and how far the ratios are from it."""
    found = [_contrast(lab.run(equal, _EQUAL_SECONDS, _EQUAL_ROUNDS, seed)) for seed in range(1, runs + 1)]
    times, cpu = [_known(one.time) for one in found], [_known(one.cpu) for one in found]
    of_time, of_cpu = (np.array([_low(one) <= 1 <= _high(one) for one in ratios]) for ratios in (times, cpu))
    about = f"equal environments, {_EQUAL_ROUNDS} rounds of {_EQUAL_SECONDS:g} s"
    yield covered(f"{about}: both intervals hold 1", of_time & of_cpu)
    yield without_target(f"{about}: the interval of the time per request holds 1", of_time)
    yield without_target(f"{about}: the interval of the CPU time per request holds 1", of_cpu)
    yield _of_ratios(f"{about}: time per request", times)


def _of_slowed(lab: _Lab, released: Path, library: SlowedLibrary) -> Iterator[BenchmarkRow]:
    """How many runs find the slowed library, and the ratio over all their rounds."""
    trials = lab.run({"release": released}, _SLOWED_SECONDS, _SLOWED_ROUNDS, seed=1).trials
    seconds = (SLOWED - 1) * median(map(cost_of, trials))
    library.slow_down(seconds)
    pair, seeds = {"release": released, "slowed": library.folder}, range(11, 11 + _SLOWED_RUNS)
    runs = [lab.run(pair, _SLOWED_SECONDS, _SLOWED_ROUNDS, seed) for seed in seeds]
    whole = _over_all(runs)
    yield BenchmarkRow(
        f"library slowed by {1e6 * seconds:.0f} us a request: time per request", whole.value, _low(whole), _high(whole),
        f"{100 * whole.confidence:g} % of {whole.rounds} rounds", f"{SLOWED:.3f} ± {_TOLERANCE:g}",
        abs(whole.value - SLOWED) <= _TOLERANCE,
    )  # fmt: skip
    found = list(map(_contrast, runs))
    times, cpu = [_known(one.time) for one in found], [_known(one.cpu) for one in found]
    about = f"slowed library, {_SLOWED_ROUNDS} rounds of {_SLOWED_SECONDS:g} s"
    yield _of_ratios(f"{about}: time per request", times)
    yield _of_ratios(f"{about}: CPU time per request", cpu)
    yield _runs_of(f"{about}: the interval of the time per request is above 1", _above(times))
    yield _runs_of(f"{about}: the interval of the CPU time per request is above 1", _above(cpu))
    either = sum(_low(time) > 1 or _low(of_cpu) > 1 for time, of_cpu in zip(times, cpu, strict=True))
    yield _runs_of(f"{about}: one of both is above 1", either, target=f">= {_FOUND}", met=either >= _FOUND)


def _contrast(run: Run) -> Contrast:
    """The second environment of a run beside the first."""
    (found,) = contrasts(run, environment_pairs(run.experiment.arms))
    return found


def _over_all(runs: Sequence[Run]) -> Ratio:
    """The slowed library's time per request over the released one's, by the rounds of all runs."""
    times = {"release": dict[int, float](), "slowed": dict[int, float]()}
    for number, run in enumerate(runs):
        for trial in run.trials:
            times[str(trial.environment)][number * _SLOWED_ROUNDS + trial.round] = cost_of(trial)
    return _known(paired_ratio(times["slowed"], times["release"]))


def _known(ratio: Ratio | None) -> Ratio:
    """Raises SystemExit where no round has trials of both."""
    if ratio is None:
        raise SystemExit("environments: no round has trials of both environments without errors")
    return ratio


def _low(ratio: Ratio) -> float:
    return 0.0 if ratio.low is None else ratio.low


def _high(ratio: Ratio) -> float:
    return math.inf if ratio.high is None else ratio.high


def _above(ratios: Sequence[Ratio]) -> int:
    """How many intervals are above 1."""
    return sum(_low(one) > 1 for one in ratios)


def _of_ratios(name: str, ratios: Sequence[Ratio]) -> BenchmarkRow:
    values = [one.value for one in ratios]
    return BenchmarkRow(
        name, median(values), min(values), max(values), f"range of {len(values)} runs", "none", met=True
    )


def _runs_of(name: str, count: int, *, target: str = "none", met: bool = True) -> BenchmarkRow:
    return BenchmarkRow(name, count, count, count, f"of {_SLOWED_RUNS} runs", target, met, "runs")
