"""What the lab states, checked by simulations whose truth is known, for several models
of the noise between rounds.

The typical ratio of two simulated arms is 1. Outlying rounds of one arm do not change
that: "typical" leaves them out. Two runs meet different states of the machine, so
comparisons of runs are simulated with an effect of the run as a whole instead of a
drift between rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.figures import BenchmarkRow, share
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.judging.comparison import Comparison, compare
from clientlab.judging.ranking import rank_arms
from clientlab.judging.thresholds import judge_changes, parse_change
from clientlab.results.document import Run
from clientlab.results.plan import Target
from clientlab.results.surroundings import surroundings
from clientlab.results.trial import (
    Outcome,
    PlannedTrial,
    Quantiles,
    RequestFigures,
    Trial,
)
from clientlab.running.execute import create_run
from clientlab.statistics.decisions import (
    FEWEST_SEQUENTIAL_ROUNDS,
    SEQUENTIAL_CONFIDENCE,
    decide,
)
from clientlab.statistics.drift import find_drift
from clientlab.statistics.ratios import CONFIDENCE, typical, typical_interval
from clientlab.statistics.simultaneous import compare_arms
from clientlab.workload.workload import make_workload

Floats = npt.NDArray[np.float64]
Draw = np.random.Generator
Shape = tuple[int, int, int]
"""Runs, arms, rounds."""
LEAST_COVERAGE, MOST_FALSE = 0.93, 0.05
SPREAD, OFTEN = 0.03, 0.1
"""Standard deviation of an undisturbed round, and the share of rounds that are
outlying.
"""


def _draw_clean(draw: Draw, shape: Shape) -> Floats:
    return draw.normal(0, SPREAD, shape)


def _draw_outliers(draw: Draw, shape: tuple[int, ...]) -> Floats:
    return (draw.random(shape) < OFTEN) * draw.uniform(np.log(1.5), np.log(4), shape)


def _draw_outliers_in_one(draw: Draw, shape: Shape) -> Floats:
    logs = _draw_clean(draw, shape)
    logs[:, -1] += _draw_outliers(draw, (shape[0], shape[2]))
    return logs


def _draw_drift(draw: Draw, shape: Shape) -> Floats:
    return _draw_clean(draw, shape) + np.cumsum(
        draw.normal(0, 0.1, (shape[0], 1, shape[2])), axis=-1
    )


def _draw_unequal(draw: Draw, shape: Shape) -> Floats:
    logs = _draw_clean(draw, shape)
    logs[:, -1] *= 5
    return logs


MODELS: dict[str, Callable[[Draw, Shape], Floats]] = {
    "clean": _draw_clean,
    "heavy tails": lambda draw, shape: SPREAD * draw.standard_t(2.5, shape),
    "outliers in one arm": _draw_outliers_in_one,
    "outliers in all arms": lambda draw, shape: (
        _draw_clean(draw, shape) + _draw_outliers(draw, shape)
    ),
    "drift between rounds": _draw_drift,
    "unequal spreads": _draw_unequal,
}
"""Functions that draw the logarithms of a figure."""


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """Yield all rows."""
    yield from _check_intervals(seed)
    yield from _check_headlines(seed)
    yield from _check_groups(seed)
    yield from _check_comparisons(seed)
    yield from _check_runs_that_differ(seed)
    yield from _check_errors(seed)
    yield from _check_drift(seed)


def _check_intervals(seed: int) -> Iterator[BenchmarkRow]:
    """Check the interval of a typical ratio, with planned rounds and in runs that end
    at a precision.
    """
    for name, model in MODELS.items():
        for rounds in (3, 5, 10, 20):
            logs = model(np.random.default_rng([seed, rounds]), (20_000, 2, rounds))
            low, high = typical_interval(logs[:, 1] - logs[:, 0], CONFIDENCE)
            holds = (low <= 0) & (high >= 0)
            yield share(
                f"typical ratio, {name}, {rounds} rounds", holds, least=LEAST_COVERAGE
            )
        for precision in (0.03, 0.1):
            logs = model(np.random.default_rng([seed, 60]), (4_000, 2, 60))
            low, high = until_precise(logs[:, 1] - logs[:, 0], precision)
            holds = (low <= 0) & (high >= 0)
            yield share(
                f"typical ratio, {name}, --until-precision {precision:.0%}",
                holds,
                least=LEAST_COVERAGE,
            )


def until_precise(logs: Floats, precision: float) -> tuple[Floats, Floats]:
    """Return the intervals with which runs end (one per row): narrow enough, or out of
    rounds.
    """
    low, high = np.full(len(logs), np.nan), np.full(len(logs), np.nan)
    going = np.ones(len(logs), np.bool_)
    for rounds in range(FEWEST_SEQUENTIAL_ROUNDS, logs.shape[1] + 1):
        so_far = logs[going, :rounds]
        ends = typical_interval(so_far, SEQUENTIAL_CONFIDENCE)
        value = typical(so_far)
        width = np.maximum(ends[1] - value, value - ends[0])
        done = (width <= np.log1p(precision)) | (rounds == logs.shape[1])
        places = np.flatnonzero(going)[done]
        low[places], high[places] = ends[0][done], ends[1][done]
        going[places] = False
    return low, high


def _check_headlines(seed: int) -> Iterator[BenchmarkRow]:
    """Check how often the ranking of equal arms calls one slower, and how often it
    finds a slow one.
    """
    for name, model in MODELS.items():
        for arms in (8, 16):
            for rounds in (3, 5, 10, 20):
                logs = model(
                    np.random.default_rng([seed, arms, rounds]), (1_000, arms, rounds)
                )
                wrong = np.array([_names_a_slower_arm(run) for run in logs])
                yield share(
                    f"false headline, {arms} equal arms, {name}, {rounds} rounds",
                    wrong,
                    most=MOST_FALSE,
                )
    for slower in (1.1, 1.3):
        logs = _draw_clean(np.random.default_rng([seed, 1]), (1_000, 8, 5))
        logs[:, -1] += np.log(slower)
        seen = np.array([_names_a_slower_arm(run) for run in logs])
        yield share(
            f"headline names the one of 8 arms that is {slower:g} times as slow, 5"
            " rounds",
            seen,
        )


def _names_a_slower_arm(logs: Floats) -> bool:
    """Return whether an interval of a run excludes 1.

    A ratio below 1 counts too: it contradicts the ranking.
    """
    found = compare_arms(
        {
            str(arm): dict(enumerate(row))
            for arm, row in enumerate(np.exp(logs).tolist())
        },
        CONFIDENCE,
    )
    fastest = min(found.levels, key=found.levels.__getitem__)
    ratios = [
        ratio
        for name in found.levels
        if (ratio := found.ratio(name, fastest)) is not None
    ]
    return any((one.low or 0) > 1 or one.value < 1 - 1e-9 for one in ratios)


def _check_groups(seed: int) -> Iterator[BenchmarkRow]:
    """Check how often a run of six workloads with four equal arms each calls an arm
    slower.
    """
    for rounds in (3, 5, 10):
        draw = np.random.default_rng([seed, rounds])
        logs = _draw_clean(draw, (300, 24, rounds)).reshape(300, 6, 4, rounds)
        wrong = np.array(
            [_calls_an_arm_slower(_make_groups(np.exp(one))) for one in logs]
        )
        yield share(
            f"false headline, 6 groups of 4 equal arms, {rounds} rounds",
            wrong,
            most=MOST_FALSE,
        )


def _make_groups(walls: Floats) -> Run:
    """Make a run of (groups, arms, rounds) wall times."""
    groups, arms, rounds = walls.shape
    names = [f"workload-{place}" for place in range(groups)]
    run = _make_run(np.ones((arms, len(_FIGURES), rounds)), "drawn", names)
    strategies = list(STRATEGIES[:arms])
    trials = [
        _make_trial(
            arm.name,
            arm.strategy,
            number,
            dict.fromkeys(_FIGURES, 1.0)
            | {
                "wall": walls[
                    names.index(arm.workload),
                    strategies.index(arm.strategy),
                    number - 1,
                ]
            },
            arm.workload,
        )
        for arm in run.experiment.arms
        for number in range(1, rounds + 1)
    ]
    return run.updated(trials=trials)


def _calls_an_arm_slower(run: Run) -> bool:
    standings = [one for group in rank_arms(run).values() for one in group]
    return any(
        one.ratio is not None and decide(one.ratio).word in {"slower", "faster"}
        for one in standings
    )


STRATEGIES = (
    "requests",
    "requests-session",
    "httpx-client",
    "urllib3",
    "aiohttp@workers",
    "http.client",
    "pycurl",
    "httpx-async@workers",
)
_FIGURES = ("wall", "p50", "p99", "cpu", "memory", "connections")
_P99 = 5.0
"""How many times as much p99 varies as wall time."""


def _check_comparisons(seed: int) -> Iterator[BenchmarkRow]:
    """Check how often a comparison of two runs of equal code calls a figure changed,
    and finds a real change.
    """
    for name in (one for one in MODELS if one != "drift between rounds"):
        for arms in (1, 8):
            for rounds in (3, 5, 10):
                draw = np.random.default_rng([seed, arms, rounds])
                logs = MODELS[name](draw, (400, arms * len(_FIGURES), 2 * rounds))
                wrong = np.array(
                    [calls_a_change(compare_drawn(table, arms)) for table in logs]
                )
                yield share(
                    f"identical runs differ, {arms} arms, {name}, {rounds} rounds",
                    wrong,
                    most=MOST_FALSE,
                )
    for rounds in (5, 10, 20):
        logs = _draw_clean(
            np.random.default_rng([seed, rounds]), (400, len(_FIGURES), 2 * rounds)
        )
        logs[:, _FIGURES.index("p99"), rounds:] += np.log(1.5) / _P99
        found = [
            compare_drawn(table, 1).others[0].changes[STRATEGIES[0]]["p99"].verdict
            for table in logs
        ]
        seen = np.array([verdict == "worse" for verdict in found])
        yield share(
            f"p99 that is 1.5 times as long is seen, varies by 15 %, {rounds} rounds",
            seen,
        )


def _check_runs_that_differ(seed: int) -> Iterator[BenchmarkRow]:
    """Check comparisons of equal runs that differ as wholes: by the floor, and beside
    five earlier runs.
    """
    for effect in (0.02, 0.05):
        for rounds in (3, 5, 10, 20):
            draw = np.random.default_rng([seed, rounds])
            logs = _draw_clean(draw, (300, 7 * len(_FIGURES), rounds)).reshape(
                300, 7, len(_FIGURES), rounds
            )
            logs[:, :, 0] += draw.normal(0, effect, (300, 7, 1))
            runs = [
                [
                    _make_run(np.exp(one[None]), f"drawn-{place}")
                    for place, one in enumerate(of)
                ]
                for of in logs
            ]
            for known in (0, 6):
                wrong = [
                    calls_a_change(
                        compare(of[0], [of[-1]], earlier=_in_order(of[:known]))
                    )
                    for of in runs
                ]
                by = f"{known} earlier runs" if known else "the floor of 10 %"
                name = (
                    f"equal runs that differ by {effect:.0%} as wholes, by {by},"
                    f" {rounds} rounds"
                )
                # The floor is a guess: runs may differ by more.
                most = MOST_FALSE if known or effect < 0.05 else None
                yield share(name, np.array(wrong), most=most)


def _in_order(runs: Sequence[Run]) -> list[Run]:
    """Return the runs as if each had been measured on a day of its own, before the
    present.
    """
    return [
        run.updated(created=f"2024-05-{day:02d}T07:08:09.000+00:00")
        for day, run in enumerate(runs, 1)
    ]


def _check_errors(seed: int) -> Iterator[BenchmarkRow]:
    """Check how often ``errors +0`` fails if requests fail at random, equally often in
    both runs.
    """
    threshold = parse_change("errors +0")
    for failing in (1e-4, 1e-3, 1e-2):
        for rounds in (3, 5, 10):
            draw = np.random.default_rng([seed, rounds])
            counts = draw.binomial(1000, failing, (400, 2, rounds))
            wrong = []
            for sides in counts.tolist():
                before, after = (_make_run_with_errors(of_run) for of_run in sides)
                (judged,) = judge_changes(
                    compare(before, [after], [threshold.figure]), [threshold]
                )
                wrong.append(judged.outcome == "failed")
            name = (
                f"errors +0 fails, {failing:.2%} of 1,000 requests fail at random,"
                f" {rounds} rounds"
            )
            yield share(name, np.array(wrong), most=MOST_FALSE)


def _make_run_with_errors(failed: Sequence[int]) -> Run:
    run = _make_run(np.ones((1, len(_FIGURES), len(failed))), "drawn")
    trials = [
        (
            trial.updated(figures=trial.figures.updated(errors={"reset": count}))
            if count
            else trial
        )
        for trial, count in zip(run.trials, failed, strict=True)
    ]
    return run.updated(trials=trials)


def _check_drift(seed: int) -> Iterator[BenchmarkRow]:
    """Check how often noise is called drift, and how often drift is seen."""
    for name in (one for one in MODELS if one != "drift between rounds"):
        for arms in (1, 4, 12):
            for rounds in (3, 6, 10):
                draw = np.random.default_rng([seed, arms, rounds])
                parts = MODELS[name](draw, (300, arms, 4 * rounds)).reshape(
                    300, arms, rounds, 4
                )
                logs = MODELS[name](draw, (300, arms, rounds))[..., None] + parts
                wrong = np.array(
                    [find_drift(one.mean(axis=2), one) is not None for one in logs]
                )
                yield share(
                    f"drift, {arms} steady arms, {name}, {rounds} rounds",
                    wrong,
                    most=MOST_FALSE,
                )
    for factor, first, rounds in ((10.0, 1, 3), (1.2, 5, 10)):
        logs = _draw_clean(np.random.default_rng([seed, rounds]), (300, 4, rounds))
        logs[..., :first] += np.log(factor)
        seen = np.array([find_drift(one) is not None for one in logs])
        yield share(
            f"drift is seen, the first {first} of {rounds} rounds take {factor:g} times"
            " as long",
            seen,
        )


def compare_drawn(logs: Floats, arms: int) -> Comparison:
    """Compare two drawn runs.

    Shape of the logarithms: (arms * figures, rounds of both runs).
    """
    values = np.exp(logs).reshape(arms, len(_FIGURES), 2, logs.shape[1] // 2)
    before, after = (_make_run(values[:, :, side], f"drawn-{side}") for side in (0, 1))
    return compare(before, [after])


def calls_a_change(comparison: Comparison) -> bool:
    """Return whether the comparison says that a figure changed."""
    changes = (
        change
        for one in comparison.others
        for by_key in one.changes.values()
        for change in by_key.values()
    )
    return any(change.verdict in {"better", "worse"} for change in changes)


def _make_run(
    values: Floats, name: str, workloads: Sequence[str] = ("workload",)
) -> Run:
    """Make a run of (arms, figures, rounds) values around 1, the same for each
    workload.
    """
    experiment = Experiment(
        name="drawn",
        question="Did it change?",
        strategies=list(STRATEGIES[: len(values)]),
        upstreams=["aiohttp"],
        routes=["direct"],
        rounds=values.shape[2],
        workloads={
            one: WorkloadTable(first=make_workload(requests=1000)) for one in workloads
        },
    )
    run = create_run(
        name, make_plan(experiment), Target(testbed="local"), _SURROUNDINGS
    )
    trials = [
        _make_trial(
            arm.name,
            arm.strategy,
            number,
            dict(zip(_FIGURES, values[place, :, number - 1], strict=True)),
        )
        for place, arm in enumerate(run.experiment.arms[: len(values)])
        for number in range(1, values.shape[2] + 1)
    ]
    return run.updated(trials=trials, status="done")


def _make_trial(
    arm: str,
    strategy: str,
    number: int,
    found: dict[str, float],
    workload: str = "workload",
) -> Trial:
    wall, p50, p99 = (
        float(found["wall"]),
        float(0.002 * found["p50"]),
        float(0.009 * found["p99"] ** _P99),
    )
    planned = PlannedTrial(
        arm=arm,
        strategy=strategy,
        upstream="aiohttp",
        route="direct",
        workload=workload,
        round=number,
        order=0,
        concurrency=1,
    )
    latency = Quantiles(
        mean=p50, p50=p50, p90=p50, p95=p99, p99=p99, p999=p99, max=p99, at_least=[]
    )
    opened = int(100 * found["connections"])
    return Trial(
        planned=planned,
        status="done",
        started="2024-05-06T07:08:09+00:00",
        figures=RequestFigures(
            requests=1000,
            requests_per_second=1000 / wall,
            latency_seconds=latency,
        ),
        measured=Outcome(
            began=0.0,
            wall_seconds=wall,
            cpu_seconds=float(0.5 * found["cpu"]),
            processes=1,
            connections_begun=opened,
            connections_opened=opened,
            connections_in_all=opened,
            peak_rss_bytes=int((32 << 20) * found["memory"]),
        ),
    )


_SURROUNDINGS = surroundings([], {})
