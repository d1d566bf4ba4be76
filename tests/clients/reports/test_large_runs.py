"""Runs with far more arms, rounds, claims and points than anybody measures: they are refused in a line, or reported."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from clientlab.analysis.standings import typical_levels
from clientlab.results.plan import MOST_ARMS, MOST_CLAIMS, MOST_PAIRS, MOST_POINTS, Claim
from clients.documents import a_run, a_trial


def arms(count: int):
    """A run of so many arms, each with a value of its own on an axis."""
    return [a_trial(f"urllib3?pool={number + 1}", arm=f"arm {number}", order=number) for number in range(count)]


def test_more_arms_claims_or_points_than_a_run_may_have_are_refused():
    """In the line that names the field."""
    run = a_run(*arms(2))
    one, other = run.experiment.arms
    plan = run.experiment.model_dump()

    def refused(says: str, **changes) -> None:
        with pytest.raises(ValidationError, match=says):
            type(run.experiment).model_validate(plan | changes)

    claim = Claim(name="x", text="x", kind="less", a=one.name, b=other.name)
    refused("arms", arms=[one.model_copy(update={"name": f"a{place}"}) for place in range(MOST_ARMS + 1)])
    refused("claims", claims=[claim.model_copy(update={"name": f"c{place}"}) for place in range(MOST_CLAIMS + 1)])
    points = [one.model_copy(update={"name": f"a{place}", "axes": {"pool": place}}) for place in range(MOST_POINTS + 1)]
    refused(f"axis 'pool' has {MOST_POINTS + 1} values", arms=points)
    names = [point.name for point in points[:MOST_POINTS]]
    sweeps = [Claim(name=f"c{place}", text="x", kind="optimum", arms=names) for place in range(5)]
    assert len(names) * (len(names) - 1) // 2 * 5 > MOST_PAIRS
    refused("claims of sweeps name 10,080 pairs of arms", arms=points[:MOST_POINTS], claims=sweeps)


def test_a_sweep_with_two_arms_at_one_value_is_refused():
    """Its claim would have fewer points than arms, and perhaps none between the ends."""
    plan = a_run(*arms(3)).experiment
    points = [one.model_copy(update={"axes": {"pool": value}}) for one, value in zip(plan.arms, (1, 2, 2), strict=True)]
    claim = Claim(name="x", text="x", kind="optimum", arms=[one.name for one in points])
    with pytest.raises(ValidationError, match="claim 'x': two of its arms have the same value on the axis"):
        type(plan).model_validate(plan.model_dump() | {"arms": points, "claims": [claim]})


def test_trials_of_as_many_arms_as_rounds_are_refused():
    """Figures are compared in tables of arms by rounds, which would take 8 bytes for each field."""
    run = a_run(*(a_trial("urllib3", number, arm=f"arm {number}", order=number) for number in range(1, 1001)))
    assert run.experiment.rounds == 1000
    beyond = [a_trial("urllib3", 1000 + number, arm="arm 1", order=2000 + number) for number in (1, 2)]
    document = dict(run) | {"trials": [*run.trials, *beyond]}
    with pytest.raises(ValidationError, match="1,002,000 arms and rounds"):
        type(run).model_validate(document)


def test_levels_of_arms_that_have_no_round_in_common_are_those_of_their_medians():
    """Two sets of arms: within each the ratios decide, and between the two the arms' own medians."""
    levels = typical_levels([{1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0}, {3: 8.0}, {3: 16.0, 4: 16.0}])
    assert levels == pytest.approx([0.0, 0.693, 2.079, 2.773], abs=1e-3)
