"""Arms that differ in their link only: ranked apart, and paired by round."""

from __future__ import annotations

import math

import pytest

from clientlab.judging.contrasts import contrasts, link_pairs
from clientlab.judging.ranking import ranked
from clientlab.results.document import Run
from clientlab.workload.link import Link
from clients.documents import a_run, a_trial

NEAR, FAR = Link(0.001), Link(0.1, 2e7)


def behind_links(rounds=(1, 10, 2, 5, 3, 7)):
    """A run of an arm behind two links and without one; each takes twice as long as the one before."""
    trials = [
        a_trial("urllib3", number, level * factor, arm=f"urllib3 {link}", link=link)
        for number, level in enumerate(rounds, start=1)
        for link, factor in ((None, 1.0), (NEAR, 2.0), (FAR, 4.0))
    ]
    return a_run(*trials)


def test_rounds_differ_by_a_factor_of_ten_and_the_ratio_within_them_is_exact():
    """Each link beside the first arm of the experiment, which has none here."""
    run = behind_links()
    pairs = link_pairs(run.experiment.arms)
    found = contrasts(run, pairs)
    assert [(one.arm.link, one.base.link) for one in found] == [(NEAR, None), (FAR, None)]
    assert [one.time.value for one in found] == [pytest.approx(2.0), pytest.approx(4.0)]
    assert all(math.isclose(*one.time.interval) for one in found)


def test_arms_are_ranked_behind_their_link_only():
    """A group for each link, which its title names; a link of the same values read from a file is the same."""
    run = Run.model_validate_json(behind_links().model_dump_json())
    assert [key.link for key in ranked(run)] == [None, "1 ms", "100 ms, 20 Mbit/s"]
