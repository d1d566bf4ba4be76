"""Values that users write as text: delays, rates and links. tests/servers compares the
grammar of delays.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.errors import FieldError
from clientlab.experiments.experiment import validate_workload
from clientlab.workload.values import Delay, Statuses, parse_bandwidth, parse_rtt

MANY = 20_000


@pytest.mark.parametrize(
    ("text", "share", "seconds"),
    [
        ("uniform:50ms,150ms", 0.25, 0.075),
        ("normal:100ms,10ms", 0.975, 0.11959963984540054),
        ("normal:10ms,20ms", 0.5, 0.0179374235),  # the part below 0 is cut off
        ("lognormal:100ms,0.3", 0.9, 0.1 * math.exp(0.3 * 1.2815515655446)),
        ("exponential:100ms", 0.9, 0.1 * math.log(10)),
    ],
)
def test_a_delay_has_the_quantiles_of_its_distribution(text, share, seconds):
    assert Delay.parse(text).quantile(share) == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize("text", ["uniform:0,1s", "normal:10ms,20ms"])
def test_draws_follow_the_quantiles(text):
    """A Kolmogorov-Smirnov test, Smirnov (1948): chance exceeds 1.9495 / √n in one case
    of 1,000.
    """
    delay = Delay.parse(text)
    draw = delay.at(7)
    drawn = np.sort([draw(number) for number in range(MANY)])
    ranks = np.arange(MANY) / MANY
    quantiles = [delay.quantile(share) for share in ranks[1:]]
    shares = np.interp(drawn, quantiles, ranks[1:])
    assert np.abs(shares - ranks).max() < 1.9495 / math.sqrt(MANY)
    assert drawn[0] >= 0


def test_the_delay_of_a_request_depends_only_on_seed_and_number():
    delay = Delay.parse("uniform:0,1s")
    forwards = [delay.at(1)(number) for number in range(1000)]
    backwards = [delay.at(1)(number) for number in reversed(range(1000))]
    others = {delay.at(2)(number) for number in range(1000)}
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 1000
    assert not set(forwards) & others


@pytest.mark.parametrize(
    "text", ["120ms", "0ms", "lognormal:60s,0.1234567890123456", "exponential:1.5ms"]
)
def test_a_delay_is_written_as_it_was_read(text):
    """A run file contains all digits, so that a resumed run draws the same delays."""
    assert str(Delay.parse(text)) == text
    assert Delay.parse(str(Delay.parse(text))) == Delay.parse(text)


@pytest.mark.parametrize(
    "fields", [{"rate": "5/h"}, {"stages": "1s:5/s"}, {"stages": "0s:5/s,0s:6/s"}]
)
def test_a_document_with_an_invalid_rate_or_invalid_stages_is_refused(fields):
    with pytest.raises(FieldError, match=next(iter(fields))):
        validate_workload(fields)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_rtt, "35ms", 0.035),
        (parse_rtt, "0ms", 0.0),
        (parse_rtt, "0.1", 0.1),
        (parse_bandwidth, "20mbit", 2e7),
        (parse_bandwidth, "512kbit", 512e3),
        (parse_bandwidth, "1.5Mbit/s", 1.5e6),
    ],
)
def test_the_parts_of_a_link_are_parsed_to_seconds_and_bits_per_second(
    parse, text, value
):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_rtt, "-1ms"),
        (parse_rtt, "35"),
        (parse_rtt, "nan"),
        (parse_bandwidth, "0mbit"),
        (parse_bandwidth, "20"),
        (parse_bandwidth, "20mbps"),
        (parse_bandwidth, "101gbit"),
    ],
)
def test_a_link_out_of_range_or_in_another_unit_is_refused(parse, text):
    """35 without a unit is 35 seconds.

    Bytes per second (``20mbps`` to tc) are not mistaken for bits.
    """
    with pytest.raises(ValueError, match="write "):
        parse(text)


@pytest.mark.parametrize(
    "text", ["2xx,404", "200-299, 404", "2XX,404-404", "200-250,240-299,404"]
)
def test_statuses_are_classes_codes_and_ranges(text):
    found = validate_workload({"expect": text}).reading.expect
    statuses = [status for status in range(1000) if status in found]
    assert statuses == [*range(200, 300), 404]
    assert Statuses.parse(str(found)) == found
    assert 404 in validate_workload({"expect": 404}).reading.expect


@pytest.mark.parametrize(
    "text", ["299-200", "ok", "1xx", "2xx,", "600", "20", "200-", "2xx-4xx", ""]
)
def test_statuses_that_cannot_be_meant_are_refused(text):
    with pytest.raises(ValueError, match="write "):
        Statuses.parse(text)
