"""How delays are written, and what is drawn from them. See test_delay_grammar, too."""

from __future__ import annotations

import random

import pytest

from mockupstream import delays


@pytest.mark.parametrize(
    ("text", "written", "stated"),
    [
        ("0.12", "120ms", 0.12),
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


def test_normal_is_truncated_at_zero() -> None:
    """A normal delay is never below 0, nor is it heaped up there."""
    source = random.Random(1)
    drawn = [delays.parse("normal:1ms,10ms").draw(source) for _ in range(1000)]
    assert min(drawn) > 0


def test_the_same_source_draws_the_same() -> None:
    """Two sources with equal seeds draw equal delays."""
    delay = delays.parse("lognormal:100ms,0.3")
    assert delay.draw(random.Random(7)) == delay.draw(random.Random(7))
