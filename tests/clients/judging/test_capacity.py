"""Which trials hold their rate, and the capacities that follow from a run's probes."""

from __future__ import annotations

import pytest

from clientlab.analysis.standings import GroupKey
from clientlab.errors import LabError
from clientlab.judging.capacity import capacities, equal_load, why_not_held
from clientlab.judging.cautions import cautions_of
from clientlab.judging.comparison import compare
from clientlab.judging.ranking import ranked
from clientlab.reports.headline import answers_of
from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.figures import BY_KEY
from clients.documents import a_failed_trial, a_run, a_searched_trial
from clients.searched_runs import FIRST, SEARCH, a_searched_run, probes_of

GROUP = GroupKey("workload", "aiohttp", "direct")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"p99": 0.25}, "p99 250 ms"),
        ({"p99": 0.1, "at_least": ["p99", "p999", "max"], "errors": {"dropped": 8}}, "p99 ≥ 100 ms"),
        ({"errors": {"reset": 10}}, "errors 1.00 %"),
        ({"achieved_per_second": 189.0}, "189 of 200 requests/s were sent"),
        ({"achieved_per_second": 190.5}, None),
        ({"served": 198.5}, None),
        ({"served": 195.0}, "the backlog grew by 11 requests in half the trial"),
        ({"over_time": [], "load_over_time": []}, "the backlog grew until the schedule ended"),
    ],
)
def test_a_trial_holds_its_rate_while_its_conditions_hold_and_no_backlog_grows(changes, why):
    """5 requests a second that are not served make a backlog of 12 in half of 5 s, with p99 still low."""
    assert why_not_held(a_searched_trial("urllib3", 1, 200.0, **changes), SEARCH) == why


def test_a_trial_that_failed_holds_nothing():
    """A failed trial does not hold its rate, and the reason names the failure."""
    assert why_not_held(a_failed_trial("urllib3", "none succeeded"), SEARCH) == "the trial failed: none succeeded"


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


def test_the_probe_that_shows_the_limit_did_not_hold_its_rate():
    """Even where the first probe at that rate was lucky: of three, two decide."""
    lucky = a_searched_trial("pycurl", 1, 204.0, probe=True)
    (one,) = capacities(a_run(lucky, *probes_of("pycurl", 1, 200.0), workloads={"workload": FIRST}, find_max=SEARCH))[
        GROUP
    ]
    (search,) = one.searches
    assert search.bracket.failed == 204.0
    assert why_not_held(search.limit, SEARCH) is not None


def test_probes_count_in_no_figure_and_arms_are_ranked_across_concurrency():
    """At equal load, how many requests a strategy has in flight is a part of it."""
    run = a_searched_run(TWO)
    assert len(run.trials) == 6
    ((_, rows),) = ranked(run).items()
    assert [(row.name, row.rounds) for row in rows] == [("pycurl", 3), ("urllib3", 3)]
    assert rows[1].ratio is not None
    assert BY_KEY["capacity"].over_rounds(run.trials) == pytest.approx(150.5, abs=0.5)


def test_an_arm_without_a_capacity_and_a_search_that_ended_early_are_cautions():
    """The first with the lowest rate that it was tried at, the other with both ends."""
    none = [a_searched_trial("none", 1, rate, p99=0.3, probe=True) for rate in (100, 100, 50, 50, 25, 25)]
    none += [a_searched_trial("none", 1, rate, p99=0.3, probe=True) for rate in (12.5, 12.5, 6.25, 6.25, 4.0, 4.0)]
    early = [a_searched_trial("early", 1, rate, probe=True) for rate in (100, 200, 400)]
    run = a_run(
        *none, *early, rounds=1, workloads={"workload": FIRST},
        find_max=CapacitySearch(conditions="p99<250ms", most_probes=3),
    )  # fmt: skip
    texts = {caution.kind: caution.text for caution in cautions_of(run)}
    assert texts["search-ended-early"].endswith("early in round 1 (after 3 probes; held 400/s, not held none)")
    whole = a_run(*none, rounds=1, workloads={"workload": FIRST}, find_max=CapacitySearch(conditions="p99<250ms"))
    texts = {caution.kind: caution.text for caution in cautions_of(whole)}
    assert texts["no-capacity"] == "no rate held: none in round 1 (at 4.00/s: p99 300 ms)"
    (arm,) = capacities(whole)[GROUP]
    assert (arm.typical, equal_load(SEARCH, [arm])) == (None, None)


def test_searches_are_compared_by_their_capacity_alone():
    """Each measures latencies at a rate of its own, so another figure is refused, and so are other conditions."""
    before, after = (
        a_searched_run(TWO, name="before"),
        a_searched_run({**TWO, "pycurl": [390.0, 400.0, 410.0]}, name="after"),
    )
    compared = compare(before, [after])
    assert [figure.key for figure in compared.figures] == ["capacity"]
    change = compared.others[0].changes["pycurl"]["capacity"]
    assert (change.word, change.ratio.value) == ("higher", pytest.approx(2, rel=0.05))
    assert compared.others[0].changes["urllib3"]["capacity"].word == "equal"
    with pytest.raises(LabError, match="p99: runs that search for capacities measure it at rates of their own"):
        compare(before, [after], [BY_KEY["p99"]])
    with pytest.raises(LabError, match="before searches with p99<250ms,errors<1%, and other with p99<9ms"):
        compare(before, [a_searched_run(TWO, "p99<9ms", name="other")])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("p99", "'p99' is not a condition; write a figure and what it must stay below, as 'p99<250ms,errors<0.1%'"),
        ("p98<1s", "'p98' is not one of mean, p50"),
        ("throughput>5", "'throughput' is not one of mean"),
        ("p99>250ms", "'p99>250ms': a strategy holds a rate while p99 is low; write p99<250ms"),
        ("p99<=1s", "'p99<=1s': a strategy holds a rate while p99 is low; write p99<1s"),
        ("p99<250", "'p99<250': write it in us or µs or ms or s or m"),
        ("errors<0%", "'errors<0%': nothing is less than 0; write a limit above 0"),
        ("p99<1s,p99<2s", "p99 has two limits"),
        ("p99<1s,", "'' is not a condition"),
    ],
)
def test_conditions_that_cannot_be_read_are_refused(text, why):
    """Each with what to write instead."""
    with pytest.raises(ValueError, match=r"conditions\n.*") as refused:
        CapacitySearch(conditions=text)
    assert why in str(refused.value)
