"""Numbers for readers."""

from __future__ import annotations

from typing import get_args

import pytest

from clientlab import units
from clientlab.statistics.ratios import Ratio


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (3.3e-9, "3.30 ns"),
        (1.5e-6, "1.50 µs"),
        (0.0123456, "12.3 ms"),
        (-0.002, "-2.00 ms"),
        (0.9999, "1.00 s"),
        (12345, "12,345 s"),
    ],
)
def test_seconds_have_three_digits_in_a_suitable_unit(seconds, text):
    assert units.time(seconds) == text


@pytest.mark.parametrize(
    ("value", "interval", "text"),
    [
        (1.5, (1.234, 1.816), "1.50 (1.23 to 1.82)"),
        (1.5, None, "1.50"),
        (1.0023, (1.0004, 1.0042), "1.0023 (1.0004 to 1.0042)"),
        (0.9977, (0.9958, 0.99962), "0.9977 (0.9958 to 0.9996)"),
        (1.0, (1.0, 1.0), "1.00 (1.00 to 1.00)"),
    ],
)
def test_a_ratio_has_enough_digits_to_show_whether_its_interval_includes_1(
    value, interval, text
):
    low, high = interval or (None, None)
    assert (
        units.ratio(value, interval)
        == units.ratio_of(Ratio(value, low, high, 3))
        == text
    )


def test_every_unit_has_a_format_and_unknown_differs_from_zero():
    assert units.ratio(None) == units.ratio_of(None) == "–"
    for unit in get_args(units.Unit):
        assert units.of_unit(None, unit) == "–"
        assert units.of_unit(0, unit).startswith("0")
        assert units.WRITTEN[unit]
    assert units.of_unit(0.0123, "seconds") == "12.3 ms"
    assert units.of_unit(1234.5, "per-second") == "1,234"
    assert units.of_unit(1536 * 1024, "bytes") == "1.50 MiB"
    assert units.of_unit(20.97, "bytes-per-second") == "21.0 B/s"
    assert units.of_unit(1234, "count") == "1,234"
    assert units.of_unit(1.5, "count") == "1.50"
    assert units.of_unit(0.005, "share") == "0.500 %"
    assert units.digits(float("inf")) == "inf"


def test_the_lower_end_of_a_ratio_has_as_many_digits_as_beside_it():
    """An arm is at least 1.004 times as fast, and not at least 1.00 times."""
    assert units.lower_end((1.004, 1.033)) == "1.004"
    assert units.lower_end((1.11, 1.49)) == "1.11"
