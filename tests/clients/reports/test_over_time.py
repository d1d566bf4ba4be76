"""Requests per second, errors and p99 over the measured time: what charts and
sparklines show of an outage.
"""

from __future__ import annotations

from clientlab.reports.charts import courses
from clientlab.reports.rows import groups_of
from clientlab.results.trial import Slice, Trial
from clients.documents import a_run, a_trial, rounds, with_changes
from clients.reports.views import shown

OUTAGE = range(20, 30)


def a_minute(
    strategy: str, number: int = 1, wall: float = 60.0, outage: range = range(0)
) -> Trial:
    """A trial of 100 requests per second, all of which fail during the outage."""
    slices = [Slice(at=at, requests=100, errors=0, p99=0.01) for at in range(60)]
    for at in outage:
        slices[at] = Slice(at=at, requests=100, errors=100)
    trial = a_trial(strategy, number, wall, requests=6000, over_time=slices)
    if outage:
        trial = with_changes(trial, errors={"reset": 100 * len(outage)})
    return trial


def drawn(*trials: Trial) -> dict[str, object]:
    """The charts by the first word of their title."""
    run = a_run(*trials)
    return {chart.title.split()[0]: chart for chart in courses(run, groups_of(run))}


def by_name(chart) -> dict[str, object]:
    return {row.name: row for row in chart.rows}


def test_an_outage_is_in_the_course_of_the_arm_that_had_it():
    charts = drawn(a_minute("steady"), a_minute("interrupted", outage=OUTAGE))
    assert [*charts] == ["Requests", "Errors", "p99"]
    assert [chart.high for chart in charts.values()] == [60.0] * 3
    rates = by_name(charts["Requests"])
    errors = by_name(charts["Errors"])
    p99 = by_name(charts["p99"])
    assert [*errors] == ["interrupted"]
    assert rates["steady"].text == "100 to 100"
    assert rates["interrupted"].text == "0 to 100"
    assert errors["interrupted"].text == "0 to 100 %"
    assert p99["steady"].text == "10.0 ms to 10.0 ms"
    assert p99["interrupted"].text == "10.0 ms to 10.0 ms"
    expected = [float(at not in OUTAGE) for at in range(60)]
    assert rates["interrupted"].heights == expected
    assert errors["interrupted"].heights == [1 - height for height in expected]


def test_the_rounds_of_an_arm_follow_each_other_and_missing_ones_are_empty():
    """The axis counts rounds if trials take unlike times, as with a number
    of requests.
    """
    whole = [a_minute("whole", number) for number in (1, 2, 3)]
    chart = drawn(*whole, a_minute("stopped", wall=30.0))["Requests"]
    stopped = by_name(chart)["stopped"]
    assert chart.high == 3.0
    assert chart.tick(2.0) == "2 rounds"
    first_round = len(stopped.heights) // 3
    assert set(stopped.heights[:first_round]) == {1.0}
    assert set(stopped.heights[first_round:]) == {0.0}
    assert stopped.text == "200 to 200"


def test_an_arm_with_few_rounds_does_not_make_the_parts_coarse():
    """A part has 20 requests or more in each arm that has any: here, seven rounds of
    100 in 35 parts.
    """
    pairs = [Slice(at=at, requests=2, errors=0) for at in range(40)]
    few = pairs + [Slice(at=at, requests=1, errors=0) for at in range(40, 60)]
    slow = rounds("slow", 60.0, 60.0, requests=100, over_time=few)
    whole = [a_minute("whole", number) for number in range(1, 8)]
    chart = drawn(*whole, *slow)["Requests"]
    assert [len(row.heights) for row in chart.rows] == [35, 35]


def test_the_whole_report_on_a_terminal_has_sparklines():
    run = a_run(a_minute("interrupted", outage=OUTAGE))
    line, *_ = [line for line in shown(run, 80).splitlines() if "·····" in line]
    assert line.split()[0] == "interrupted"
    assert line.endswith("0 to 100")
    assert "·····" not in shown(run, 80, whole=False)


def test_a_run_without_a_course_has_no_charts():
    """Not even if all latencies of a course are unknown."""
    assert drawn(a_trial("urllib3")) == {}
    unknown = [Slice(at=at, requests=0, errors=0) for at in range(60)]
    assert drawn(a_trial("urllib3", over_time=unknown)) == {}
