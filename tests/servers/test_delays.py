"""The grammar of delays, and what is drawn from them."""

from __future__ import annotations

import random
import statistics

import pytest

from mockupstream import delays


@pytest.mark.parametrize(
    ("text", "written", "stated"),
    [
        ("0", "0ms", 0.0),
        ("120ms", "120ms", 0.12),
        ("0.12", "120ms", 0.12),
        ("2s", "2000ms", 2.0),
        (".5", "500ms", 0.5),
        ("1e-3", "1ms", 0.001),
        ("uniform:50ms,150ms", "uniform:50ms,150ms", 0.15),
        ("normal:100ms,10ms", "normal:100ms,10ms", 0.1),
        ("lognormal:100ms,0.3", "lognormal:100ms,0.3", 0.1),
        ("exponential:0.1", "exponential:100ms", 0.1),
    ],
)
def test_is_read_and_written(text: str, written: str, stated: float) -> None:
    """A delay is read, states its largest seconds, and is written in a form that reads as the same delay."""
    delay = delays.parse(text)
    assert str(delay) == written
    assert delay.stated == stated
    assert delays.parse(written) == delay


@pytest.mark.parametrize(
    "text",
    [
        "", "soon", "-1", "120 ms", "1_0", "inf", "nan", "1e400", "12h", "msms", "\u0661", "9" * 5000,
        "uniform:1s", "uniform:2s,1s", "normal:1s,2s,3s", "normal:a,b", "lognormal:0,1", "lognormal:1s,30ms",
        "lognormal:1s,11", "exponential:0", "gamma:1s,2", "uniform:",
    ],
)  # fmt: skip
def test_says_what_cannot_be_read(text: str) -> None:
    """What is no delay is a ValueError with a text."""
    with pytest.raises(ValueError, match=r"\w"):
        delays.parse(text)


@pytest.mark.parametrize(
    ("text", "middle"),
    [
        ("uniform:50ms,150ms", 0.1),
        ("normal:100ms,10ms", 0.1),
        ("lognormal:100ms,0.3", 0.1),
        ("exponential:100ms", 0.1 * 0.693),
    ],
)
def test_draws_around_the_right_median(text: str, middle: float) -> None:
    """The median of many draws is the distribution's (an exponential's is ln 2 of its mean)."""
    source = random.Random(1)
    drawn = [delays.parse(text).draw(source) for _ in range(4000)]
    assert statistics.median(drawn) == pytest.approx(middle, rel=0.05)


def test_normal_is_truncated_at_zero() -> None:
    """A normal delay is never below 0, nor is it heaped up there."""
    source = random.Random(1)
    drawn = [delays.parse("normal:1ms,10ms").draw(source) for _ in range(1000)]
    assert min(drawn) > 0


def test_the_same_source_draws_the_same() -> None:
    """Two sources with equal seeds draw equal delays."""
    delay = delays.parse("lognormal:100ms,0.3")
    assert delay.draw(random.Random(7)) == delay.draw(random.Random(7))
