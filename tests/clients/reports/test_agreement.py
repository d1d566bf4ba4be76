"""Neighbouring numbers agree: whatever was measured, no two figures contradict the conclusion beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from clientlab.judging.comparison import compare
from clientlab.reports.charts import bars
from clientlab.reports.charts.chart_data import chart_groups
from clientlab.reports.charts.forest import comparisons
from clientlab.reports.comparison import as_markdown
from clientlab.reports.figure_tables import figure_table
from clientlab.reports.rows import groups_of
from clientlab.results.document import Run
from clientlab.results.plan import Arm
from clients.documents import a_run, a_trial, quantiles

ARMS = ("aiohttp@workers", "pycurl", "requests", "urllib3")
SEEDS = range(3)
SLACK = 0.012
"""Two figures and a ratio with three digits each, rounded."""


def a_random_run(seed: int, route: str | None = None) -> Run:
    """Arms that differ by little, on a machine that drifts from round to round by more."""
    draw = np.random.default_rng(seed)
    rounds, noise, apart = int(draw.integers(3, 10)), draw.choice([0.003, 0.02, 0.1]), draw.choice([0.0, 0.01, 0.1])
    drift = np.exp(np.cumsum(draw.normal(0, 0.05, rounds)))
    routes = ("direct", "proxy") if route is None else (route,)
    arms, trials = [], []
    for way in routes:
        for name in ARMS:
            arm = Arm(
                name=f"{name} {way}", label=name, strategy=name, upstream="aiohttp", route=way, workload="workload"
            )
            arms.append(arm)
            typical = np.exp(draw.normal(0, apart))
            for number in range(1, rounds + 1):
                seconds, slowest, cpu = typical * drift[number - 1] * np.exp(draw.normal(0, noise, 3))
                trials.append(a_trial(
                    name, number, seconds, arm=arm.name, route=way, cpu_seconds=cpu,
                    latency_seconds=quantiles(seconds / 1000, slowest / 100),
                ))  # fmt: skip
    return a_run(*trials, arms=arms)


def leading(text: str) -> float:
    """The first number of a cell, in the unit that it has: seconds or events per second."""
    number, unit = re.match(r"([\d,.]+)(?: (ms|µs|s))?", text).groups()
    return float(number.replace(",", "")) * {"ms": 1e-3, "µs": 1e-6}.get(unit, 1.0)


def ends(text: str) -> tuple[float, float]:
    """The interval of a cell."""
    low, high = re.search(r"\(([\d.,]+) to ([\d.,]+)\)", text).groups()
    return float(low.replace(",", "")), float(high.replace(",", ""))


def tables(run: Run) -> Iterator[list[dict[str, str]]]:
    """The table of figures of each group, a row for each arm."""
    for group in groups_of(run):
        table = figure_table(group)
        yield [dict(zip(table.headings, row, strict=True)) for row in table.rows]


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_are_in_the_order_of_the_ratios_and_have_their_size(seed):
    """The fastest has the highest rate, and a ratio is that of the two figures beside it."""
    for rows in tables(a_random_run(seed)):
        rates, ratios = [leading(row["req/s"]) for row in rows], [leading(row["x fastest (95 %)"]) for row in rows]
        assert all(before >= after for before, after in pairwise(rates))
        assert all(before <= after * (1 + SLACK / 2) for before, after in pairwise(ratios))  # of unlike digits
        for figure in ("req/s", "p99", "CPU/req"):
            column = "x fastest (95 %)" if figure == "req/s" else f"x {figure} (95 %)"
            best = leading(rows[0][figure])
            for row in rows[1:]:
                times = best / leading(row[figure]) if figure == "req/s" else leading(row[figure]) / best
                low, high = ends(row[column])
                assert leading(row[column]) == pytest.approx(times, rel=SLACK)
                assert low <= leading(row[column]) <= high


@pytest.mark.parametrize("seed", SEEDS)
def test_charts_show_the_figures_of_the_table(seed):
    """Bars and points have its order, its times and its ratios."""
    run = a_random_run(seed, "direct")
    (rows,) = tables(run)
    (chart,) = bars.times(run, groups_of(run))
    assert [bar.name for bar in chart.rows] == [row["strategy"].removesuffix(" !") for row in rows]
    assert all(before.length <= after.length for before, after in pairwise(chart.rows))
    for bar, row in zip(chart.rows, rows, strict=True):
        assert 1000 / leading(bar.value) == pytest.approx(leading(row["req/s"]), rel=SLACK)
    forest = comparisons(run, chart_groups(run))[0]
    for point, row in zip(forest.rows, rows, strict=True):
        assert point.value.startswith(row["x fastest (95 %)"])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_between_two_runs_is_that_of_the_figures_beside_it(seed):
    """898/s before and 855/s now is no ratio of 0.998; and no figure is called slower that is lower."""
    text = as_markdown(compare(a_random_run(seed, "direct"), [a_random_run(seed + 1000, "direct")], force=True), [])
    found = 0
    for line in text.splitlines():
        _, _, figure, before, after, word, ratio, *_ = [*map(str.strip, line.split("|")), *[""] * 7]
        if figure not in ("wall", "throughput", "p50", "p99", "cpu") or not ratio.startswith("x "):
            continue
        found += 1
        times = leading(after) / leading(before)
        assert leading(ratio[2:]) == pytest.approx(times, rel=SLACK), line
        if word in ("faster", "less") if figure != "throughput" else word == "slower":
            assert times < 1 + SLACK, line
        elif word in ("slower", "more", "faster"):
            assert times > 1 - SLACK, line
    assert found == 5 * len(ARMS)
