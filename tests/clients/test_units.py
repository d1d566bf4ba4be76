"""Numbers as people read them."""

from __future__ import annotations

from typing import get_args

import pytest

from clientlab import units
from clientlab.analysis.ratios import Ratio


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0, "0 s"), (3.3e-9, "3.30 ns"), (1.5e-6, "1.50 µs"), (0.0123456, "12.3 ms"), (-0.002, "-2.00 ms"),
     (0.9999, "1.00 s"), (12345, "12,345 s")],
)  # fmt: skip
def test_seconds_are_shown_in_the_unit_that_suits_them(seconds, text):
    """With three significant digits, the sign, and never a power of ten."""
    assert units.time(seconds) == text


@pytest.mark.parametrize(
    ("value", "interval", "text"),
    [
        (None, None, "–"),
        (1.5, (1.234, 1.816), "1.50 (1.23 to 1.82)"),
        (1.0023, (1.0004, 1.0042), "1.0023 (1.0004 to 1.0042)"),
        (0.9977, (0.9958, 0.99962), "0.9977 (0.9958 to 0.9996)"),
        (1.0, (1.0, 1.0), "1.00 (1.00 to 1.00)"),
    ],
)
def test_rounding_neither_closes_an_interval_nor_moves_an_end_to_1(value, interval, text):
    """More digits are printed where needed: an interval above 1 shows a difference, one that includes 1 does not."""
    assert units.ratio(value, interval) == text


def test_an_estimate_is_shown_as_its_ratio_and_interval():
    """An estimate of fewer than three rounds has no interval."""
    assert units.ratio_of(Ratio(1.5, 1.234, 1.816, 3)) == "1.50 (1.23 to 1.82)"
    assert units.ratio_of(Ratio(1.5, None, None, 2)) == "1.50"
    assert units.ratio_of(None) == "–"


def test_every_unit_has_its_form():
    """An unknown figure is an en dash in every unit: it was not measured; 0 is a measurement."""
    for unit in get_args(units.Unit):
        assert units.of_unit(None, unit) == "–"
        assert units.of_unit(0, unit).startswith("0")
        assert units.WRITTEN[unit]
    assert units.of_unit(0.0123, "seconds") == "12.3 ms"
    assert units.of_unit(1234.5, "per-second") == "1,234"
    assert units.of_unit(1536 * 1024, "bytes") == "1.50 MiB"
    assert units.of_unit(20.97, "bytes-per-second") == "21.0 B/s"
    assert (units.of_unit(1234, "count"), units.of_unit(1.5, "count")) == ("1,234", "1.50")
    assert (units.of_unit(0.005, "share"), units.digits(float("inf"))) == ("0.500 %", "inf")
