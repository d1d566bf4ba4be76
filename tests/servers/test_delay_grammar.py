"""The lab and the upstreams never import each other, but have the same grammar of
delays.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from clientlab.workload.values import Delay
from mockupstream import delays as upstream

CONSTANT = {
    "0": 0.0,
    "0ms": 0.0,
    "120ms": 0.12,
    "35ms": 0.035,
    "0.12": 0.12,
    ".5": 0.5,
    "2s": 2.0,
    "2.s": 2.0,
    "1m": 60.0,
    "5us": 5e-6,
    "1e-3": 0.001,
    "1e-05": 1e-5,
    "2e3ms": 2.0,
    "1e9": 1e9,
    " 3s ": 3.0,
    "1000000": 1e6,
}
DRAWN = [
    "uniform:50ms, 150ms",
    "uniform:1m,1m",
    "normal:100ms,10ms",
    "normal:10ms,20ms",
    "normal:1s,0",
    "lognormal:100ms,0.3",
    "lognormal:1s,10",
    "exponential:100ms",
]
REFUSED = [
    "",
    " ",
    "soon",
    "ms",
    "msms",
    "-1",
    "+1",
    "1 s",
    "120 ms",
    "1h",
    "10x",
    "1_0",
    "nan",
    "inf",
    "1,5",
    "1e",
    "e3",
    "1e10",
    "1e400",
    "1E3",
    "1s2ms",
    "\u0661",
    "9" * 400,
    "9" * 5000,
    "uniform:1s",
    "uniform:2s,1s",
    "uniform:",
    "uniform:1s,2s,3s",
    "normal:1s",
    "normal:a,b",
    "lognormal:0,1",
    "lognormal:0ms,1",
    "lognormal:1s,30ms",
    "lognormal:1s,11",
    "lognormal:1s,-1",
    "lognormal:1s,",
    "exponential:",
    "exponential:0",
    "exponential:0ms",
    "exponential:1s,2s",
    "gamma:1s,2",
    "uniform :1s,2s",
    ":1s",
    "uniform:1s,2s:3s",
]


def test_a_constant_delay_is_exactly_the_same_in_both():
    for text, seconds in CONSTANT.items():
        assert Delay.parse(text) == Delay("", (seconds,)), text
        fixed = upstream.parse(text)
        assert (fixed.is_fixed, fixed.stated, fixed.draw(random.Random())) == (
            True,
            seconds,
            seconds,
        ), text


@pytest.mark.parametrize("text", DRAWN)
def test_a_random_delay_has_the_same_distribution_in_both(text):
    source, delay = random.Random(1), upstream.parse(text)
    drawn = np.log(1e-9 + np.array([delay.draw(source) for _ in range(20_000)]))
    shares = [0.1, 0.25, 0.5, 0.75, 0.9]
    quantile = Delay.parse(text).quantile
    expected = np.log(1e-9 + np.array([quantile(share) for share in shares]))
    spread = max(drawn.std(), 1e-9)
    assert np.abs(np.quantile(drawn, shares) - expected).max() / spread < 0.05


@pytest.mark.parametrize(
    "parse", [Delay.parse, upstream.parse], ids=["lab", "upstream"]
)
def test_both_refuse_the_same_texts(parse):
    for text in REFUSED:
        with pytest.raises(ValueError, match=r"\w"):
            parse(text)
