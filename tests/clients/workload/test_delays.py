"""Delays: the distributions, and what decides the delay of a request. tests/servers compares the grammar."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.workload.delays import Delay

MANY = 20_000


@pytest.mark.parametrize(
    ("text", "share", "seconds"),
    [
        ("uniform:50ms,150ms", 0.25, 0.075),
        ("normal:100ms,10ms", 0.5, 0.1),
        ("normal:100ms,10ms", 0.975, 0.11959963984540054),
        ("normal:10ms,20ms", 0.5, 0.0179374235),  # the part below 0 is cut off
        ("lognormal:100ms,0.3", 0.5, 0.1),
        ("lognormal:100ms,0.3", 0.9, 0.1 * math.exp(0.3 * 1.2815515655446)),
        ("exponential:100ms", 0.9, 0.1 * math.log(10)),
    ],
)
def test_quantiles_are_those_of_the_named_distribution(text, share, seconds):
    assert Delay.parse(text).quantile(share) == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize("text", ["uniform:0,1s", "normal:10ms,20ms"])
def test_draws_follow_the_quantiles(text):
    """A Kolmogorov-Smirnov test, Smirnov (1948): chance exceeds 1.9495 / √n in one case of 1,000."""
    delay = Delay.parse(text)
    drawn = np.sort([delay.at(7)(number) for number in range(MANY)])
    shares = np.interp(drawn, [delay.quantile(share) for share in np.arange(1, MANY) / MANY], np.arange(1, MANY) / MANY)
    assert np.abs(shares - np.arange(MANY) / MANY).max() < 1.9495 / math.sqrt(MANY)
    assert drawn[0] >= 0


def test_the_delay_of_a_request_depends_on_seed_and_number_only():
    forwards = [Delay.parse("uniform:0,1s").at(1)(number) for number in range(1000)]
    backwards = [Delay.parse("uniform:0,1s").at(1)(number) for number in reversed(range(1000))]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 1000
    assert not set(forwards) & {Delay.parse("uniform:0,1s").at(2)(number) for number in range(1000)}


@pytest.mark.parametrize("text", ["120ms", "0ms", "lognormal:60s,0.1234567890123456", "exponential:1.5ms"])
def test_a_delay_is_shown_as_it_is_read(text):
    """A run file holds the text without a lost digit, so that a run that goes on draws the same delays."""
    delay = Delay.parse(text)
    assert Delay.parse(str(delay)) == delay
    assert str(delay) == text
