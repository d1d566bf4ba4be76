"""The order of trials, when rounds are enough, and how long a run takes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from clientlab.results.plan import Claim
from clientlab.running.due import DEFAULT_TIME_BUDGET, due_trials, ended, schedule, seconds_of, with_decided
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, a_trial


def a_measured_run(spread: float, rounds: int = 6, **changes):
    """Two arms, of which b takes twice as long, give or take `spread` by turns."""
    walls = [(1.0, 2.0 * (1 + spread * (-1) ** number)) for number in range(rounds)]
    return a_run(
        *(
            a_trial(name, number, wall)
            for number, pair in enumerate(walls, start=1)
            for name, wall in zip("ab", pair, strict=True)
        ),
        **({"rounds": 5, "precision": 0.03} | changes),
    )


def test_every_arm_comes_once_in_each_round_and_is_first_about_as_often():
    """800 rounds of 8 arms: each is first in about 100 of them."""
    arms = list("abcdefgh")
    order = schedule(arms, 800, seed=1)
    assert [number for number, _ in order] == [number for number in range(1, 801) for _ in arms]
    assert len(set(order)) == len(order)
    firsts = Counter(arm for _, arm in order[:: len(arms)])
    assert 60 < min(firsts.values()) <= max(firsts.values()) < 140


@pytest.mark.parametrize(
    ("spread", "changes", "rounds", "seconds", "reason"),
    [
        (0.5, {"precision": None}, 4, 1e9, None),
        (0.5, {"precision": None}, 5, 0.0, "planned"),
        (0.2, {}, 6, 1.0, None),
        (0.001, {}, 6, 1.0, "precision"),
        (0.001, {}, 4, 1.0, None),  # fewer than the fewest
        (0.2, {"time_budget": 58.0}, 6, 49.0, None),  # the seventh would end at 7/6 of the time
        (0.2, {"time_budget": 58.0}, 6, 51.0, "time-budget"),
        (0.2, {}, 6, DEFAULT_TIME_BUDGET, "time-budget"),
    ],
)
def test_rounds_end_as_planned_or_at_a_precision_or_before_the_time_is_over(spread, changes, rounds, seconds, reason):
    """No round is begun that would end beyond the time budget, by the pace of those before it."""
    assert ended(a_measured_run(spread, **changes), rounds, seconds) == reason


def a_run_of_a_claim(of: float, spread: float, rounds: int):
    """Two arms whose figures only the claim compares, for they are in groups of their own: b over a is `of`."""
    walls = [of * (1 + spread * (number * 7 % 11 - 5) / 5) for number in range(rounds)]
    trials = [a_trial("a", number, 1.0, route="direct") for number in range(1, rounds + 1)]
    trials += [a_trial("b", number, wall, route="proxy") for number, wall in enumerate(walls, start=1)]
    claim = Claim(name="it", text="It is so", kind="less", a="a", b="b")
    return a_run(*trials, rounds=5, precision=0.5, claims=[claim])


@pytest.mark.parametrize(
    ("of", "spread", "rounds", "reason"),
    [
        (2.0, 0.1, 6, "precision"),
        (2.0, 0.9, 6, None),
        (1.01, 0.01, 6, "precision"),
        (1.01, 0.03, 9, None),
        (1.01, 0.03, 30, "precision"),
    ],
)
def test_a_claim_is_waited_for_until_it_is_settled(of, spread, rounds, reason):
    """Surely decided, surely negligible, or as sure as ever: however wide an interval the ratios may have."""
    assert ended(a_run_of_a_claim(of, spread, rounds), rounds, 1.0) == reason


def a_run_with_a_budget(rounds: int, **changes):
    """Arm a is fastest; b takes as long, give or take; c takes twice as long. Rounds vary by 2 %."""
    noise = np.random.default_rng(7).normal(0, 0.02, (3, rounds))
    walls = np.exp(np.log([[1.0], [1.02], [2.0]]) + noise)
    trials = [a_trial(name, number, wall) for name, of_arm in zip("abc", walls.tolist(), strict=True)
              for number, wall in enumerate(of_arm, start=1)]  # fmt: skip
    return a_run(*trials, **({"rounds": 1, "budget": 60.0} | changes))


def test_an_arm_leaves_when_its_comparisons_are_decided():
    """The one that takes twice as long does; those that are close are measured further."""
    run = with_decided(a_run_with_a_budget(6), 6)
    assert run.decided == {"c": 6}
    assert {one.arm for one in due_trials(run, 7).trials} == {"a", "b"}
    assert ended(run, 6, 6.0, 0.3) is None

    for rounds, changes in ((3, {}), (6, {"budget": None})):  # three rounds say little about how much arms vary
        run = a_run_with_a_budget(rounds, **changes)
        assert with_decided(run, rounds) is run


def test_a_budget_ends_the_rounds_when_every_comparison_is_decided():
    """And when the next round would not end in time."""
    run = a_run_with_a_budget(6)
    decided = run.model_copy(update={"decided": {"a": 6, "b": 6, "c": 6}})
    assert ended(decided, 6, 6.0, 0.3) == "decided"
    assert ended(run, 6, 59.0, 0.3) is None
    assert ended(run, 6, 59.5, 0.3) == "budget"


def test_an_arm_that_always_fails_is_not_waited_for():
    """No further round would change that, neither for a budget nor for the precision of a claim."""
    failing = [a_failed_trial("d", number=number) for number in range(1, 7)]
    run = a_run(*a_run_with_a_budget(6).trials, *failing, rounds=1, budget=60.0)
    assert "d" in with_decided(run, 6).decided
    claim = Claim(name="it", text="It is so", kind="less", a="a", b="d")
    run = a_run(*a_measured_run(0.001).trials, *failing, rounds=5, precision=0.03, claims=[claim])
    assert ended(run, 6, 1.0) == "precision"


def test_the_time_of_a_run_is_estimated_with_its_warm_up_and_its_connections_or_is_its_budget():
    """Of ten requests in a row before the measured ones; and of 1,000 connections, whose opening takes seconds."""

    def estimate(strategy: str = "http.client", **workload) -> float:
        trial = a_trial(strategy)
        return seconds_of(a_run(trial, workloads={trial.workload: Workload(**workload)}).experiment)

    slow = {"requests": 10, "delay": Delay.parse("2s")}
    assert estimate(**slow, warmup=10) - estimate(**slow, warmup=0) == pytest.approx(20)
    few, many = (estimate("aiohttp@workers", duration=1.0, concurrency=count) for count in (10, 1000))
    assert many - few > 1
    assert seconds_of(a_run(a_trial("http.client"), budget=60.0).experiment) >= 60
