"""Verdicts on claims, from figures by round."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from clientlab.analysis.hypotheses import inside, less, spread, within
from clientlab.analysis.ratios import paired_ratio

NOISE = np.array([0.99, 1.0, 1.01, 1.005, 0.995])


def series(middle: float, noise=NOISE) -> dict[int, float]:
    """Figures of rounds 1, 2, ..."""
    return dict(enumerate(middle * noise, start=1))


SHUFFLED = NOISE[[2, 0, 4, 1, 3]]


def normal(rounds: int, spread: float):
    """Noise of so many rounds whose logarithms have the quantiles of a normal distribution."""
    return np.exp([spread * NormalDist().inv_cdf((number + 0.5) / rounds) for number in range(rounds)])


@pytest.mark.parametrize(
    ("b", "verdict", "more"),
    [
        (2.0, "supported", False),
        (1.05, "supported", False),
        (1.015, "inconclusive", True),
        (1.0, "inconclusive", False),
        (0.985, "inconclusive", True),
        (0.95, "contradicted", False),
        (0.5, "contradicted", False),
    ],
)
def test_a_direction_is_judged_by_the_side_of_1_on_which_the_interval_lies(b, verdict, more):
    """Above it or below it. Where it holds 1 further rounds are asked for, unless it shows no difference of 3 %."""
    found = less(series(1.0), series(b, SHUFFLED))
    assert found.verdict == verdict
    assert found.ratio.value == pytest.approx(b, rel=0.006)
    assert (found.more_rounds is not None) == more
    assert found.negligible == (1.03 if b == 1 else None)


@pytest.mark.parametrize(
    ("b", "verdict"),
    [(1.5, "supported"), (1.21, "inconclusive"), (1.1, "contradicted"), (1.99, "inconclusive"), (3.0, "contradicted")],
)
def test_a_ratio_is_judged_by_where_the_interval_lies_to_the_band(b, verdict):
    """Inside, outside, or across an end."""
    assert within(paired_ratio(series(b, SHUFFLED), series(1.0)), (1.2, 2.0)).verdict == verdict


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


@pytest.mark.parametrize("middles", [(9, 3, 1, 1, 1), (1, 1, 1, 1, 1), (1.0, 2.0, 1.003), (0.998, 1.0, 5.0)])
def test_a_plateau_that_reaches_an_end_needs_no_further_rounds(middles):
    """Nothing between the ends is 3 % less than the better one, however many rounds there are."""
    found = inside([series(middle, np.roll(np.resize(NOISE, 20), place)) for place, middle in enumerate(middles)])
    assert found.verdict == ("contradicted" if middles[1] == 2 else "inconclusive")
    assert found.negligible == (1.03 if found.verdict == "inconclusive" else None)
    assert found.more_rounds is None


@pytest.mark.parametrize(
    ("times", "rounds", "verdict", "negligible"),
    [
        (20.0, 12, "supported", None),
        (1 / 20, 12, "contradicted", None),
        (1.2, 12, "inconclusive", None),
        (1.0, 60, "inconclusive", 2.0),
    ],
)
def test_a_spread_is_judged_by_the_interval_of_the_spreads(times, rounds, verdict, negligible):
    """Rounds in which b varies so many times as much as a; less than twice as much needs no more of them."""
    draw = np.random.default_rng(5)
    steady, restless = draw.normal(0, 0.01, rounds), draw.normal(0, 0.01 * times, rounds)
    found = spread(series(1.0, np.exp(steady)), series(2.0, np.exp(restless)))
    assert (found.verdict, found.negligible) == (verdict, negligible)


@pytest.mark.parametrize(
    "judge", [less, spread, lambda a, b: within(paired_ratio(b, a), (1, 2)), lambda a, b: inside([a, b, a])]
)
def test_fewer_than_three_rounds_decide_nothing(judge):
    """However large the difference; the finding says how many would."""
    found = judge(series(1.0, NOISE[:2]), series(9.0, SHUFFLED[:2]))
    assert found.verdict == "inconclusive"
    assert found.more_rounds >= 3


def test_the_rounds_that_would_settle_it_do():
    """At the same spread, with as many rounds as were named, the interval is narrow enough."""
    noise = np.array([0.9, 1.0, 1.1, 1.02])
    found = less(series(1.0, np.ones(4)), series(1.06, noise))
    assert found.verdict == "inconclusive"
    many = normal(found.more_rounds + 2, np.log(noise).std(ddof=1))
    assert less(series(1.0, np.ones(len(many))), series(found.ratio.value, many)).verdict == "supported"
