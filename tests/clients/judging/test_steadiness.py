"""Arms whose rate depends on the length of their trials: they are not ranked, and told
why.
"""

from __future__ import annotations

import pytest

from clientlab.judging.ranking import rank_arms, shortfall
from clientlab.judging.steadiness import find_most_slices, may_become_steady
from clientlab.results.trial import Trial, Window
from clients.documents import a_run, rounds


def window(rate: float = 100.0, late: float = 1.0, **changes) -> Window:
    """A window of a second with 10 slots.

    `late`: ends of the second half over the first.
    """
    usual = Window(
        slots=10,
        wave_seconds=10 / rate,
        cycles=100,
        cycle_seconds=1000 / rate,
        ended=rate,
        seconds=1.0,
        early=50.0,
        late=50.0 * late,
    )
    return usual.updated(**changes)


def trials(*windows: Window, count: int = 3, **changes) -> list[Trial]:
    """Trials of an arm whose slices last a second, at 100 requests per second."""
    usual = {
        "tail_seconds": 0.0,
        "concurrency": 10,
        "requests_per_second": 100.0,
        "long_seconds": 0.11,
        "windows": list(windows),
    }
    seconds = float(len(windows))
    return rounds("urllib3", *[seconds] * count, **usual | changes)


def test_an_arm_with_long_slices_is_ranked():
    assert shortfall(trials(window(), window())) is None


def test_slices_with_too_few_waves_are_too_short():
    """The reason has a duration for ten waves of 10 requests at 2/s."""
    short = trials(Window(slots=10), requests_per_second=2.0)
    assert "-d 50s" in shortfall(short)
    one_of_six = trials(*[window()] * 5, Window(slots=10))
    assert shortfall(one_of_six) is None


def test_requests_that_are_long_beside_a_slice_decide_its_rate():
    """Four times as long as they are is enough."""
    assert "-d 20s" in shortfall(trials(window(), long_seconds=5.0))


def test_a_client_that_lets_requests_wait_until_the_end_is_ranked():
    """A pool may serve new requests first.

    Those that wait take no place, and the others have a steady rate.
    """
    starved = window(ended=50.0)
    assert shortfall(trials(starved, long_seconds=0.9)) is None
    assert shortfall(trials(window(), long_seconds=0.9)) is not None


@pytest.mark.parametrize(
    ("late", "word"), [(0.8, "falls"), (1.25, "rises"), (1.03, None)]
)
def test_a_rate_that_changes_within_slices_has_no_rank(late, word):
    found = shortfall(trials(window(late=late), window(late=late)))
    assert (found is None) == (word is None)
    assert word is None or word in found


def test_a_change_that_may_be_chance_is_none():
    """The slices scatter by more than they change."""
    scattered = [window(late=late) for late in (0.5, 2.0, 0.6, 1.7, 1.4, 0.9)]
    assert shortfall(trials(*scattered, count=1)) is None


def test_an_arm_that_is_too_short_has_no_ratio():
    short = trials(Window(slots=10), requests_per_second=2.0)
    (standings,) = rank_arms(a_run(*short, *rounds("pycurl", concurrency=10))).values()
    last = standings[-1]
    assert last.name == "urllib3"
    assert last.ratio is None


def test_longer_slices_follow_if_the_rate_changes_and_they_decide():
    """Two slices follow four, and one of them is enough for a steady rate, although the
    short ones have none.
    """
    short = trials(*[window(late=1.2)] * 4)
    assert find_most_slices(short) == 2
    assert may_become_steady(short)
    both = [*short, *trials(window(late=1.01), window(late=1.01))]
    assert find_most_slices(both) == 2
    assert may_become_steady(both) is False
    assert shortfall(both) is None
    whole = trials(window(late=1.2))
    assert find_most_slices(whole) == 1
    assert may_become_steady(whole) is False
    assert shortfall(whole) is not None
    assert find_most_slices(trials(window(), window())) is None
