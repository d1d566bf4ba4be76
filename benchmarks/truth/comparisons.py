"""How often a comparison of two runs of identical code calls some figure of some arm changed.

No row has drift from round to round: two runs at different times meet different states of the machine, and no
interval of a comparison includes that (docs/comparing-runs.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.noise import MODELS, Floats
from benchmarks.truth.shares import false, without_target
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.judging.comparison import Comparison, compare
from clientlab.results.document import Run
from clientlab.results.surroundings import surroundings
from clientlab.results.target import Target
from clientlab.results.times import Quantiles
from clientlab.results.trial import Trial
from clientlab.running.execute import new_run
from clientlab.workload.workload import Workload

STRATEGIES = (
    "requests", "requests-session", "httpx-client", "urllib3", "aiohttp@workers", "http.client", "pycurl",
    "httpx-async@workers",
)  # fmt: skip
REQUESTS = 1000
_TABLES = 400
_FIGURES = ("wall", "p50", "p99", "cpu", "memory", "connections")
_P99 = 5.0
"""How many times as much p99 varies as wall time: by 15 %."""
_NAMES = ("clean", "heavy tails", "outliers in one arm", "outliers in all arms", "unequal spreads")


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """A row for each model of noise, number of arms and rounds; and how often real changes are seen."""
    for name in _NAMES:
        for arms in (1, 8):
            for rounds in (3, 5, 10):
                draw = np.random.default_rng([seed, arms, rounds])
                logs = MODELS[name](draw, (_TABLES, arms * len(_FIGURES), 2 * rounds))
                wrong = np.array([calls_a_change(compared(table, arms)) for table in logs])
                yield false(f"identical runs differ, {arms} arms, {name}, {rounds} rounds", wrong)
    for rounds in (5, 10, 20):
        for slower in (1.2, 1.5, 2.0):
            logs = MODELS["clean"](np.random.default_rng([seed, rounds]), (_TABLES, len(_FIGURES), 2 * rounds))
            logs[:, _FIGURES.index("p99"), rounds:] += np.log(slower) / _P99
            seen = np.array([compared(table, 1).others[0].changes[STRATEGIES[0]]["p99"].verdict == "worse"
                             for table in logs])  # fmt: skip
            yield without_target(f"p99 that is {slower:g} times as long is seen, varies by 15 %, {rounds} rounds", seen)


def compared(logs: Floats, arms: int) -> Comparison:
    """Two drawn runs, compared. Shape of the logarithms: (arms · figures, rounds of both runs)."""
    rounds = logs.shape[1] // 2
    values = np.exp(logs).reshape(arms, len(_FIGURES), 2, rounds)
    before, after = (drawn_run(values[:, :, side], _FIGURES, side) for side in (0, 1))
    return compare(before, [after])


def calls_a_change(comparison: Comparison) -> bool:
    """Whether the table says of any figure that it changed."""
    changes = (change for one in comparison.others for by_key in one.changes.values() for change in by_key.values())
    return any(change.verdict in {"better", "worse"} for change in changes)


def drawn_run(values: Floats, figures: Sequence[str], side: int = 0) -> Run:
    """A run of (arms, figures, rounds) values around 1; figures that are not named are constant."""
    strategies = STRATEGIES[: len(values)]
    experiment = Experiment(
        name="drawn", question="Did it change?", strategies=list(strategies), upstreams=["aiohttp"],
        routes=["direct"], rounds=values.shape[2],
        workloads={"workload": WorkloadTable(first=Workload(requests=REQUESTS))},
    )  # fmt: skip
    run = new_run(f"drawn-{side}", make_plan(experiment), Target(testbed="local"), _SURROUNDINGS)
    trials = [
        _trial(arm.name, arm.strategy, number, dict(zip(figures, values[place, :, number - 1].tolist(), strict=True)))
        for place, arm in enumerate(run.experiment.arms)
        for number in range(1, values.shape[2] + 1)
    ]
    return run.model_copy(update={"trials": trials, "status": "done"})


def _trial(arm: str, strategy: str, number: int, figures: dict[str, float]) -> Trial:
    found = dict.fromkeys(_FIGURES, 1.0) | figures
    wall, p50, p99 = found["wall"], 0.002 * found["p50"], 0.009 * found["p99"] ** _P99
    return Trial(
        arm=arm, strategy=strategy, upstream="aiohttp", route="direct", workload="workload", round=number, order=0,
        concurrency=1, status="done", started="2024-05-06T07:08:09+00:00", wall_seconds=wall, requests=REQUESTS,
        requests_per_second=REQUESTS / wall, cpu_seconds=0.5 * found["cpu"],
        peak_rss_bytes=int((32 << 20) * found["memory"]), connections_opened=int(100 * found["connections"]),
        latency_seconds=Quantiles(mean=p50, p50=p50, p90=p50, p95=p99, p99=p99, p999=p99, max=p99, at_least=[]),
    )  # fmt: skip


_SURROUNDINGS = surroundings([], {})
