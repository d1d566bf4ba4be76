"""What the lab states, checked by simulations whose truth is known, for each model of the noise between rounds.

The typical ratio of two simulated arms is 1. Outlying rounds of one arm do not change that: "typical" leaves them out.
No comparison of runs has drift from round to round, since two runs meet different states of the machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.figures import BenchmarkRow, covered, false, share
from clientlab.analysis.decisions import FEWEST_SEQUENTIAL_ROUNDS, SEQUENTIAL_CONFIDENCE, narrow_enough
from clientlab.analysis.ratios import CONFIDENCE, typical, typical_interval
from clientlab.analysis.simultaneous import compare_arms
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.judging.comparison import Comparison, compare
from clientlab.results.document import Run
from clientlab.results.surroundings import surroundings
from clientlab.results.target import Target
from clientlab.results.trial import Quantiles, Trial
from clientlab.running.execute import new_run
from clientlab.workload.delays import Delay
from clientlab.workload.load import arrivals_of
from clientlab.workload.seeds import in_round
from clientlab.workload.workload import Workload, delay_of

Floats = npt.NDArray[np.float64]
Draw = np.random.Generator
Shape = tuple[int, int, int]
"""Runs, arms, rounds."""
SPREAD, OFTEN = 0.03, 0.1
"""Standard deviation of an undisturbed round, and the share of rounds that are outlying."""


def _clean(draw: Draw, shape: Shape) -> Floats:
    return draw.normal(0, SPREAD, shape)


def _outliers(draw: Draw, shape: tuple[int, ...]) -> Floats:
    return (draw.random(shape) < OFTEN) * draw.uniform(np.log(1.5), np.log(4), shape)


def _outliers_in_one(draw: Draw, shape: Shape) -> Floats:
    logs = _clean(draw, shape)
    logs[:, -1] += _outliers(draw, (shape[0], shape[2]))
    return logs


def _unequal(draw: Draw, shape: Shape) -> Floats:
    logs = _clean(draw, shape)
    logs[:, -1] *= 5
    return logs


MODELS: dict[str, Callable[[Draw, Shape], Floats]] = {
    "clean": _clean,
    "heavy tails": lambda draw, shape: SPREAD * draw.standard_t(2.5, shape),
    "outliers in one arm": _outliers_in_one,
    "outliers in all arms": lambda draw, shape: _clean(draw, shape) + _outliers(draw, shape),
    "drift between rounds": lambda draw, shape: (
        _clean(draw, shape) + np.cumsum(draw.normal(0, 0.1, (shape[0], 1, shape[2])), axis=-1)
    ),
    "unequal spreads": _unequal,
}
"""Functions that draw the logarithms of a figure."""


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """Yield all rows."""
    for part in (_of_intervals, _of_fresh_draws, _of_headlines, _of_comparisons):
        yield from part(seed)


def _of_intervals(seed: int) -> Iterator[BenchmarkRow]:
    """The interval of a typical ratio: with planned rounds, and of runs that end at a precision."""
    for name, model in MODELS.items():
        for rounds in (3, 5, 10, 20):
            logs = model(np.random.default_rng([seed, rounds]), (20_000, 2, rounds))
            low, high = typical_interval(logs[:, 1] - logs[:, 0], CONFIDENCE)
            yield covered(f"typical ratio, {name}, {rounds} rounds", (low <= 0) & (high >= 0))
        for precision in (0.03, 0.1):
            logs = model(np.random.default_rng([seed, 60]), (4_000, 2, 60))
            low, high = until_precise(logs[:, 1] - logs[:, 0], precision)
            yield covered(f"typical ratio, {name}, --until-precision {precision:.0%}", (low <= 0) & (high >= 0))


def until_precise(logs: Floats, precision: float) -> tuple[Floats, Floats]:
    """Return the intervals with which runs end (a row each): narrow enough, or out of rounds."""
    low, high = np.full(len(logs), np.nan), np.full(len(logs), np.nan)
    going = np.ones(len(logs), np.bool_)
    for rounds in range(FEWEST_SEQUENTIAL_ROUNDS, logs.shape[1] + 1):
        so_far = logs[going, :rounds]
        ends = typical_interval(so_far, SEQUENTIAL_CONFIDENCE)
        done = narrow_enough(typical(so_far), *ends, precision) | (rounds == logs.shape[1])
        places = np.flatnonzero(going)[done]
        low[places], high[places] = ends[0][done], ends[1][done]
        going[places] = False
    return low, high


LOADS = {
    "Poisson 200/s": Workload(rate=200.0, arrivals="poisson", duration=5.0, delay=Delay.parse("exponential:60ms")),
    "closed": Workload(requests=1000, delay=Delay.parse("lognormal:60ms,0.8")),
}
_IN_FLIGHT, _OVERHEADS = 16, (0.001, 0.003)
"""Requests in flight, and the seconds that each of two arms adds to a request."""
_NOISE = 0.002
"""Standard deviation of what the machine adds to a trial: next to nothing, so that the draw decides."""


def _of_fresh_draws(seed: int) -> Iterator[BenchmarkRow]:
    """The intervals of p99, and of its ratio, when each round draws its delays and arrivals anew."""
    for index, (name, workload) in enumerate(LOADS.items()):
        # Seeds of runs have 31 bits here, so the trials behind the truth share no draw with them.
        other = simulate_trials(workload, [(2**40 + seed, number) for number in range(4_000)], [seed, index])
        truths = typical(other[0]), typical(other[1] - other[0])
        for rounds in (5, 10):
            seeds = np.random.default_rng([seed, index, rounds]).integers(2**31, size=1_000)
            drawn = [(int(run), number) for run in seeds for number in range(1, rounds + 1)]
            one, two = simulate_trials(workload, drawn, [seed, index, rounds]).reshape(2, len(seeds), rounds)
            for figure, values, truth in zip(("p99", "ratio of p99"), (one, two - one), truths, strict=True):
                low, high = typical_interval(values, CONFIDENCE)
                yield covered(f"{figure} of fresh draws, {name}, {rounds} rounds", (low <= truth) & (high >= truth))


def simulate_trials(workload: Workload, drawn: Sequence[tuple[int, int]], seed: Sequence[int]) -> Floats:
    """Return logarithms of p99, shaped (arms, trials). `drawn`: seed and round of each trial; `seed`: of the noise."""
    noise = np.random.default_rng(seed).normal(0, _NOISE, (len(_OVERHEADS), len(drawn)))
    times = [[_p99(in_round(workload, *one), overhead) for one in drawn] for overhead in _OVERHEADS]
    return np.log(times) + noise


def _p99(workload: Workload, overhead: float) -> float:
    """Simulate a trial. Requests wait in the order of their arrival while as many as possible are in flight."""
    schedule, delay = arrivals_of(workload), delay_of(workload)
    count = (workload.requests if schedule is None else schedule.count) or 0
    free = [0.0] * _IN_FLIGHT
    latencies = []
    for number in range(count):
        planned = free[0] if schedule is None else schedule.start_of(number)
        ended = max(free[0], planned) + overhead + (delay(number) if delay else 0.0)
        heapq.heapreplace(free, ended)
        latencies.append(ended - planned)
    return sorted(latencies)[-(-99 * count // 100) - 1]


def _of_headlines(seed: int) -> Iterator[BenchmarkRow]:
    """How often the ranking of equal arms names one that is surely slower, and how often it names a slow one."""
    for name, model in MODELS.items():
        for arms in (8, 16):
            for rounds in (3, 5, 10, 20):
                logs = model(np.random.default_rng([seed, arms, rounds]), (1_000, arms, rounds))
                wrong = np.array([_names_a_slower(run) for run in logs])
                yield false(f"false headline, {arms} equal arms, {name}, {rounds} rounds", wrong)
    for slower in (1.1, 1.3):
        logs = _clean(np.random.default_rng([seed, 1]), (1_000, 8, 5))
        logs[:, -1] += np.log(slower)
        seen = np.array([_names_a_slower(run) for run in logs])
        yield share(f"headline names the one of 8 arms that is {slower:g} times as slow, 5 rounds", seen)


def _names_a_slower(logs: Floats) -> bool:
    """Whether some interval of a run excludes 1. A ratio below 1 counts too: it contradicts the ranking."""
    found = compare_arms({str(arm): dict(enumerate(row)) for arm, row in enumerate(np.exp(logs).tolist())}, CONFIDENCE)
    fastest = min(found.levels, key=found.levels.__getitem__)
    ratios = [ratio for name in found.levels if (ratio := found.ratio(name, fastest)) is not None]
    return any((one.low or 0) > 1 or one.value < 1 - 1e-9 for one in ratios)


STRATEGIES = (
    "requests", "requests-session", "httpx-client", "urllib3", "aiohttp@workers", "http.client", "pycurl",
    "httpx-async@workers",
)  # fmt: skip
_FIGURES = ("wall", "p50", "p99", "cpu", "memory", "connections")
_P99 = 5.0
"""How many times as much p99 varies as wall time."""


def _of_comparisons(seed: int) -> Iterator[BenchmarkRow]:
    """How often a comparison of two runs of identical code calls some figure changed, and sees a real change."""
    for name in (one for one in MODELS if one != "drift between rounds"):
        for arms in (1, 8):
            for rounds in (3, 5, 10):
                draw = np.random.default_rng([seed, arms, rounds])
                logs = MODELS[name](draw, (400, arms * len(_FIGURES), 2 * rounds))
                wrong = np.array([calls_a_change(compare_drawn(table, arms)) for table in logs])
                yield false(f"identical runs differ, {arms} arms, {name}, {rounds} rounds", wrong)
    for rounds in (5, 10, 20):
        logs = _clean(np.random.default_rng([seed, rounds]), (400, len(_FIGURES), 2 * rounds))
        logs[:, _FIGURES.index("p99"), rounds:] += np.log(1.5) / _P99
        found = [compare_drawn(table, 1).others[0].changes[STRATEGIES[0]]["p99"].verdict for table in logs]
        seen = np.array([verdict == "worse" for verdict in found])
        yield share(f"p99 that is 1.5 times as long is seen, varies by 15 %, {rounds} rounds", seen)


def compare_drawn(logs: Floats, arms: int) -> Comparison:
    """Compare two drawn runs. Shape of the logarithms: (arms * figures, rounds of both runs)."""
    values = np.exp(logs).reshape(arms, len(_FIGURES), 2, logs.shape[1] // 2)
    before, after = (_drawn_run(values[:, :, side], side) for side in (0, 1))
    return compare(before, [after])


def calls_a_change(comparison: Comparison) -> bool:
    """Whether the comparison says of any figure that it changed."""
    changes = (change for one in comparison.others for by_key in one.changes.values() for change in by_key.values())
    return any(change.verdict in {"better", "worse"} for change in changes)


def _drawn_run(values: Floats, side: int) -> Run:
    """A run of (arms, figures, rounds) values around 1."""
    experiment = Experiment(
        name="drawn", question="Did it change?", strategies=list(STRATEGIES[: len(values)]), upstreams=["aiohttp"],
        routes=["direct"], rounds=values.shape[2],
        workloads={"workload": WorkloadTable(first=Workload(requests=1000))},
    )  # fmt: skip
    run = new_run(f"drawn-{side}", make_plan(experiment), Target(testbed="local"), _SURROUNDINGS)
    trials = [
        _drawn_trial(arm.name, arm.strategy, number, dict(zip(_FIGURES, values[place, :, number - 1], strict=True)))
        for place, arm in enumerate(run.experiment.arms)
        for number in range(1, values.shape[2] + 1)
    ]
    return run.model_copy(update={"trials": trials, "status": "done"})


def _drawn_trial(arm: str, strategy: str, number: int, found: dict[str, float]) -> Trial:
    wall, p50, p99 = float(found["wall"]), float(0.002 * found["p50"]), float(0.009 * found["p99"] ** _P99)
    return Trial(
        arm=arm, strategy=strategy, upstream="aiohttp", route="direct", workload="workload", round=number, order=0,
        concurrency=1, status="done", started="2024-05-06T07:08:09+00:00", wall_seconds=wall, requests=1000,
        requests_per_second=1000 / wall, cpu_seconds=float(0.5 * found["cpu"]),
        peak_rss_bytes=int((32 << 20) * found["memory"]), connections_opened=int(100 * found["connections"]),
        latency_seconds=Quantiles(mean=p50, p50=p50, p90=p50, p95=p99, p99=p99, p999=p99, max=p99, at_least=[]),
    )  # fmt: skip


_SURROUNDINGS = surroundings([], {})
