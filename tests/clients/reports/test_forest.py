"""Forest plots: each arm's ratio with its interval, against 1 and the band in which two arms are equal."""

from __future__ import annotations

from itertools import pairwise

import pytest

from clientlab.reports.charts.chart_data import NEUTRAL, chart_groups
from clientlab.reports.charts.forest import Entry, comparisons, forest, further_comparisons
from clients.documents import a_run, a_trial

FAST, EQUAL = (1.0, 1.002, 0.998, 1.0, 1.0), (1.002, 1.0, 1.0, 1.002, 0.998)
OPEN, SLOW = (1.2, 1.0, 1.1, 1.3, 0.99), (3.0, 3.1, 3.0, 2.9, 3.0)


def a_run_of(**arms):
    """A run of arms with these wall seconds by round."""
    return a_run(*(a_trial(name, number, wall) for name, walls in arms.items() for number, wall in enumerate(walls, 1)))


def charts(**arms):
    """The plots of a run with these wall seconds by round."""
    run = a_run_of(**arms)
    return comparisons(run, chart_groups(run))


def test_each_arm_has_a_row_with_its_ratio_interval_and_word():
    """The fastest first, which is 1 and has no interval."""
    (chart,) = charts(pycurl=FAST, urllib3=EQUAL, niquests=SLOW)
    assert [row.name for row in chart.rows] == ["pycurl", "urllib3", "niquests"]
    assert [row.value.rpartition(" ")[2] for row in chart.rows] == ["1", "equal", "slower"]
    assert [row.first for row in chart.rows] == [True, False, False]
    assert [row.span is None for row in chart.rows] == [True, False, False]


def test_points_lie_within_their_intervals_and_1_within_the_band():
    """All on one axis."""
    (chart,) = charts(pycurl=FAST, urllib3=EQUAL, niquests=SLOW)
    low, high = chart.band
    assert low < chart.line < high
    points = [row.dots[0] for row in chart.rows]
    assert all(before <= after for before, after in pairwise(points))
    equal, slower = (row.span for row in chart.rows[1:])
    assert low <= equal[0] <= points[1] <= equal[1] <= high
    assert chart.line < slower[0] <= points[2] <= slower[1]


def test_an_interval_that_leaves_the_band_and_includes_1_is_undecided():
    """However close to 1 the ratio is."""
    (chart,) = charts(pycurl=FAST, requests=OPEN)
    low, high = chart.rows[1].span
    assert low < chart.line < chart.band[1] < high
    assert chart.rows[1].value.endswith(" undecided")


def test_p99_and_cpu_time_have_a_chart_each():
    """Beside those of the fastest arm, with intervals."""
    run = a_run_of(pycurl=FAST, urllib3=EQUAL)
    p99, cpu = further_comparisons(run, chart_groups(run))
    assert [chart.title.rpartition(" · ")[2] for chart in (p99, cpu)] == [
        "99th percentile of latency",
        "CPU time per request",
    ]
    for chart in (p99, cpu):
        assert [(row.name, row.value) for row in chart.rows] == [
            ("pycurl", "1"),
            ("urllib3", "1.00 (1.00 to 1.00) equal"),
        ]


def test_an_interval_that_is_far_wider_than_the_ratios_is_cut_and_named():
    """It would press all points together."""
    wide = Entry("wide", NEUTRAL, 1.1, (0.01, 900.0), "undecided")
    chart = forest("title", [Entry("base", NEUTRAL, 1.0, None, "", first=True), wide], "axis")
    assert chart.rows[1].span == (0.0, 100.0)
    assert chart.notes == ["The interval ends beyond the chart for wide."]


@pytest.mark.parametrize("arms", [{}, {"pycurl": FAST}])
def test_without_two_arms_there_is_no_plot(arms):
    """Nothing is compared."""
    assert charts(**arms) == []
