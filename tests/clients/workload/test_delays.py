"""Delays: the grammar, the distributions against their formulas, and what decides the delay of a request."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clientlab.workload import delays

SHARES = (1e-9, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1 - 1e-9)
MANY = 20_000


def _above(x: float) -> float:
    """The share of the standard normal distribution above x."""
    return math.erfc(x / math.sqrt(2)) / 2


def _cut_normal(mean: float, deviation: float):
    """Shares below and above a time, of the normal distribution without its part below 0."""
    kept = _above(-mean / deviation)
    return (
        lambda x: (_above(-(x - mean) / deviation) - (1 - kept)) / kept if mean else 1 - 2 * _above(x / deviation),
        lambda x: _above((x - mean) / deviation) / kept,
    )


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("uniform:50ms,150ms", (lambda x: (x - 0.05) / 0.1, lambda x: (0.15 - x) / 0.1)),
        ("normal:100ms,10ms", _cut_normal(0.1, 0.01)),
        ("normal:10ms,20ms", _cut_normal(0.01, 0.02)),
        ("normal:0,20ms", _cut_normal(0, 0.02)),
        (
            "lognormal:100ms,0.3",
            (lambda x: _above(-math.log(x / 0.1) / 0.3), lambda x: _above(math.log(x / 0.1) / 0.3)),
        ),
        ("exponential:100ms", (lambda x: -math.expm1(-x / 0.1), lambda x: math.exp(-x / 0.1))),
    ],
)
def test_quantiles_and_draws_are_those_of_the_named_distribution(text, shares):
    """The distribution function of each quantile is its share; and the draws pass a Kolmogorov-Smirnov test."""
    below, above = shares
    delay = delays.Delay.parse(text)
    for share in SHARES:
        quantile = delay.quantile(share)
        assert below(quantile) == pytest.approx(share, rel=1e-6, abs=1e-14)
        assert above(quantile) == pytest.approx(1 - share, rel=1e-6)
    drawn = sorted(delay.of(7, number) for number in range(MANY))
    steps = np.arange(MANY + 1) / MANY
    expected = np.array([below(seconds) for seconds in drawn])
    # Smirnov (1948), Ann. Math. Statist. 19(2): chance exceeds 1.9495 / √n in one case of 1,000.
    assert max(np.max(expected - steps[:-1]), np.max(steps[1:] - expected)) < 1.9495 / math.sqrt(MANY)
    assert drawn[0] >= 0


def test_the_delay_of_a_request_depends_on_seed_and_number_only():
    """The order of asking, and a second reading of the text, change nothing; seed and number do."""
    first = delays.Delay.parse("uniform:0,1s")
    forwards = [first.of(1, number) for number in range(1000)]
    backwards = [delays.Delay.parse("uniform:0,1s").of(1, number) for number in reversed(range(1000))]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 1000
    assert not set(forwards) & {first.of(2, number) for number in range(1000)}


@pytest.mark.parametrize("text", ["120ms", "0ms", "lognormal:60s,0.1234567890123456", "exponential:1.5ms"])
def test_a_delay_is_shown_as_it_is_read(text):
    """A run file holds the text without a lost digit, so that a run that goes on draws the same delays."""
    delay = delays.Delay.parse(text)
    assert delays.Delay.parse(str(delay)) == delay
    assert str(delay) == text
