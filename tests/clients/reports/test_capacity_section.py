"""Capacities in reports: the chart, and the rate that was not held."""

from __future__ import annotations

import pytest

from clientlab.reports import as_html, as_markdown
from clientlab.reports.charts import bars, capacity_bars
from clientlab.reports.charts.picture import charts_of
from clients.documents import a_run, a_searched_trial, a_trial
from clients.searched_runs import FIRST, SEARCH, a_searched_run

TWO = {"urllib3": [100.0, 101.0, 100.5], "pycurl": [199.0, 200.0, 202.0]}
"""Strategy → the rates that it held, by round. 2 % more were not held."""


def test_the_chart_of_a_search_shows_capacities_the_largest_first():
    """A bar is the median, in requests per second; every round is a dot."""
    (chart,) = capacity_bars.charts(a_searched_run(TWO))
    assert chart.title == "Capacity with p99<250ms,errors<1%: workload · aiohttp upstream · direct"
    assert chart.axis == "requests per second that were held; longer is better"
    assert [(row.name, row.value, row.first) for row in chart.rows] == [
        ("pycurl", "202/s", True), ("urllib3", "102/s", False)
    ]  # fmt: skip
    assert chart.rows[0].length / chart.rows[1].length == pytest.approx(200 / 100.5)
    assert all(len(row.dots) == 3 and row.span[0] < row.length < row.span[1] for row in chart.rows)
    assert [tick.text for tick in chart.ticks][:2] == ["0/s", "50/s"]


def test_capacities_far_apart_have_a_logarithmic_axis():
    """Which the chart says."""
    (chart,) = capacity_bars.charts(a_searched_run({"a": [10_000.0] * 3, "b": [400.0] * 3}))
    assert chart.axis == "requests per second that were held (logarithmic); further right is better"
    assert chart.notes == [bars.LOGARITHMIC]
    assert [row.length for row in chart.rows] == [None, None]


def test_a_capacity_without_an_upper_end_is_a_lower_bound_and_none_is_no_bar():
    """The first arm was stopped on the way up, the second held nothing."""
    up = [a_searched_trial("up", 1, rate, probe=True) for rate in (100, 200, 400)]
    none = [a_searched_trial("none", 1, rate, p99=0.3, probe=True) for rate in (100, 100)]
    (chart,) = capacity_bars.charts(a_run(*up, *none, workloads={"workload": FIRST}, find_max=SEARCH))
    assert [(row.name, row.value) for row in chart.rows] == [("up", "≥ 400/s")]


def test_the_page_and_the_picture_have_the_chart():
    """And those of a run without a search have none."""
    run = a_searched_run(TWO)
    assert "requests per second that were held; longer is better" in as_html.render(run)
    assert charts_of(run)[0].title.startswith("Capacity with")
    assert capacity_bars.charts(a_run(a_trial())) == []


def test_the_rate_that_was_not_held_names_its_round():
    """That of the round whose capacity is nearest to the median."""
    text = as_markdown.render(a_searched_run({"pycurl": [150.0, 300.0, 200.0]}))
    assert "204/s, round 3" in text
    assert "not held in the round whose capacity is nearest to the median" in text
