"""What an overload does to an arm: goodput during the excess, and the time until its backlog is as before."""

from __future__ import annotations

import pytest

from clientlab.judging.cautions import cautions_of
from clientlab.judging.overload import overloads_of
from clientlab.reports import as_html, as_markdown, capacity_section
from clientlab.reports.sections import Report
from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.trial import LoadSlice, OfSearch, Slice, Trial
from clientlab.workload.workload import Workload
from clients.documents import a_run, an_open_trial

CAPACITY = 100.0
SECONDS = 5.0
SLICE = 0.5


def overloaded(share: float, *, works: float = CAPACITY, most_backlog: float = 1e9, **changes) -> Trial:
    """5 s at half of the capacity, 5 s at that share of it, 15 s at half again, in slices of half a second.

    `works`: requests per second that are done during the excess. `most_backlog`: what is beyond it is dropped.
    """
    load, ended, backlog, dropped_in_all = [], [], 0.0, 0
    for number in range(50):
        at = number * SLICE
        excess = SECONDS <= at < 2 * SECONDS
        due = (share if excess else 0.5) * CAPACITY * SLICE
        done = min(backlog + due, (works if excess else CAPACITY) * SLICE)
        dropped = max(0.0, backlog + due - done - most_backlog)
        backlog += due - done - dropped
        dropped_in_all += round(dropped)
        load.append(LoadSlice(at=at, planned=round(due), sent=round(done), dropped=round(dropped), backlog=0))
        ended.append(Slice(at=at, requests=round(done + dropped), errors=round(dropped)))
    place = OfSearch(rate=share * CAPACITY, phase="overload", capacity_per_second=CAPACITY)
    errors = {"dropped": dropped_in_all} if dropped_in_all else {}
    requests = sum(part.planned for part in load)
    return an_open_trial(
        "aiohttp@gather", 1, wall=25.0, load_over_time=load, over_time=ended, search=place, errors=errors,
        requests=requests, **changes,
    )  # fmt: skip


def of(*trials: Trial):
    """A run with these overloads."""
    workloads = {"workload": Workload(rate=100.0, duration=SECONDS, max_late=SECONDS)}
    return a_run(*trials, find_max=CapacitySearch(conditions="p99<1s", overload=(1.5, 2.0)), workloads=workloads)


@pytest.mark.parametrize(
    ("trial", "goodput", "recovery", "reaction"),
    [
        (overloaded(1.5), 100, 5.0, "queues"),  # 250 are left, and 50 a second are free to work them off
        (overloaded(2.0), 100, 10.0, "queues"),
        (overloaded(2.0, most_backlog=50), 100, 1.0, "sheds"),
        (overloaded(2.0, works=60), 60, 14.0, "collapses"),
    ],
)
def test_goodput_and_recovery_follow_from_the_backlog_over_time(trial, goodput, recovery, reaction):
    """To the length of a slice. What is left of the excess is worked off beside the calm load."""
    (found,) = overloads_of(of(trial))
    assert found.goodput == pytest.approx(goodput)
    assert found.recovery[0] == pytest.approx(recovery, abs=SLICE)
    assert found.recovery[1] is False
    assert found.reaction == reaction


def test_an_arm_that_does_not_recover_within_the_trial_took_longer_than_its_calm_part():
    """500 are left of an arm that does nothing meanwhile at three times its capacity: more than 15 s can work off."""
    (found,) = overloads_of(of(overloaded(3.0, works=0)))
    assert (found.recovery, found.reaction) == ((15.0, True), "collapses")


def test_overloads_stand_in_every_report_and_count_in_no_table_of_trials():
    """Medians over the rounds, one row for each arm and share."""
    run = of(overloaded(2.0), overloaded(1.5))
    assert (run.trials, run.measured) == ([], 2)
    (table,) = capacity_section.overload(Report(run)).parts[0].items
    cells = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    assert [(row["overload"], row["rate/s"], row["of capacity"]) for row in cells] == [
        ("150 %", "150", "100 %"),
        ("200 %", "200", "100 %"),
    ]
    assert "what it does" in as_markdown.render(run)
    assert 'id="overload"' in as_html.render(run)


def test_an_overload_that_failed_is_a_caution_with_its_reason():
    """Unless it was repeated: then the other trial counts."""
    failed = overloaded(2.0).model_copy(update={"status": "failed", "reason": "out of memory"})
    (caution,) = [one for one in cautions_of(of(failed)) if one.kind == "failed-overloads"]
    assert caution.text == "trials of an overload failed: aiohttp@gather at 200/s in round 1"
    assert caution.advice.endswith("the first reason was: out of memory")
    assert overloads_of(of(failed)) == []
    assert "failed-overloads" not in {one.kind for one in cautions_of(of(failed, overloaded(2.0)))}
