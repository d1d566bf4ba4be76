"""When rounds are enough, and how long a run takes."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.results.plan import Claim
from clientlab.running.due import DEFAULT_TIME_BUDGET, Pace, due_trials, ended, seconds_of, with_decided
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


def test_planned_rounds_end_as_planned():
    """However restless the machine was, and however long it took."""
    run = a_measured_run(0.5, precision=None)
    assert ended(run, 4, Pace(1e9, 0.0)) is None
    assert ended(run, 5, Pace(0.0, 0.0)) == "planned"


def test_rounds_are_added_until_the_intervals_are_narrow():
    """And not before the fewest are done."""
    assert ended(a_measured_run(0.2), 6, Pace(1.0, 0.0)) is None
    assert ended(a_measured_run(0.001), 6, Pace(1.0, 0.0)) == "precision"
    assert ended(a_measured_run(0.001), 4, Pace(1.0, 0.0)) is None


def test_no_round_is_begun_that_would_end_beyond_the_time_budget():
    """Judged by the pace of those before it: after six rounds, the seventh would end at 7/6 of the time."""
    run = a_measured_run(0.2, time_budget=58.0)
    assert ended(run, 6, Pace(49.0, 0.0)) is None
    assert ended(run, 6, Pace(51.0, 0.0)) == "time-budget"


def test_there_is_a_time_budget_where_none_is_named():
    """No run goes on for ever."""
    assert ended(a_measured_run(0.2), 6, Pace(DEFAULT_TIME_BUDGET, 0.0)) == "time-budget"


def a_run_of_a_claim(of: float, spread: float, rounds: int, precision: float = 0.03, **claim):
    """Two arms whose figures only the claim compares, for they are in groups of their own: b over a is `of`."""
    asked = Claim(**({"name": "it", "text": "It is so", "kind": "less", "a": "a", "b": "b"} | claim))
    walls = [(1.0, of * (1 + spread * (number * 7 % 11 - 5) / 5)) for number in range(rounds)]
    trials = [a_trial(name, number, wall, route=route) for number, pair in enumerate(walls, start=1)
              for name, route, wall in zip("ab", ("direct", "proxy"), pair, strict=True)]  # fmt: skip
    return a_run(*trials, rounds=5, precision=precision, claims=[asked])


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
    assert ended(a_run_of_a_claim(of, spread, rounds, 0.5), rounds, Pace(1.0, 0.0)) == reason


def test_an_arm_that_always_fails_is_not_waited_for():
    """Rounds end although an arm always fails, because no further round would change that."""
    run = a_measured_run(0.001)
    failing = [a_failed_trial("c", number=number) for number in range(1, 7)]
    claim = Claim(name="it", text="It is so", kind="less", a="a", b="c")
    assert (
        ended(a_run(*run.trials, *failing, rounds=5, precision=0.03, claims=[claim]), 6, Pace(1.0, 0.0)) == "precision"
    )


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
    assert ended(run, 6, Pace(6.0, 0.3)) is None


def test_no_arm_leaves_in_the_first_rounds():
    """Three rounds say little about how much arms vary."""
    run = a_run_with_a_budget(3)
    assert with_decided(run, 3) is run


def test_a_run_without_a_budget_decides_nothing():
    """Its rounds are those that were planned."""
    run = a_run_with_a_budget(6, budget=None)
    assert with_decided(run, 6) is run


def test_a_budget_ends_the_rounds_when_every_comparison_is_decided():
    """And when the next round would not end in time."""
    run = a_run_with_a_budget(6)
    decided = run.model_copy(update={"decided": {"a": 6, "b": 6, "c": 6}})
    assert ended(decided, 6, Pace(6.0, 0.3)) == "decided"
    assert ended(run, 6, Pace(59.0, 0.3)) is None
    assert ended(run, 6, Pace(59.5, 0.3)) == "budget"


def test_an_arm_that_fails_is_not_waited_for_by_a_budget():
    """No further round would change that."""
    run = a_run_with_a_budget(6)
    failing = [a_failed_trial("d", number=number) for number in range(1, 7)]
    assert "d" in with_decided(a_run(*run.trials, *failing, rounds=1, budget=60.0), 6).decided


def test_the_time_of_a_run_is_estimated_with_its_warm_up_and_its_connections():
    """Of ten requests in a row before the measured ones; and of 1,000 connections, whose opening takes seconds."""

    def estimate(strategy: str = "http.client", **workload) -> float:
        trial = a_trial(strategy)
        return seconds_of(a_run(trial, workloads={trial.workload: Workload(**workload)}).experiment)

    slow = {"requests": 10, "delay": Delay.parse("2s")}
    assert estimate(**slow, warmup=10) - estimate(**slow, warmup=0) == pytest.approx(20)
    few, many = (estimate("aiohttp@workers", duration=1.0, concurrency=count) for count in (10, 1000))
    assert many - few > 1


def test_a_budget_is_the_estimate_of_its_run():
    """Not the fewest rounds, which take far less: the demo said 25 s and took a minute."""
    run = a_run(a_trial("http.client"), budget=60.0)
    assert seconds_of(run.experiment) >= 60
