"""Requests per second, errors and p99 over the measured time: what charts and
sparklines show of an outage.
"""

from __future__ import annotations

import pytest

from clientlab.reports.charts import courses
from clientlab.reports.rows import groups_of
from clientlab.results.trial import Slice, Trial
from clients.documents import a_run, a_trial
from clients.reports.views import shown

OUTAGE = range(20, 30)


def a_minute(
    strategy: str, number: int = 1, wall: float = 60.0, outage: range = range(0)
) -> Trial:
    """A trial of 100 requests per second, all of which fail during the outage."""
    slices = [
        Slice(at=place, requests=100, errors=100)
        if place in outage
        else Slice(at=place, requests=100, errors=0, p99=0.01)
        for place in range(60)
    ]
    errors = {"reset": 100 * len(outage)} if outage else {}
    return a_trial(
        strategy, number, wall, requests=6000, errors=errors, over_time=slices
    )


def drawn(*trials: Trial) -> dict[str, object]:
    """The charts by the first word of their title."""
    run = a_run(*trials)
    return {chart.title.split()[0]: chart for chart in courses(run, groups_of(run))}


def test_an_outage_is_in_the_course_of_the_arm_that_had_it():
    charts = drawn(a_minute("steady"), a_minute("interrupted", outage=OUTAGE))
    assert [chart.high for chart in charts.values()] == [60.0] * 3
    texts = {
        name: {row.name: row.text for row in chart.rows}
        for name, chart in charts.items()
    }
    assert texts == {
        "Requests": {"steady": "100 to 100", "interrupted": "0 to 100"},
        "Errors": {"interrupted": "0 to 100 %"},
        "p99": {"steady": "10.0 ms to 10.0 ms", "interrupted": "10.0 ms to 10.0 ms"},
    }
    rates, errors = (
        next(row for row in charts[name].rows if row.name == "interrupted")
        for name in ("Requests", "Errors")
    )
    expected = [float(place not in OUTAGE) for place in range(60)]
    assert rates.heights == expected
    assert errors.heights == [1 - height for height in expected]


def test_the_rounds_of_an_arm_follow_each_other_and_missing_ones_are_empty():
    """The axis counts rounds if trials take unlike times, as with a number
    of requests.
    """
    rounds = [a_minute("whole", number) for number in (1, 2, 3)]
    chart = drawn(*rounds, a_minute("stopped", wall=30.0))["Requests"]
    stopped = next(row for row in chart.rows if row.name == "stopped")
    parts = len(stopped.heights)
    assert chart.high == 3.0
    assert chart.tick(2.0) == "2 rounds"
    assert stopped.heights == pytest.approx(
        [1.0] * (parts // 3) + [0.0] * (parts - parts // 3)
    )
    assert stopped.text == "200 to 200"


def test_an_arm_with_few_rounds_does_not_make_the_parts_coarse():
    """A part has 20 requests or more in each arm that has any: here, seven rounds of
    100 in 35 parts.
    """
    few = [
        Slice(at=place, requests=2 if place < 40 else 1, errors=0)
        for place in range(60)
    ]
    slow = [
        a_trial("slow", number, 60.0, requests=100, over_time=few) for number in (1, 2)
    ]
    chart = drawn(*(a_minute("whole", number) for number in range(1, 8)), *slow)[
        "Requests"
    ]
    assert [len(row.heights) for row in chart.rows] == [35, 35]


def test_the_whole_report_on_a_terminal_has_sparklines():
    run = a_run(a_minute("interrupted", outage=OUTAGE))
    line = next(line for line in shown(run, 80).splitlines() if "·····" in line)
    assert line.split()[0] == "interrupted"
    assert line.endswith("0 to 100")
    assert "·····" not in shown(run, 80, whole=False)


def test_a_run_without_a_course_has_no_charts():
    """Not even if all latencies of a course are unknown."""
    assert drawn(a_trial("urllib3")) == {}
    unknown = [Slice(at=place, requests=0, errors=0) for place in range(60)]
    assert drawn(a_trial("urllib3", over_time=unknown)) == {}
