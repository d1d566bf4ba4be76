"""When rounds are enough."""

from __future__ import annotations

import pytest

from clientlab.runs.document import AskedClaim
from clientlab.runs.rounds import DEFAULT_TIME_BUDGET, ended
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
    assert ended(run, 4, 1e9) is None
    assert ended(run, 5, 0.0) == "planned"


@pytest.mark.parametrize(("spread", "reason"), [(0.001, "precision"), (0.2, None)])
def test_rounds_are_added_until_the_intervals_are_narrow(spread, reason):
    """And not before the fewest are done."""
    assert ended(a_measured_run(spread), 6, 1.0) == reason
    assert ended(a_measured_run(spread), 4, 1.0) is None


@pytest.mark.parametrize(("seconds", "reason"), [(49.0, None), (51.0, "time-budget")])
def test_no_round_is_begun_that_would_end_beyond_the_time_budget(seconds, reason):
    """Judged by the pace of those before it: after six rounds, the seventh would end at 7/6 of the time."""
    assert ended(a_measured_run(0.2, time_budget=58.0), 6, seconds) == reason


def test_there_is_a_time_budget_where_none_is_named():
    """No run goes on for ever."""
    assert ended(a_measured_run(0.2), 6, DEFAULT_TIME_BUDGET) == "time-budget"


def test_the_direction_alone_ends_nothing():
    """An interval that leaves out 1 by far is not narrow: rounds go on for the ratio's sake."""
    assert ended(a_measured_run(0.1), 6, 1.0) is None


def test_a_claim_is_waited_for_until_it_is_surely_decided():
    """Its arms are in groups of their own, so that only the claim compares them."""
    claim = AskedClaim(name="it", text="It is so", kind="less", a="a", b="b")

    def run(spread: float):
        trials = a_measured_run(spread).trials
        ways = [trial.model_copy(update={"route": {"a": "direct", "b": "proxy"}[trial.arm]}) for trial in trials]
        return a_run(*ways, rounds=5, precision=0.03, claims=[claim])

    assert ended(run(0.1), 6, 1.0) == "precision"
    assert ended(run(0.9), 6, 1.0) is None


def test_an_arm_that_always_fails_is_not_waited_for():
    """No further round would tell."""
    run = a_measured_run(0.001)
    failing = [a_failed_trial("c", number=number) for number in range(1, 7)]
    claim = AskedClaim(name="it", text="It is so", kind="less", a="a", b="c")
    assert ended(a_run(*run.trials, *failing, rounds=5, precision=0.03, claims=[claim]), 6, 1.0) == "precision"
