"""The schedule of a run: the order of its trials, what each round draws, when rounds
end, and how long a run takes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from clientlab.results.plan import Claim
from clientlab.running import schedule
from clientlab.running.execute import resume_run
from clientlab.workload.values import Delay
from clientlab.workload.workload import delay_of, make_workload
from clients.documents import SURROUNDINGS, a_failed_trial, a_run, a_trial
from clients.running.runs import planned


def test_every_arm_comes_once_in_each_round_and_is_first_about_as_often():
    """Each of 8 arms is first in about 100 of 800 rounds."""
    arms = list("abcdefgh")
    order = a_run(*map(a_trial, arms)).experiment.schedule(800)
    assert [number for number, _ in order] == [
        number for number in range(1, 801) for _ in arms
    ]
    assert len(set(order)) == len(order)
    firsts = Counter(arm for _, arm in order[:: len(arms)])
    assert 60 < min(firsts.values()) <= max(firsts.values()) < 140


def a_new_run(seed: int | None = None):
    """A run of three rounds with random delays that has not begun."""
    return planned(
        "urllib3",
        "pycurl",
        rounds=3,
        more={"seed": seed},
        delay=Delay.parse("exponential:10ms"),
    )


def drawn(run):
    """The delays of the first requests of each trial that is due."""
    workloads = {
        due: schedule.plan_turn(run, [due])[0][1] for due in schedule.find_due(run)
    }
    return {
        due: list(map(delay_of(workload), range(5)))
        for due, workload in workloads.items()
    }


def test_arms_on_two_servers_take_turns_even_if_each_has_a_path_of_its_own():
    servers = {"base": "http://127.0.0.1:1/a", "head": "http://127.0.0.1:2/b"}
    run = planned(
        "urllib3", more={"servers": servers, "upstreams": ["own"]}, duration=4.0
    )
    plan = run.experiment
    arms = [arm.updated(workload=f"w at {arm.server}") for arm in plan.arms]
    changes = {
        "arms": arms,
        "workloads": {arm.workload: plan.workloads["w"] for arm in arms},
    }
    run = run.updated(experiment=plan.updated(**changes))
    turn = schedule.plan_turn(run, schedule.find_due(run), by_turns=True)
    assert {trial.server for trial, _ in turn} == {"base", "head"}


def test_arms_of_a_round_have_the_same_delays_and_rounds_have_others():
    """Ratios are paired by round, and their interval covers the draw."""
    delays = drawn(a_new_run())
    for number in (1, 2, 3):
        assert delays[number, "urllib3"] == delays[number, "pycurl"]
    assert len(set(map(tuple, delays.values()))) == 3


def test_a_seed_repeats_order_and_draws_and_a_resumed_run_goes_on_with_them():
    """A run without a given seed draws a new one, which its file holds."""
    one = a_new_run()
    other = a_new_run()
    assert one.experiment.seed != other.experiment.seed
    assert drawn(other) != drawn(one)
    before = list(drawn(one).items())
    assert list(drawn(a_new_run(seed=one.experiment.seed)).items()) == before
    (number, arm), _ = before[0]
    stopped = one.with_trial(a_trial(arm, number, workload="w"))
    assert list(drawn(resume_run(stopped, SURROUNDINGS)).items()) == before[1:]


def a_measured_run(spread: float, rounds: int = 6, **changes):
    """Two arms.

    The second takes twice as long, `spread` more or less in alternate rounds.
    """
    walls = [(1.0, 2.0 * (1 + spread * (-1) ** number)) for number in range(rounds)]
    trials = [
        a_trial(name, n, wall)
        for n, pair in enumerate(walls, 1)
        for name, wall in zip("ab", pair, strict=True)
    ]
    return a_run(*trials, **({"rounds": 5, "precision": 0.03} | changes))


@pytest.mark.parametrize(
    ("spread", "changes", "rounds", "seconds", "reason"),
    [
        (0.5, {"precision": None}, 4, 1e9, None),
        (0.5, {"precision": None}, 5, 0.0, "planned"),
        (0.2, {}, 6, 1.0, None),
        (0.001, {}, 6, 1.0, "precision"),
        (0.001, {}, 4, 1.0, None),  # fewer than the fewest
        (
            0.2,
            {"time_budget": 58.0},
            6,
            49.0,
            None,
        ),  # the seventh would end at 7/6 of the time
        (0.2, {"time_budget": 58.0}, 6, 51.0, "time-budget"),
        (0.2, {}, 6, schedule.DEFAULT_TIME_BUDGET, "time-budget"),
    ],
)
def test_rounds_end_as_planned_or_at_a_precision_or_before_the_time_is_over(
    spread, changes, rounds, seconds, reason
):
    """No round begins that would end beyond the time budget at the pace so far."""
    assert (
        schedule.find_end(a_measured_run(spread, **changes), rounds, seconds) == reason
    )


@pytest.mark.parametrize(
    ("ratio", "spread", "rounds", "reason"),
    [
        (2.0, 0.1, 6, "precision"),
        (2.0, 0.9, 6, None),
        (1.01, 0.01, 6, "precision"),
        (1.01, 0.03, 9, None),
        (1.01, 0.03, 30, "precision"),
    ],
)
def test_rounds_go_on_until_a_claim_is_settled(ratio, spread, rounds, reason):
    """The claim is decided, its difference is negligible, or it is known well enough.

    Only the claim compares them.
    """
    walls = [
        ratio * (1 + spread * (number * 7 % 11 - 5) / 5) for number in range(rounds)
    ]
    trials = [
        a_trial("a", number, 1.0, route="direct") for number in range(1, rounds + 1)
    ]
    trials += [
        a_trial("b", number, wall, route="proxy")
        for number, wall in enumerate(walls, start=1)
    ]
    claim = Claim(name="it", text="It is so", kind="less", a="a", b="b")
    assert (
        schedule.find_end(
            a_run(*trials, rounds=5, precision=0.5, claims=[claim]), rounds, 1.0
        )
        == reason
    )


def a_run_with_a_budget(rounds: int, *more, **changes):
    """Arm a is the fastest, b is close to it, and c takes twice as long.

    Rounds vary by 2 %.
    """
    noise = np.random.default_rng(7).normal(0, 0.02, (3, rounds))
    walls = np.exp(np.log([[1.0], [1.02], [2.0]]) + noise).tolist()
    trials = [
        a_trial(name, n, wall)
        for name, row in zip("abc", walls, strict=True)
        for n, wall in enumerate(row, 1)
    ]
    return a_run(*trials, *more, **({"rounds": 1, "budget": 60.0} | changes))


def test_a_budget_measures_an_arm_until_its_comparisons_are_decided():
    run = schedule.decide_arms(a_run_with_a_budget(6), 6)
    assert run.decided == {"c": 6}
    assert {arm for _, arm in schedule.find_due(run, 7)} == {"a", "b"}
    decided = run.updated(decided={"a": 6, "b": 6, "c": 6})
    assert schedule.find_end(decided, 6, 6.0, 0.3) == "decided"
    ends = [
        schedule.find_end(run, 6, seconds, 0.3) for seconds in (59.3, 59.5)
    ]  # two arms would take 0.6 s
    assert ends == [None, "budget"]
    for rounds, changes in (
        (3, {}),
        (6, {"budget": None}),
    ):  # three rounds say little about how much arms vary
        run = a_run_with_a_budget(rounds, **changes)
        assert schedule.decide_arms(run, rounds) is run


def test_an_arm_that_always_fails_does_not_prolong_a_run():
    """Neither with a budget nor with a precision."""
    failing = [a_failed_trial("d", number=number) for number in range(1, 7)]
    assert "d" in schedule.decide_arms(a_run_with_a_budget(6, *failing), 6).decided
    claim = Claim(name="it", text="It is so", kind="less", a="a", b="d")
    run = a_run(
        *a_measured_run(0.001).trials,
        *failing,
        rounds=5,
        precision=0.03,
        claims=[claim],
    )
    assert schedule.find_end(run, 6, 1.0) == "precision"


def test_the_estimate_of_a_run_holds_its_warm_up_and_connections_or_is_its_budget():
    def estimate(strategy: str, **workload) -> float:
        trial = a_trial(strategy)
        run = a_run(
            trial, workloads={trial.planned.workload: make_workload(**workload)}
        )
        return schedule.estimate_seconds(run.experiment)

    slow = {"requests": 10, "delay": Delay.parse("2s")}
    assert estimate("http.client", **slow, warmup=10) - estimate(
        "http.client", **slow, warmup=0
    ) == pytest.approx(20)
    few, many = (
        estimate("aiohttp@workers", duration=1.0, concurrency=count)
        for count in (10, 1000)
    )
    assert many - few > 1
    assert schedule.estimate_seconds(a_run(a_trial(), budget=60.0).experiment) >= 60
    plan = planned("http.client", rounds=1, warmup=10, requests=20).experiment
    slow = schedule.estimate_seconds(plan, answer=9.0) - schedule.estimate_seconds(plan)
    assert slow == pytest.approx(30 * 9, rel=0.01)
