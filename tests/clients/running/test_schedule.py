"""The order of trials."""

from __future__ import annotations

from collections import Counter

from clientlab.running.due import schedule

ARMS = list("abcdefgh")


def by_round(rounds: int, seed: int) -> list[str]:
    """Each round's order, as a word."""
    order = schedule(ARMS, rounds, seed)
    return ["".join(arm for number, arm in order if number == wanted) for wanted in range(1, rounds + 1)]


def test_every_arm_comes_once_in_each_round():
    """Rounds count from 1 and follow each other."""
    order = schedule(ARMS, 5, seed=1)
    assert [number for number, _ in order] == [number for number in range(1, 6) for _ in ARMS]
    assert set(Counter(order).values()) == {1}
    assert len(order) == 5 * len(ARMS)


def test_the_seed_decides_the_order():
    """The same again under the same seed, another under another."""
    assert by_round(4, seed=1) == by_round(4, seed=1)
    assert by_round(4, seed=1) != by_round(4, seed=2)


def test_every_arm_is_first_about_as_often():
    """800 rounds of 8 arms: each first in about 100 of them."""
    firsts = Counter(word[0] for word in by_round(800, seed=1))
    assert set(firsts) == set("abcdefgh")
    assert min(firsts.values()) > 60
    assert max(firsts.values()) < 140
