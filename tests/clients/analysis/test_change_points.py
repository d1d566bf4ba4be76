"""Change points of many series: which are found, which are not, and how often nothing is mistaken for one."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.change_points import (
    change_points,
    detectable_change,
    fewest_runs,
    runs_until_shown,
    segments,
)


def _places(points):
    return [[point.at for point in one] for one in points]


def test_a_shift_amid_noise_is_found_in_its_own_series_only():
    """The others have none, and the chance of as much without a change is small."""
    series = np.random.default_rng(1).normal(0, 0.03, (12, 20))
    series[3, 10:] += 0.1
    found = change_points(series).points
    assert _places(found) == [[10] if index == 3 else [] for index in range(12)]
    assert found[3][0].chance <= 0.01


def test_every_level_of_a_series_with_three_is_found():
    """Each side of a change is looked at again."""
    series = np.random.default_rng(3).normal(0, 0.02, (1, 45))
    series[0, 15:30] += 0.1
    found = change_points(series).points
    assert _places(found) == [[15, 30]]
    assert list(segments(found[0], 45)) == [range(15), range(15, 30), range(30, 45)]


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "heavy tails", "one run in ten is an outlier"])
def test_histories_without_a_change_have_none_in_95_of_100(noise):
    """Over all their series together, which share a part of their noise. Of 100, 9 may have one by chance."""
    draw = np.random.default_rng(3)
    alarms = sum(any(change_points(_equal(draw, noise)).points) for _ in range(100))
    assert alarms <= 9


def _equal(draw, noise):
    shape = (6, 20)
    series = draw.normal(0, 0.02, shape) + draw.normal(0, 0.02, (1, 20))
    if noise == "heavy tails":
        series = 0.02 * draw.standard_t(2.5, shape)
    elif noise != "normal":
        series += (draw.random(shape) < 0.1) * draw.uniform(0.4, 1.4, shape)
    return series


@pytest.mark.slow
def test_ten_per_cent_in_the_middle_of_twenty_runs_are_found_in_nine_of_ten():
    """Runs differ by 3 % as a whole, and six series are tested."""
    draw = np.random.default_rng(4)
    found = 0
    for _ in range(60):
        series = draw.normal(0, 0.03, (6, 20))
        series[0, 10:] += np.log(1.1)
        found += any(abs(point.at - 10) <= 2 for point in change_points(series).points[0])
    assert found >= 54


def test_an_outlier_at_the_end_is_no_change():
    """Nor are two: fewer than three runs are no level."""
    series = np.random.default_rng(5).normal(0, 0.02, (1, 30))
    series[0, -2:] += 2
    assert _places(change_points(series).points) == [[]]


def test_values_that_never_differ_have_no_change_and_two_levels_have_one():
    """Counts such as connections are equal in every run, until they are not."""
    same, stepped = np.full(20, 16.0), np.repeat([16.0, 1000.0], 10)
    assert _places(change_points(np.array([same, stepped])).points) == [[], [10]]


def test_runs_without_a_value_are_passed_over():
    """The place of a change counts all runs."""
    series = np.random.default_rng(6).normal(0, 0.02, (2, 24))
    series[1, 12:] += 0.2
    series[1, [0, 5, 13]] = np.nan
    assert _places(change_points(series).points) == [[], [12]]


def test_the_same_runs_have_the_same_changes_each_time():
    """Shuffled orders come from a fixed seed."""
    series = np.random.default_rng(7).normal(0, 0.03, (3, 20))
    series[0, 8:] += 0.06
    assert change_points(series) == change_points(series)


@pytest.mark.parametrize(("series", "runs"), [(1, 8), (96, 16)])
def test_fewer_runs_than_stated_show_no_change_however_large(series, runs):
    """So many do: the split is rarer in shuffled orders than 1 in 20, for all series together."""
    assert fewest_runs(series) == runs
    draw = np.random.default_rng(8)
    for count, shown in ((runs - 2, 0), (runs, 1)):
        values = draw.normal(0, 0.02, (series, count))
        values[0, count // 2 :] += 5
        assert len(change_points(values).points[0]) == shown


def test_a_change_shows_some_runs_after_it():
    """Three at the earliest; more, the more series there are."""
    assert (runs_until_shown(20, 1), runs_until_shown(20, 96), runs_until_shown(7, 96)) == (3, 5, None)


@pytest.mark.slow
def test_the_smallest_change_that_shows_is_found_in_four_of_five():
    """About: the statement is made from one history without a change."""
    draw = np.random.default_rng(9)
    quiet = [draw.normal(0, 0.03, (6, 20)) for _ in range(20)]
    smallest = np.mean([detectable_change(series[0], change_points(series).limit) for series in quiet])
    found = 0
    for _ in range(100):
        series = draw.normal(0, 0.03, (6, 20))
        series[0, 10:] += smallest
        found += bool(change_points(series).points[0])
    assert 65 <= found <= 95
    few = draw.normal(0, 0.03, (1, 7))
    assert detectable_change(few[0], change_points(few).limit) is None
