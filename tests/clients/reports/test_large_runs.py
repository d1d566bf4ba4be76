"""Runs with more arms than can be compared are refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from clientlab.analysis.standings import typical_levels
from clientlab.results.plan import MOST_ARMS
from clients.documents import a_run, a_trial


def arms(count: int):
    """A run of so many arms, each with a value of its own on an axis."""
    return [a_trial(f"urllib3?pool={number + 1}", arm=f"arm {number}", order=number) for number in range(count)]


def test_more_arms_than_a_run_may_have_are_refused():
    """In the line that names the field."""
    plan = a_run(*arms(2)).experiment
    many = [plan.arms[0].model_copy(update={"name": f"a{place}"}) for place in range(MOST_ARMS + 1)]
    with pytest.raises(ValidationError, match="arms"):
        type(plan).model_validate(plan.model_dump() | {"arms": many})


def test_levels_of_arms_that_have_no_round_in_common_are_those_of_their_medians():
    """Two sets of arms: within each the ratios decide, and between the two the arms' own medians."""
    levels = typical_levels([{1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0}, {3: 8.0}, {3: 16.0, 4: 16.0}])
    assert levels == pytest.approx([0.0, 0.693, 2.079, 2.773], abs=1e-3)
