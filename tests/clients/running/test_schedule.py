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
from clients.documents import SURROUNDINGS, a_failed_trial, a_run, a_trial, rounds
from clients.running.runs import planned


def test_every_arm_comes_once_in_each_round_and_is_first_about_as_often():
    """Each of 8 arms is first in about 100 of 800 rounds."""
    arms = list("abcdefgh")
    order = a_run(*map(a_trial, arms)).experiment.schedule(800)
    assert len(set(order)) == len(order) == 800 * len(arms)
    numbers = [number for number, _ in order]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, 801))
    firsts = Counter(arm for _, arm in order[:: len(arms)])
    assert min(firsts.values()) > 60
    assert max(firsts.values()) < 140


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
    delays = {}
    for due in schedule.find_due(run):
        ((_, workload),) = schedule.plan_turn(run, [due])
        delays[due] = [delay_of(workload)(number) for number in range(5)]
    return delays


def test_arms_on_two_servers_take_turns_even_if_each_has_a_path_of_its_own():
    servers = {"base": "http://127.0.0.1:1/a", "head": "http://127.0.0.1:2/b"}
    run = planned(
        "urllib3", more={"servers": servers, "upstreams": ["own"]}, duration=4.0
    )
    plan = run.experiment
    arms = [arm.updated(workload=f"w at {arm.server}") for arm in plan.arms]
    workloads = {arm.workload: plan.workloads["w"] for arm in arms}
    plan = plan.updated(arms=arms, workloads=workloads)
    run = run.updated(experiment=plan)
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


def a_measured_run(spread: float, **changes):
    """Two arms in six rounds.

    The second takes twice as long, `spread` more or less in alternate rounds.
    """
    longer = 2.0 * (1 + spread)
    shorter = 2.0 * (1 - spread)
    trials = [*rounds("a", *[1.0] * 6), *rounds("b", *[longer, shorter] * 3)]
    return a_run(*trials, **{"rounds": 5, "precision": 0.03} | changes)


@pytest.mark.parametrize(
    ("spread", "changes", "count", "seconds", "reason"),
    [
        (0.5, {"precision": None}, 4, 1e9, None),
        (0.5, {"precision": None}, 5, 0.0, "planned"),
        (0.2, {}, 6, 1.0, None),
        (0.001, {}, 6, 1.0, "precision"),
        (0.001, {}, 4, 1.0, None),  # fewer than the fewest
        # the seventh would end at 7/6 of the time
        (0.2, {"time_budget": 58.0}, 6, 49.0, None),
        (0.2, {"time_budget": 58.0}, 6, 51.0, "time-budget"),
        (0.2, {}, 6, schedule.DEFAULT_TIME_BUDGET, "time-budget"),
    ],
)
def test_rounds_end_as_planned_or_at_a_precision_or_before_the_time_is_over(
    spread, changes, count, seconds, reason
):
    """No round begins that would end beyond the time budget at the pace so far."""
    run = a_measured_run(spread, **changes)
    assert schedule.find_end(run, count, seconds) == reason


@pytest.mark.parametrize(
    ("ratio", "spread", "count", "reason"),
    [
        (2.0, 0.1, 6, "precision"),
        (2.0, 0.9, 6, None),
        (1.01, 0.01, 6, "precision"),
        (1.01, 0.03, 9, None),
        (1.01, 0.03, 30, "precision"),
    ],
)
def test_rounds_go_on_until_a_claim_is_settled(ratio, spread, count, reason):
    """The claim is decided, its difference is negligible, or it is known well enough.

    Only the claim compares them.
    """
    steps = (np.arange(count) * 7 % 11 - 5) / 5
    walls = ratio * (1 + spread * steps)
    trials = [
        *rounds("a", *[1.0] * count, route="direct"),
        *rounds("b", *walls.tolist(), route="proxy"),
    ]
    claim = Claim(name="it", text="It is so", kind="less", a="a", b="b")
    run = a_run(*trials, rounds=5, precision=0.5, claims=[claim])
    assert schedule.find_end(run, count, 1.0) == reason


def a_run_with_a_budget(count: int, *more, **changes):
    """Arm a is the fastest, b is close to it, and c takes twice as long.

    Rounds vary by 2 %.
    """
    noise = np.random.default_rng(7).normal(0, 0.02, (3, count))
    a, b, c = np.exp(noise).tolist()
    trials = [
        *rounds("a", *a),
        *rounds("b", *(1.02 * wall for wall in b)),
        *rounds("c", *(2.0 * wall for wall in c)),
    ]
    return a_run(*trials, *more, **{"rounds": 1, "budget": 60.0} | changes)


def test_a_budget_measures_an_arm_until_its_comparisons_are_decided():
    run = schedule.decide_arms(a_run_with_a_budget(6), 6)
    assert run.decided == {"c": 6}
    assert {arm for _, arm in schedule.find_due(run, 7)} == {"a", "b"}
    decided = run.updated(decided={"a": 6, "b": 6, "c": 6})
    assert schedule.find_end(decided, 6, 6.0, 0.3) == "decided"
    # Two arms would take 0.6 s.
    assert schedule.find_end(run, 6, 59.3, 0.3) is None
    assert schedule.find_end(run, 6, 59.5, 0.3) == "budget"


def test_no_arm_is_decided_after_three_rounds_or_without_a_budget():
    """Three rounds say little about how much arms vary."""
    three_rounds = a_run_with_a_budget(3)
    assert schedule.decide_arms(three_rounds, 3) is three_rounds
    without_budget = a_run_with_a_budget(6, budget=None)
    assert schedule.decide_arms(without_budget, 6) is without_budget


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
        workloads = {"workload": make_workload(**workload)}
        run = a_run(a_trial(strategy), workloads=workloads)
        return schedule.estimate_seconds(run.experiment)

    delayed = {"requests": 10, "delay": Delay.parse("2s")}
    warm = estimate("http.client", **delayed, warmup=10)
    cold = estimate("http.client", **delayed, warmup=0)
    assert warm - cold == pytest.approx(20)
    few = estimate("aiohttp@workers", duration=1.0, concurrency=10)
    many = estimate("aiohttp@workers", duration=1.0, concurrency=1000)
    assert many - few > 1
    plan = a_run(a_trial(), budget=60.0).experiment
    assert schedule.estimate_seconds(plan) >= 60
    plan = planned("http.client", rounds=1, warmup=10, requests=20).experiment
    at_once = schedule.estimate_seconds(plan)
    slow = schedule.estimate_seconds(plan, answer=9.0)
    assert slow - at_once == pytest.approx(30 * 9, rel=0.01)
