"""How delays are written, and what is drawn from them. See test_delay_grammar, too."""

from __future__ import annotations

import random

import pytest

from mockupstream import delays


@pytest.mark.parametrize(
    ("text", "stated"),
    [("0.12", 0.12), ("uniform:50ms,150ms", 0.15), ("normal:100ms,10ms", 0.1), ("exponential:0.1", 0.1)],
)
def test_states_its_largest_seconds(text: str, stated: float) -> None:
    """A delay is written as it was read."""
    assert (str(delays.parse(text)), delays.parse(text).stated) == (text, stated)


def test_normal_is_truncated_at_zero() -> None:
    """A normal delay is never below 0, nor is it heaped up there."""
    source = random.Random(1)
    drawn = [delays.parse("normal:1ms,10ms").draw(source) for _ in range(1000)]
    assert min(drawn) > 0


def test_the_same_source_draws_the_same() -> None:
    """Two sources with equal seeds draw equal delays."""
    delay = delays.parse("lognormal:100ms,0.3")
    assert delay.draw(random.Random(7)) == delay.draw(random.Random(7))
