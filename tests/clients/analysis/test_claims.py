"""Verdicts on claims, from figures by round."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.claims import inside, less, spread, within

NOISE = np.array([0.99, 1.0, 1.01, 1.005, 0.995])


def series(middle: float, noise=NOISE) -> dict[int, float]:
    """Figures of rounds 1, 2, ..."""
    return dict(enumerate(middle * noise, start=1))


SHUFFLED = NOISE[[2, 0, 4, 1, 3]]


@pytest.mark.parametrize(
    ("b", "verdict"),
    [(2.0, "supported"), (1.05, "supported"), (1.015, "inconclusive"), (1.0, "contradicted"), (0.5, "contradicted")],
)
def test_a_direction_is_judged_by_the_interval(b, verdict):
    """Supported where it lies above 1; contradicted where it shows that there is no difference of 3 %."""
    found = less(series(1.0), series(b, SHUFFLED))
    assert found.verdict == verdict
    assert found.ratio.value == pytest.approx(b)
    assert (found.more_rounds is None) == (verdict != "inconclusive")


@pytest.mark.parametrize(
    ("b", "verdict"),
    [(1.5, "supported"), (1.21, "inconclusive"), (1.1, "contradicted"), (1.99, "inconclusive"), (3.0, "contradicted")],
)
def test_a_ratio_is_judged_by_where_the_interval_lies_to_the_band(b, verdict):
    """Inside, outside, or across an end."""
    assert within(series(1.0), series(b, SHUFFLED), (1.2, 2.0)).verdict == verdict


def test_likeness_is_a_band_around_one():
    """Arms that differ by less than the band are alike, however sure the difference is."""
    assert within(series(1.0), series(1.05), (0.9, 1.1)).verdict == "supported"


@pytest.mark.parametrize(
    ("middles", "verdict", "best", "knee"),
    [
        ((9, 3, 1.03, 1, 2), "supported", 3, 2),
        ((9, 5, 3, 2, 1), "contradicted", 4, 4),
        ((1, 2, 3, 4, 5), "contradicted", 0, 0),
        ((9, 3, 1, 1, 1), "inconclusive", 2, 2),
    ],
)
def test_an_optimum_lies_inside_where_one_place_surely_beats_both_ends(middles, verdict, best, knee):
    """And at an end where that beats all others; the knee is the first place within 5 % of the least."""
    found = inside([series(middle, np.roll(NOISE, place)) for place, middle in enumerate(middles)])
    assert found.verdict == verdict
    assert found.knee == knee
    assert found.best == best or verdict == "inconclusive"


def test_a_sweep_with_a_place_that_failed_has_no_verdict():
    """What was not measured may have been the best."""
    assert inside([series(3), {}, series(3)]).verdict == "inconclusive"


@pytest.mark.parametrize(("times", "verdict"), [(20.0, "supported"), (1 / 20, "contradicted"), (1.2, "inconclusive")])
def test_a_spread_is_judged_by_the_interval_of_the_spreads(times, verdict):
    """Twelve rounds in which b varies so many times as much as a."""
    draw = np.random.default_rng(5)
    steady, restless = draw.normal(0, 0.01, 12), draw.normal(0, 0.01 * times, 12)
    found = spread(series(1.0, np.exp(steady)), series(2.0, np.exp(restless)))
    assert found.verdict == verdict


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("judge", [less, spread, lambda a, b: within(a, b, (1, 2)), lambda a, b: inside([a, b, a])])
def test_fewer_than_three_rounds_decide_nothing(judge, rounds):
    """However large the difference; the finding says how many would."""
    found = judge(series(1.0, NOISE[:rounds]), series(9.0, SHUFFLED[:rounds]))
    assert found.verdict == "inconclusive"
    assert found.more_rounds >= 3


def test_no_round_in_common_is_no_ratio():
    """One of the arms always failed."""
    found = less({}, series(1.0))
    assert (found.verdict, found.ratio) == ("inconclusive", None)


def test_the_rounds_that_would_settle_it_do():
    """At the same spread, with as many rounds as were named, the interval is narrow enough."""
    noise = np.array([0.9, 1.0, 1.1, 1.02])
    found = less(series(1.0, np.ones(4)), series(1.06, noise))
    assert found.verdict == "inconclusive"
    many = np.resize(noise, found.more_rounds + 1)
    assert less(series(1.0, np.ones(len(many))), series(1.06, many)).verdict == "supported"
