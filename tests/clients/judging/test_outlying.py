"""Outlying trials: which are named, and which are not."""

from __future__ import annotations

import numpy as np

from clientlab.judging.cautions import cautions_of
from clientlab.judging.cautions.trials import outlying_trials
from clients.documents import a_run, a_trial

ARMS = ("a", "b", "c", "d")


def drawn(rounds: int = 5, arms=ARMS, seed: int = 1, **walls: float):
    """Trials that vary by 3 % around 1 s; `walls`: of the arm of that name in round 2."""
    draw = np.random.default_rng(seed)
    figures = {(arm, number): draw.lognormal(0, 0.03) for arm in arms for number in range(1, rounds + 1)}
    figures |= {(arm, 2): wall for arm, wall in walls.items()}
    return a_run(*(a_trial(arm, number, wall) for (arm, number), wall in figures.items()))


def named(run) -> list[tuple[str, int]]:
    """Arms and rounds of the outlying trials."""
    return [(one.trial.arm, one.trial.round) for one in outlying_trials(run)]


def test_a_trial_that_took_twice_as_long_is_named_by_a_caution():
    """With its round, and how many times as long as expected it took."""
    run = drawn(b=2.0)
    assert named(run) == [("b", 2)]
    (caution,) = [one for one in cautions_of(run) if one.kind == "outlying-trials"]
    assert caution.arms == ["b"]
    assert "b in round 2 (1.9 times)" in caution.text


def test_a_slow_round_of_all_arms_is_not_outlying():
    """Ratios within the round are as they were."""
    assert named(drawn(a=2.0, b=2.05, c=1.97, d=2.0)) == []


def test_usual_noise_is_not_outlying():
    """In 100 runs of 20 trials each."""
    assert [named(drawn(seed=seed)) for seed in range(100)] == [[]] * 100


def test_one_arm_alone_and_few_rounds_need_a_larger_difference():
    """Three rounds do not show the usual spread; two show nothing."""
    assert named(drawn(3, ("a",), a=1.5)) == []
    assert named(drawn(3, ("a",), a=3.0)) == [("a", 2)]
    assert named(drawn(2, a=3.0)) == []
