"""Numbers as people read them."""

from __future__ import annotations

from typing import get_args

import pytest

from clientlab import units
from clientlab.analysis.ratios import Ratio


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"), (0, "0 s"), (1e-12, "0 s"), (3.3e-9, "3.30 ns"), (1.5e-6, "1.50 µs"), (999e-6, "999 µs"),
        (0.001, "1.00 ms"), (0.0123456, "12.3 ms"), (0.14, "140 ms"), (1, "1.00 s"), (12.34, "12.3 s"),
        (123.4, "123 s"), (12345, "12,345 s"), (-0.002, "-2.00 ms"), (0.9999, "1.00 s"), (9.999e-3, "10.0 ms"),
        (999.6e-6, "1.00 ms"), (0.9994, "999 ms"),
    ],
)  # fmt: skip
def test_seconds_are_shown_in_the_unit_that_suits_them(seconds, text):
    """With three significant digits, the sign, and never a power of ten."""
    assert units.time(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.00123, "0.00123"), (1.239, "1.24"), (9.999, "10.0"), (98.76, "98.8"), (1234567.8, "1,234,568")],
)
def test_three_digits_are_kept_and_whole_numbers_are_not_cut(value, text):
    """Values keep three significant digits, and integers keep all digits with separated thousands."""
    assert units.digits(value) == text
    assert units.rate(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_is_still_shown(value):
    """Rather than an error in the report of a finished run."""
    assert units.digits(value) == f"{value}"


@pytest.mark.parametrize(
    ("value", "interval", "text"),
    [
        (None, None, "–"),
        (1.5, None, "1.50"),
        (1.5, (1.234, 1.816), "1.50 (1.23 to 1.82)"),
        (0.0312, (0.03, 0.033), "0.0312 (0.0300 to 0.0330)"),
        (0.000123, (0.0001, 0.00015), "0.000123 (0.000100 to 0.000150)"),
        (123.456, (100, 150), "123 (100 to 150)"),
        (1234.4, (1100.2, 1380.9), "1,234 (1,100 to 1,381)"),
        (0.998, (0.987, 1.012), "0.998 (0.987 to 1.01)"),
    ],
)
def test_a_ratio_has_three_significant_digits_and_its_interval(value, interval, text):
    """Large or small; without an interval, the ratio alone."""
    assert units.ratio(value, interval) == text


@pytest.mark.parametrize(
    ("value", "interval", "text"),
    [
        (5.0012, (5.0001, 5.0023), "5.001 (5.000 to 5.002)"),
        (1.0023, (1.0004, 1.0042), "1.0023 (1.0004 to 1.0042)"),
        (0.9977, (0.9958, 0.99962), "0.9977 (0.9958 to 0.9996)"),
        (1.0, (1.0, 1.0), "1.00 (1.00 to 1.00)"),
        (1.0, (0.999999999, 1.000000001), "1.00000 (1.00000 to 1.00000)"),
    ],
)
def test_rounding_neither_closes_an_interval_nor_moves_an_end_to_1(value, interval, text):
    """More digits are printed, at most six: an interval above 1 shows a difference, one that includes 1 does not."""
    assert units.ratio(value, interval) == text


def test_an_estimate_is_shown_as_its_ratio_and_interval():
    """An estimate of fewer than three rounds has no interval."""
    assert units.ratio_of(Ratio(1.5, 1.234, 1.816, 3)) == "1.50 (1.23 to 1.82)"
    assert units.ratio_of(Ratio(1.5, None, None, 2)) == "1.50"
    assert units.ratio_of(None) == "–"


def test_every_unit_has_its_form():
    """Bytes in the unit of their size, counts whole where they are, shares in per cent."""
    assert units.of_unit(0.0123, "seconds") == "12.3 ms"
    assert units.of_unit(1234.5, "per-second") == "1,234"
    assert (units.of_unit(32 << 20, "bytes"), units.of_unit(1536 * 1024, "bytes")) == ("32.0 MiB", "1.50 MiB")
    assert [units.of_unit(size, "bytes") for size in (0, 7, 1023.9, 4 << 30)] == [
        "0 B",
        "7.00 B",
        "1.00 KiB",
        "4,096 MiB",
    ]
    assert units.of_unit(20.97, "bytes-per-second") == "21.0 B/s"
    assert (units.of_unit(1234, "count"), units.of_unit(1.5, "count")) == ("1,234", "1.50")
    assert (units.of_unit(0.005, "share"), units.of_unit(0, "share")) == ("0.500 %", "0")


@pytest.mark.parametrize("unit", get_args(units.Unit))
def test_an_unknown_figure_is_an_en_dash_in_every_unit(unit):
    """It was not measured; 0 is a measurement. Every unit can be written in a threshold."""
    assert units.of_unit(None, unit) == "–"
    assert units.of_unit(0, unit).startswith("0")
    assert units.WRITTEN[unit]
