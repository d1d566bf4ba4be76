"""The order of trials."""

from __future__ import annotations

from collections import Counter

from clientlab.running.due import schedule

ARMS = list("abcdefgh")


def test_every_arm_comes_once_in_each_round():
    """Rounds count from 1 and follow each other."""
    order = schedule(ARMS, 5, seed=1)
    assert [number for number, _ in order] == [number for number in range(1, 6) for _ in ARMS]
    assert set(Counter(order).values()) == {1}
    assert len(order) == 5 * len(ARMS)


def test_every_arm_is_first_about_as_often():
    """800 rounds of 8 arms: each first in about 100 of them."""
    firsts = Counter(arm for _, arm in schedule(ARMS, 800, seed=1)[:: len(ARMS)])
    assert set(firsts) == set("abcdefgh")
    assert min(firsts.values()) > 60
    assert max(firsts.values()) < 140
