"""`clientlab history`: how often it finds a change that is there, how often one that is not, and how long it takes.

Histories are drawn: 20 runs of five rounds and five figures, in which a run as a whole varies, an arm in a run, and a
round. The planted change is 10 % of the CPU time of one arm from the eleventh run on.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.figures import BenchmarkRow
from benchmarks.large_run import large_run
from benchmarks.truth.shares import false, without_target
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.judging.history import LineHistory, history_of
from clientlab.judging.history_lines import HistoryLine, PastRun, figures_with
from clientlab.results.document import Run
from clientlab.results.store import Store
from clientlab.results.surroundings import surroundings
from clientlab.results.target import Target
from clientlab.results.trial import Trial
from clientlab.running.execute import new_run
from clientlab.workload.workload import Workload

_STRATEGIES = (
    "requests", "requests-session", "httpx-client", "urllib3", "aiohttp@workers", "http.client", "pycurl",
    "httpx-async@workers", "httpx", "requests-session@threads", "urllib3@threads", "pycurl@threads",
    "httpx-client@threads", "http.client@threads", "aiohttp@semaphore", "aiohttp@unbounded",
)  # fmt: skip
_FIGURES = ("throughput", "p50", "p99", "cpu", "memory")
_CHANGED = _FIGURES.index("cpu")
RUNS, ROUNDS = 20, 5
PLANTED = 1.1
_HISTORIES = 100
_NEAR = 2
"""A change counts as found if it is so many runs off at most."""
_LEAST_FOUND = 90.0
_ARMS = (1, 4, 16)
_TIMED_RUNS, _TIMED_ARMS, _MOST_SECONDS = 100, 16, 3.0

Values = npt.NDArray[np.float64]
Draw = np.random.Generator
Noise = Callable[[Draw, tuple[int, ...]], Values]


def _normal(draw: Draw, shape: tuple[int, ...]) -> Values:
    return draw.normal(0, 1, shape)


def _heavy(draw: Draw, shape: tuple[int, ...]) -> Values:
    return np.asarray(draw.standard_t(3, shape) / np.sqrt(3))


NOISES: dict[str, Noise] = {"normal": _normal, "heavy tails": _heavy}
_SPREADS = {"a quiet machine": (0.02, 0.01, 0.02), "a busy machine": (0.05, 0.02, 0.03)}
"""Standard deviations of logarithms: of a run as a whole, of an arm in a run, of a round."""


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """The time of 100 runs. Then, for each number of arms, machine and kind of noise, both rates."""
    yield _timed(seed)
    every: list[bool] = []
    for arms, (machine, spreads), (name, noise) in itertools.product(_ARMS, _SPREADS.items(), NOISES.items()):
        draw = np.random.default_rng([seed, arms, len(name), len(machine)])
        equal, changed = [], []
        for _ in range(_HISTORIES):
            logs = _drawn(draw, noise, arms, spreads)
            equal.append(bool(_history(logs).changed_at))
            logs[0, _CHANGED, RUNS // 2 :] += np.log(PLANTED)
            changed.append(_finds(_history(logs)))
        where = f"{arms} arm{'' if arms == 1 else 's'}, {name}, {machine}"
        yield without_target(f"a change in equal histories, {where}", np.array(equal))
        yield _found(f"a planted change of 10 % is found, {where}", np.array(changed), busy=spreads[0] > 0.02)
        every += equal
    yield false("a change in equal histories, all of them", np.array(every))


def _found(name: str, hits: npt.NDArray[np.bool_], *, busy: bool) -> BenchmarkRow:
    """With few arms on a busy machine, runs differ by as much as the change: then there is nothing to reach."""
    row = without_target(name, hits)
    if busy and "16 arms" not in name:
        return row
    return BenchmarkRow(
        row.name,
        row.value,
        row.low,
        row.high,
        row.spread,
        f">= {_LEAST_FOUND:g} %",
        row.value >= _LEAST_FOUND,
        row.unit,
    )


def _drawn(draw: Draw, noise: Noise, arms: int, spreads: tuple[float, float, float]) -> Values:
    """Logarithms of figures, shaped (arms, figures, runs, rounds)."""
    day, own, round_ = spreads
    shape = (arms, len(_FIGURES), RUNS, ROUNDS)
    return day * noise(draw, (1, *shape[1:3], 1)) + own * noise(draw, (*shape[:3], 1)) + round_ * noise(draw, shape)


def _history(logs: Values) -> LineHistory:
    base = _planned(len(logs))
    names = [arm.name for arm in base.experiment.arms]
    values = np.exp(logs)
    runs = [
        PastRun(base, {(name, key): tuple(values[arm, figure, run])
                       for arm, name in enumerate(names) for figure, key in enumerate(_FIGURES)})
        for run in range(logs.shape[2])
    ]  # fmt: skip
    return history_of(HistoryLine(runs), figures_with(()))


_plans: dict[int, Run] = {}


def _planned(arms: int) -> Run:
    """A run of so many arms without a trial."""
    if arms not in _plans:
        experiment = Experiment(
            name="history", question="Since when?", strategies=list(_STRATEGIES[:arms]), rounds=ROUNDS,
            workloads={"workload": WorkloadTable(first=Workload(requests=1000))},
        )  # fmt: skip
        _plans[arms] = new_run("history", make_plan(experiment), Target(testbed="local"), surroundings([], {}))
    return _plans[arms]


def _finds(found: LineHistory) -> bool:
    arm = found.line.arms[0]
    steps = [step for track in found.tracks if (track.arm, track.figure.key) == (arm, "cpu") for step in track.steps]
    return any(abs(step.at - RUNS // 2) <= _NEAR and step.worse for step in steps)


def _timed(seed: int) -> BenchmarkRow:
    """Seconds of the command, from its start to its end, for run files with all that a real run writes."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), seed)
        found = []
        for _ in range(5):
            begin = time.perf_counter()
            command = [sys.executable, "-m", "clientlab", "history", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            found.append(time.perf_counter() - begin)
    return BenchmarkRow(
        f"history of {_TIMED_RUNS} runs of {_TIMED_ARMS} arms and {ROUNDS} rounds", min(found), min(found), max(found),
        f"range of {len(found)}", f"<= {_MOST_SECONDS:g} s", met=min(found) <= _MOST_SECONDS, unit="s",
    )  # fmt: skip


def _write(folder: Path, seed: int) -> None:
    """Runs that are drawn trial by trial from those of a large one."""
    store, draw = Store(folder), np.random.default_rng(seed)
    drawn = large_run("history", seed).trials[:ROUNDS]
    base = _planned(_TIMED_ARMS)
    for number in range(_TIMED_RUNS):
        trials: list[Trial] = []
        for arm in base.experiment.arms:
            for index, trial in enumerate(drawn, start=1):
                pace = float(np.exp(draw.normal(0, 0.02)))
                wall, rate, spent = (
                    trial.wall_seconds or 1.0,
                    trial.requests_per_second or 1.0,
                    trial.cpu_seconds or 1.0,
                )
                place = {"arm": arm.name, "strategy": arm.strategy, "upstream": arm.upstream, "route": arm.route}
                figures = {"wall_seconds": wall * pace, "requests_per_second": rate / pace, "cpu_seconds": spent * pace}
                order = {"round": index, "order": len(trials), "proxy_use": None}
                trials.append(trial.model_copy(update={**place, **figures, **order}))
        begun = f"2026-{1 + number // 28:02}-{1 + number % 28:02}T02:00:00.000+00:00"
        run = base.model_copy(update={"run": f"run-{number:03}", "created": begun, "status": "done", "trials": trials})
        store.claim(run.run)
        store.save(run)
