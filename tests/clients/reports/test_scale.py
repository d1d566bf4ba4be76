"""Scales of the report's charts: places, ticks, and their words."""

from __future__ import annotations

from itertools import pairwise

import pytest

from clientlab import units
from clientlab.reports.charts.shapes import HALF, NARROW, Scale, even, logarithmic, shortened


def test_places_are_shares_of_the_axis():
    """Evenly or by logarithms; what lies beyond an end stands at it."""
    assert [Scale(0, 10).position(value) for value in (-1, 0, 5, 10, 11)] == [0, 0, 50, 100, 100]
    assert [Scale(1, 100, log=True).position(value) for value in (0.1, 1, 10, 100)] == pytest.approx([0, 0, 50, 100])


def test_an_even_scale_begins_at_nothing():
    """So that the lengths of bars can be compared; also where all figures are 0."""
    assert even([2.0, 4.0], room=1.0) == Scale(0.0, 4.0)
    assert even([0.0]) == Scale(0.0, 1.0)
    assert even([]) == Scale(0.0, 1.0)


def test_a_logarithmic_scale_needs_a_positive_figure():
    """Others are left out of it."""
    assert logarithmic([0.0, -1.0]) is None
    assert logarithmic([0.0, 2.0, 8.0], room=2.0) == Scale(1.0, 16.0, log=True)


@pytest.mark.parametrize(
    ("scale", "texts"),
    [
        (Scale(0, 15.6), ["0 s", "5 s", "10 s", "15 s"]),
        (Scale(0, 0.0042), ["0 s", "1 ms", "2 ms", "3 ms", "4 ms"]),
        (Scale(0.0009, 1.2, log=True), ["1 ms", "3 ms", "10 ms", "30 ms", "100 ms", "300 ms", "1 s"]),
        (Scale(0.005, 0.6, log=True), ["5 ms", "10 ms", "20 ms", "50 ms", "100 ms", "200 ms", "500 ms"]),
        (Scale(0.0061, 0.0069, log=True), ["6.2 ms", "6.4 ms", "6.6 ms", "6.8 ms"]),
    ],
)
def test_ticks_are_round_figures(scale, texts):
    """Of the range, whatever its size."""
    assert [tick.text for tick in scale.ticks(units.time)] == texts


@pytest.mark.parametrize("pixels", [NARROW, HALF])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("low", [1e-7, 1.1e-3, 0.9, 77.0])
@pytest.mark.parametrize("times", [1.001, 1.3, 9.0, 1e3, 1e7])
def test_ticks_beside_each_other_do_not_touch(low, times, log, pixels):
    """On the narrowest axis; there is always one at least."""
    ticks = Scale(low, low * times, log=log).ticks_across(units.time, pixels)
    assert ticks
    spans = [tick.span(pixels) for tick in ticks]
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(0 <= tick.position <= 100 for tick in ticks)


@pytest.mark.parametrize(
    ("text", "short"),
    [("5.00 ms", "5 ms"), ("20.0 ms", "20 ms"), ("0.50×", "0.5×"), ("1,500", "1,500"), ("0 s", "0 s")],
)  # fmt: skip
def test_noughts_that_say_nothing_are_left_out(text, short):
    """Zeros at the end of a fraction are dropped, and those of an integer stay."""
    assert shortened(text) == short
