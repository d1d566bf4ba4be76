"""Gates between runs that differ as a whole, and what a gate says that it finds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.judging.comparison import compare
from clientlab.judging.levels import (
    gate_of_comparison,
    levels_of,
    same_surroundings,
    widened,
)
from clientlab.judging.thresholds import change_threshold, judge_changes
from clientlab.results.figures import BY_KEY
from clients.documents import a_run, a_trial

WALL = BY_KEY["wall"]
DRAW = np.random.default_rng(4)


def a_level(level: float, name: str = "run", spread: float = 0.01, rounds: int = 6, **changes):
    """A run of one arm whose rounds vary around a level."""
    walls = level * np.exp(DRAW.normal(0, spread, rounds))
    return a_run(*(a_trial("urllib3", n, float(wall)) for n, wall in enumerate(walls, 1)), name=name, **changes)


def test_the_spread_of_levels_is_what_the_rounds_do_not_explain():
    """Levels that vary by 10 % are found among 40 runs; equal ones have next to no spread."""
    apart = levels_of([a_level(math.exp(DRAW.normal(0, 0.1))) for _ in range(40)], [WALL])["urllib3", "wall"]
    equal = levels_of([a_level(1.0) for _ in range(40)], [WALL])["urllib3", "wall"]
    assert (apart.runs, apart.spread) == (40, pytest.approx(0.1, rel=0.4))
    assert equal.spread < 0.004
    assert levels_of([a_level(1.0)] * 2, [WALL]) == {}


def test_runs_of_other_surroundings_or_plans_count_in_no_spread():
    """Another kernel, another arm, a run that goes on, and the run that is judged are left out."""
    base, alike = a_level(1.0, "base"), a_level(1.1, "alike")
    other = a_level(1.0, "other")
    other = other.model_copy(update={"surroundings": other.surroundings.model_copy(update={"kernel": "other"})})
    more = a_run(a_trial("urllib3"), a_trial("pycurl"), name="more")
    going = a_level(1.0, "going").model_copy(update={"status": "running"})
    judged = a_level(1.2, "judged")
    found = same_surroundings(base, [judged, other, more, going, alike, base], ["judged"])
    assert [run.run for run in found] == ["base", "alike"]


def test_a_threshold_counts_how_far_runs_differ_as_a_whole():
    """A change of 8 % is beyond the noise of the rounds, but not beyond that of the runs."""
    base, after = a_level(1.0, "base"), a_level(1.08, "after")
    levels = levels_of([base, *(a_level(level) for level in (0.94, 1.05, 0.97, 1.06))], [WALL])
    threshold = change_threshold("wall +2%")
    comparison = compare(base, [after], gated={(None, "wall")})
    outcomes = [judge_changes(widened(comparison, one), [threshold], strict=False)[0].outcome for one in ({}, levels)]
    assert outcomes == ["failed", "not sure"]
    unknown, known = (gate_of_comparison(comparison, [threshold], one) for one in ({}, levels))
    assert "how far two runs differ as a whole is unknown" in unknown[1]
    assert known[1].startswith("gate wall: 5 stored runs of these surroundings differ by up to ")
    assert unknown[0].startswith("gate wall +2%: at this noise and with these rounds it finds a change of ")
    found = [float(line.partition("a change of ")[2].partition(" %")[0]) for line in (unknown[0], known[0])]
    assert 2 < found[0] < 10 < found[1]
