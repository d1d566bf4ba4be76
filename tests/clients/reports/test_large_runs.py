"""Runs with more arms or points than can be compared are refused in a line."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from clientlab.analysis.standings import typical_levels
from clientlab.results.plan import MOST_ARMS, MOST_POINTS, Claim
from clients.documents import a_run, a_trial


def arms(count: int):
    """A run of so many arms, each with a value of its own on an axis."""
    return [a_trial(f"urllib3?pool={number + 1}", arm=f"arm {number}", order=number) for number in range(count)]


def test_more_arms_or_points_than_a_run_may_have_are_refused():
    """In the line that names the field."""
    run = a_run(*arms(2))
    one = run.experiment.arms[0]
    plan = run.experiment.model_dump()

    def refused(says: str, **changes) -> None:
        with pytest.raises(ValidationError, match=says):
            type(run.experiment).model_validate(plan | changes)

    refused("arms", arms=[one.model_copy(update={"name": f"a{place}"}) for place in range(MOST_ARMS + 1)])
    points = [one.model_copy(update={"name": f"a{place}", "axes": {"pool": place}}) for place in range(MOST_POINTS + 1)]
    refused(f"axis 'pool' has {MOST_POINTS + 1} values", arms=points)


def test_a_sweep_with_two_arms_at_one_value_is_refused():
    """Its claim would have fewer points than arms, and perhaps none between the ends."""
    plan = a_run(*arms(3)).experiment
    points = [one.model_copy(update={"axes": {"pool": value}}) for one, value in zip(plan.arms, (1, 2, 2), strict=True)]
    claim = Claim(name="x", text="x", kind="optimum", arms=[one.name for one in points])
    with pytest.raises(ValidationError, match="claim 'x': two of its arms have the same value on the axis"):
        type(plan).model_validate(plan.model_dump() | {"arms": points, "claims": [claim]})


def test_levels_of_arms_that_have_no_round_in_common_are_those_of_their_medians():
    """Two sets of arms: within each the ratios decide, and between the two the arms' own medians."""
    levels = typical_levels([{1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0}, {3: 8.0}, {3: 16.0, 4: 16.0}])
    assert levels == pytest.approx([0.0, 0.693, 2.079, 2.773], abs=1e-3)
