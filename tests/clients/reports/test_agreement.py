"""Neighbouring numbers agree: whatever was measured, no two figures contradict the
conclusion beside them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

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
from clientlab.results.plan import Claim
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
    trials = []
    for way, name in itertools.product(routes, ARMS):
        typical = np.exp(draw.normal(0, apart))
        for number, pace in enumerate(typical * drift, start=1):
            seconds, slowest, cpu = pace * np.exp(draw.normal(0, noise, 3))
            trial = a_trial(
                name,
                number,
                seconds,
                arm=f"{name} {way}",
                route=way,
                cpu_seconds=cpu,
                latency_seconds=quantiles(seconds / 1000, slowest / 100),
            )
            trials.append(trial)
    return a_run(*trials)


def leading(text: str) -> float:
    """The first number of a cell, in seconds or events per second."""
    number, unit = re.match(r"([\d,.]+)(?: (ms|µs|s))?", text).groups()
    seconds = {"ms": 1e-3, "µs": 1e-6}
    return float(number.replace(",", "")) * seconds.get(unit, 1.0)


def ends(text: str) -> tuple[float, float]:
    low, high = re.search(r"\(([\d.,]+) to ([\d.,]+)\)", text).groups()
    return float(low.replace(",", "")), float(high.replace(",", ""))


def ratio_in(text: str) -> float:
    """The ratio of a cell, which is in its interval."""
    low, high = ends(text)
    ratio = leading(text)
    assert low <= ratio <= high
    return ratio


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
        for before, after in itertools.pairwise(rates):
            assert before >= after
        for before, after in itertools.pairwise(ratios):
            assert before <= after * (1 + SLACK / 2)  # of unlike digits
        for row in rows[1:]:
            times = rates[0] / leading(row["req/s"])
            assert ratio_in(row["x fastest (95 %)"]) == pytest.approx(times, rel=SLACK)
            ratio_in(row["x p50 (95 %)"])
            ratio_in(row["x p99 (95 %)"])
            times = leading(row["CPU/req"]) / leading(rows[0]["CPU/req"])
            assert ratio_in(row["x CPU/req (95 %)"]) == pytest.approx(times, rel=SLACK)


@pytest.mark.parametrize("seed", SEEDS)
def test_charts_show_the_figures_of_the_table(seed):
    run = a_random_run(seed, "direct")
    (rows,) = tables(run)
    groups = groups_of(run)
    (chart,) = times(run, groups)
    for before, after in itertools.pairwise(chart.rows):
        assert before.bar <= after.bar
    for bar, row in zip(chart.rows, rows, strict=True):
        assert bar.name == row["strategy"].removesuffix(" !")
        rate = leading(row["req/s"])
        assert 1000 / leading(bar.text) == pytest.approx(rate, rel=SLACK)
    forest = next(comparisons(run, groups))
    for point, row in zip(forest.rows, rows, strict=True):
        assert point.text.startswith(row["x fastest (95 %)"])


def in_environments(seed: int) -> Run:
    """Two libraries in two environments, in which CPU times have a long tail."""
    draw = np.random.default_rng(seed)
    rounds = int(draw.integers(3, 20))
    trials = []
    for where, strategy in itertools.product(("old", "new"), ("urllib3", "requests")):
        trials += [
            a_trial(
                strategy,
                number,
                float(np.exp(draw.normal(0, 0.03))),
                arm=f"{strategy} in {where}",
                environment=where,
                cpu_seconds=0.5 + float(draw.exponential(0.05)),
            )
            for number in range(1, rounds + 1)
        ]
    claims = [
        Claim(
            name=figure,
            text="old takes less",
            kind="less",
            a="urllib3 in old",
            b="urllib3 in new",
            figure=figure,
        )
        for figure in ("wall", "cpu")
    ]
    return a_run(*trials, claims=claims)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_comparison_has_one_result_wherever_it_is_shown(seed):
    """Sentence, table, charts, claims and thresholds; the other way round, it is the
    exact inverse.
    """
    run = in_environments(seed)
    (group,) = groups_of(run)
    rows = {row.name: row for row in group.rows}
    claims = {claim.name: claim for claim in with_judgement(run).claims}
    for contrast in contrasts_by("environment", run):
        new = rows[contrast.arm.name]
        old = rows[contrast.base.name]
        for key, ratio in (("wall", contrast.time), ("cpu", contrast.cpu)):
            middle = math.log(ratio.low * ratio.high) / 2
            assert math.log(ratio.value) == pytest.approx(middle)
            if old.fastest:
                shown = new.ratio if key == "wall" else new.ratios[key]
                assert shown.value == pytest.approx(ratio.value)
                assert shown.interval == pytest.approx(ratio.interval)
            if new.fastest:
                shown = old.ratio if key == "wall" else old.ratios[key]
                assert 1 / shown.value == pytest.approx(ratio.value)
                assert 1 / shown.low == pytest.approx(ratio.high)
                assert 1 / shown.high == pytest.approx(ratio.low)
            (judged,) = judge_run(run, [parse_threshold(f"{new.name}: {key} +500%")])
            assert judged.found == pytest.approx(ratio.value)
            assert judged.interval == pytest.approx(ratio.interval)
            if new.name == "urllib3 in new":
                assert claims[key].ratio == pytest.approx(ratio.value)
                assert claims[key].interval == pytest.approx(ratio.interval)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_between_two_runs_is_that_of_the_figures_beside_it(seed):
    """898/s before and 855/s now cannot have a ratio of 0.998, and a lower time is
    never called slower.
    """
    base = a_random_run(seed, "direct")
    other = a_random_run(seed + 1000, "direct")
    found = compare(base, [other], force=True)
    text = as_markdown.document(sections(found, []))
    rows = [line.split("|") for line in text.splitlines() if "| x " in line]
    cells = [[cell.strip() for cell in row] for row in rows]
    figures = {"wall", "throughput", "p50", "p99", "cpu"}
    changes = [row for row in cells if row[1] in figures]
    assert len(changes) == 5 * len(ARMS)
    for _, figure, before, after, word, ratio, *_ in changes:
        times = leading(after) / leading(before)
        assert leading(ratio[2:]) == pytest.approx(times, rel=SLACK), figure
        smaller = {"slower"} if figure == "throughput" else {"faster", "less"}
        if word in smaller:
            assert times < 1 + SLACK, figure
        elif word in {"slower", "more", "faster"}:
            assert times > 1 - SLACK, figure
