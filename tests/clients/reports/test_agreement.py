"""Neighbouring numbers agree: whatever was measured, no two figures contradict the
conclusion beside them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from clientlab.judging.comparison import compare
from clientlab.judging.judgement import with_judgement
from clientlab.judging.ranking import contrasts_by
from clientlab.judging.thresholds import judge_run, parse_threshold
from clientlab.reports import as_markdown
from clientlab.reports.change_contents import sections
from clientlab.reports.charts import comparisons, times
from clientlab.reports.rows import figure_table, groups_of
from clientlab.results.document import Run
from clientlab.results.plan import Arm, Claim, EnvironmentSpec
from clients.documents import a_run, a_trial, quantiles

ARMS = ("aiohttp@workers", "pycurl", "requests", "urllib3")
SEEDS = range(3)
SLACK = 0.012
"""Two figures and a ratio with three digits each, rounded."""


def a_random_run(seed: int, route: str | None = None) -> Run:
    """Arms that differ by little, on a machine that drifts from round to
    round by more.
    """
    draw = np.random.default_rng(seed)
    rounds = int(draw.integers(3, 10))
    noise = draw.choice([0.003, 0.02, 0.1])
    apart = draw.choice([0.0, 0.01, 0.1])
    drift = np.exp(np.cumsum(draw.normal(0, 0.05, rounds)))
    routes = ("direct", "proxy") if route is None else (route,)
    arms = []
    trials = []
    for way in routes:
        for name in ARMS:
            where = {"upstream": "aiohttp", "route": way, "workload": "workload"}
            arms.append(Arm(name=f"{name} {way}", label=name, strategy=name, **where))
            typical = np.exp(draw.normal(0, apart))
            for number in range(1, rounds + 1):
                seconds, slowest, cpu = (
                    typical * drift[number - 1] * np.exp(draw.normal(0, noise, 3))
                )
                trials.append(
                    a_trial(
                        name,
                        number,
                        seconds,
                        arm=f"{name} {way}",
                        route=way,
                        cpu_seconds=cpu,
                        latency_seconds=quantiles(seconds / 1000, slowest / 100),
                    )
                )
    return a_run(*trials, arms=arms)


def leading(text: str) -> float:
    """The first number of a cell, in seconds or events per second."""
    number, unit = re.match(r"([\d,.]+)(?: (ms|µs|s))?", text).groups()
    return float(number.replace(",", "")) * {"ms": 1e-3, "µs": 1e-6}.get(unit, 1.0)


def ends(text: str) -> tuple[float, float]:
    low, high = re.search(r"\(([\d.,]+) to ([\d.,]+)\)", text).groups()
    return float(low.replace(",", "")), float(high.replace(",", ""))


def tables(run: Run) -> Iterator[list[dict[str, str]]]:
    """Yield the table of figures of each group, as a row per arm."""
    for group in groups_of(run):
        table = figure_table(group)
        yield [dict(zip(table.headings, row, strict=True)) for row in table.rows]


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_are_in_the_order_of_the_ratios_and_have_their_size(seed):
    for rows in tables(a_random_run(seed)):
        rates = [leading(row["req/s"]) for row in rows]
        ratios = [leading(row["x fastest (95 %)"]) for row in rows]
        for before, after in pairwise(rates):
            assert before >= after
        assert all(
            before <= after * (1 + SLACK / 2) for before, after in pairwise(ratios)
        )  # of unlike digits
        for figure in ("req/s", "p50", "p99", "CPU/req"):
            column = "x fastest (95 %)" if figure == "req/s" else f"x {figure} (95 %)"
            best = leading(rows[0][figure])
            for row in rows[1:]:
                times = (
                    best / leading(row[figure])
                    if figure == "req/s"
                    else leading(row[figure]) / best
                )
                low, high = ends(row[column])
                assert figure in ("p50", "p99") or leading(
                    row[column]
                ) == pytest.approx(times, rel=SLACK)
                assert low <= leading(row[column]) <= high


@pytest.mark.parametrize("seed", SEEDS)
def test_charts_show_the_figures_of_the_table(seed):
    run = a_random_run(seed, "direct")
    (rows,) = tables(run)
    groups = groups_of(run)
    (chart,) = times(run, groups)
    assert [bar.name for bar in chart.rows] == [
        row["strategy"].removesuffix(" !") for row in rows
    ]
    for before, after in pairwise(chart.rows):
        assert before.bar <= after.bar
    for bar, row in zip(chart.rows, rows, strict=True):
        assert 1000 / leading(bar.text) == pytest.approx(
            leading(row["req/s"]), rel=SLACK
        )
    forest = next(comparisons(run, groups))
    for point, row in zip(forest.rows, rows, strict=True):
        assert point.text.startswith(row["x fastest (95 %)"])


def in_environments(seed: int) -> Run:
    """Two libraries in two environments, in which CPU times have a long tail."""
    draw = np.random.default_rng(seed)
    rounds = int(draw.integers(3, 20))
    arms = []
    trials = []
    for where in ("old", "new"):
        for strategy in ("urllib3", "requests"):
            name = f"{strategy} in {where}"
            arms.append(
                Arm(
                    name=name,
                    label=name,
                    strategy=strategy,
                    upstream="aiohttp",
                    route="direct",
                    workload="workload",
                    environment=where,
                )
            )
            trials += [
                a_trial(
                    strategy,
                    number,
                    float(np.exp(draw.normal(0, 0.03))),
                    arm=name,
                    environment=where,
                    cpu_seconds=0.5 + float(draw.exponential(0.05)),
                )
                for number in range(1, rounds + 1)
            ]
    claims = [
        Claim(
            name="old",
            text="old is faster",
            kind="less",
            a="urllib3 in old",
            b="urllib3 in new",
        ),
        Claim(
            name="cpu",
            text="old takes less",
            kind="less",
            a="urllib3 in old",
            b="urllib3 in new",
            figure="cpu",
        ),
    ]
    specs = {name: EnvironmentSpec(folder=f"/{name}") for name in ("old", "new")}
    return a_run(*trials, arms=arms, environments=specs, claims=claims)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_comparison_has_one_result_wherever_it_is_shown(seed):
    """Sentence, table, charts, claims and thresholds; the other way round, it is the
    exact inverse.
    """
    run = in_environments(seed)
    (group,) = groups_of(run)
    for found in contrasts_by("environment", run):
        new, old = (
            next(row for row in group.rows if row.name == arm.name)
            for arm in (found.arm, found.base)
        )
        for key, ratio in (("wall", found.time), ("cpu", found.cpu)):
            assert math.log(ratio.value) == pytest.approx(
                math.log(ratio.low * ratio.high) / 2
            )
            for row, other, expected in (
                (new, old, (ratio.low, ratio.value, ratio.high)),
                (old, new, (1 / ratio.high, 1 / ratio.value, 1 / ratio.low)),
            ):
                shown = row.ratio if key == "wall" else row.ratios.get(key)
                if other.fastest:
                    assert (shown.low, shown.value, shown.high) == pytest.approx(
                        expected
                    )
            (judged,) = judge_run(run, [parse_threshold(f"{new.name}: {key} +500%")])
            assert (judged.found, *judged.interval) == pytest.approx(
                (ratio.value, *ratio.interval)
            )
            if found.arm.name == "urllib3 in new":
                (claim,) = [
                    one
                    for one in with_judgement(run).claims
                    if (one.figure == "cpu") == (key == "cpu")
                ]
                assert claim.ratio == pytest.approx(ratio.value)
                assert claim.interval == pytest.approx(ratio.interval)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_between_two_runs_is_that_of_the_figures_beside_it(seed):
    """898/s before and 855/s now cannot have a ratio of 0.998, and a lower time is
    never called slower.
    """
    text = as_markdown.document(
        sections(
            compare(
                a_random_run(seed, "direct"),
                [a_random_run(seed + 1000, "direct")],
                force=True,
            ),
            [],
        )
    )
    found = 0
    for line in text.splitlines():
        _, figure, before, after, word, ratio, *_ = [
            *map(str.strip, line.split("|")),
            *[""] * 6,
        ]
        if figure not in (
            "wall",
            "throughput",
            "p50",
            "p99",
            "cpu",
        ) or not ratio.startswith("x "):
            continue
        found += 1
        times = leading(after) / leading(before)
        assert leading(ratio[2:]) == pytest.approx(times, rel=SLACK), line
        if word in ("faster", "less") if figure != "throughput" else word == "slower":
            assert times < 1 + SLACK, line
        elif word in ("slower", "more", "faster"):
            assert times > 1 - SLACK, line
    assert found == 5 * len(ARMS)
