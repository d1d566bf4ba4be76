"""Which trials hold their rate, and the capacities that follow from a run's probes."""

from __future__ import annotations

import pytest

from clientlab.analysis.standings import GroupKey
from clientlab.judging.capacity import capacities, equal_load, why_not_held
from clientlab.reports.headline import answers_of
from clients.documents import a_searched_trial
from clients.searched_runs import SEARCH, a_searched_run

GROUP = GroupKey("workload", "aiohttp", "direct")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"p99": 0.25}, "p99 250 ms"),
        ({"errors": {"reset": 10}}, "errors 1.00 %"),
        ({"achieved_per_second": 189.0}, "189 of 200 requests/s were sent"),
        ({"served": 195.0}, "the backlog grew by 11 requests in half the trial"),
    ],
)
def test_a_trial_holds_its_rate_while_its_conditions_hold_and_no_backlog_grows(changes, why):
    """5 requests a second that are not served make a backlog of 12 in half of 5 s, with p99 still low."""
    assert why_not_held(a_searched_trial("urllib3", 1, 200.0, **changes), SEARCH) == why


TWO = {"pycurl": [199.0, 200.0, 202.0], "urllib3": [100.0, 101.0, 100.5]}


def test_capacities_are_medians_over_the_rounds_and_paired_by_round():
    """The largest first, with the share that the others have of it."""
    run = a_searched_run(TWO)
    best, other = capacities(run)[GROUP]
    assert (best.name, best.typical.value) == ("pycurl", pytest.approx(200 * 1.02**0.5))
    assert best.typical.low < 199
    assert best.typical.high > 202
    assert other.share.value == pytest.approx(0.5, rel=0.01)
    assert other.share.low < 0.5 < other.share.high < 0.55
    (answer,) = answers_of(run, [])
    assert answer.startswith("pycurl held 202 (")
    assert "Not measurably less" not in answer
    assert answer.endswith("Latencies are compared at 50.8/s, 50.0 % of the smallest capacity.")
    assert equal_load(SEARCH, [best, other]) == pytest.approx(0.5 * 100.5 * 1.02**0.5, abs=0.1)
