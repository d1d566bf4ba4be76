"""Numbers as people read them."""

from __future__ import annotations

import pytest

from clientlab.analysis.ratios import Ratio
from clientlab.reports import units


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"), (0, "0 s"), (1e-12, "0 s"), (3.3e-9, "3.30 ns"), (1.5e-6, "1.50 µs"), (999e-6, "999 µs"),
        (0.001, "1.00 ms"), (0.0123456, "12.3 ms"), (0.14, "140 ms"), (1, "1.00 s"), (12.34, "12.3 s"),
        (123.4, "123 s"), (12345, "12,345 s"), (-0.002, "-2.00 ms"), (0.9999, "1,000 ms"), (9.999e-3, "10.00 ms"),
    ],
)  # fmt: skip
def test_seconds_are_told_in_the_unit_that_suits_them(seconds, text):
    """With three significant digits, the sign, and never a power of ten."""
    assert units.time(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.00123, "0.00123"), (1.239, "1.24"), (98.76, "98.8"), (1234567.8, "1,234,568")]
)
def test_three_digits_are_kept_and_whole_numbers_are_not_cut(value, text):
    """Thousands are apart."""
    assert units.digits(value) == text
    assert units.rate(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_still_shown(value):
    """Rather than an error in the report of a finished run."""
    assert units.digits(value) == f"{value}"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (None, "-"),
        (Ratio(1.5, None, None, 2), "1.50"),
        (Ratio(1.5, 1.234, 1.816, 3), "1.50 (1.23 to 1.82)"),
        (Ratio(123.456, 100, 150, 3), "123.46 (100.00 to 150.00)"),
    ],
)
def test_a_ratio_is_told_with_its_interval_where_it_has_one(ratio, text):
    """Two decimals each."""
    assert units.ratio(ratio) == text


def test_memory_is_in_mebibytes_and_small_times_in_microseconds():
    """Or a dash, where it was not measured."""
    assert (units.memory(32 << 20), units.memory(1536 * 1024), units.memory(None)) == ("32.0 MiB", "1.50 MiB", "-")
    assert (units.micro(313e-6), units.micro(0.0123), units.micro(None)) == ("313", "12,300", "-")
    assert units.rate(None) == "-"
