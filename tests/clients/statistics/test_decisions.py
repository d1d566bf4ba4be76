"""Verdicts from figures by round, how often they are wrong, and when a run has enough
rounds.

A simulated share p has a sampling error of sqrt(p (1 - p) / 2,000). Three such errors
are allowed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from clientlab.statistics.decisions import (
    DECIDED_CONFIDENCE,
    FEWEST_SEQUENTIAL_ROUNDS,
    MATERIAL_SPREAD,
    SEQUENTIAL_CONFIDENCE,
    is_narrow,
    is_settled,
    judge_band,
    judge_direction,
    judge_optimum,
)
from clientlab.statistics.ratios import (
    FEWEST_ROUNDS_OF_SPREAD,
    Ratio,
    paired_ratio,
    spread_ratio,
)

NOISE = np.array([0.99, 1.0, 1.01, 1.005, 0.995])
SHUFFLED = NOISE[[2, 0, 4, 1, 3]]
SIMULATIONS = 2000


def series(middle: float, noise=NOISE) -> dict[int, float]:
    """Return figures of rounds 1, 2, ..."""
    return dict(enumerate(middle * noise, start=1))


def sweep(middles, noise) -> list[dict[int, float]]:
    """Return figures by round of each point of a sweep."""
    return [
        series(middle, np.roll(noise, place)) for place, middle in enumerate(middles)
    ]


def less(a, b, confidence: float = 0.95):
    """Judge whether a has less than b."""
    return judge_direction(paired_ratio(b, a, confidence))


def spread(a, b):
    """Judge whether a varies less than b."""
    return judge_direction(spread_ratio(b, a), MATERIAL_SPREAD, FEWEST_ROUNDS_OF_SPREAD)


@pytest.mark.parametrize(
    ("b", "verdict", "more"),
    [
        (1.05, "supported", False),
        (1.015, "inconclusive", True),
        (1.0, "inconclusive", False),
        (0.985, "inconclusive", True),
        (0.95, "contradicted", False),
    ],
)
def test_a_direction_is_decided_if_the_interval_excludes_1(b, verdict, more):
    """Otherwise it needs more rounds, unless the interval excludes a
    difference of 3 %.
    """
    found = less(series(1.0), series(b, SHUFFLED))
    assert found.verdict == verdict
    assert found.ratio.value == pytest.approx(b, rel=0.006)
    assert (found.more_rounds is not None) == more
    assert found.negligible == (1.03 if b == 1 else None)


@pytest.mark.parametrize(
    ("b", "verdict"),
    [
        (1.5, "supported"),
        (1.21, "inconclusive"),
        (1.1, "contradicted"),
        (1.99, "inconclusive"),
        (3.0, "contradicted"),
    ],
)
def test_a_band_is_decided_if_the_interval_is_inside_or_outside(b, verdict):
    ratio = paired_ratio(series(b, SHUFFLED), series(1.0))
    assert judge_band(ratio, (1.2, 2.0)).verdict == verdict


@pytest.mark.parametrize(
    ("middles", "verdict", "best", "knee"),
    [
        ((9, 3, 1.03, 1, 2), "supported", 3, 2),
        ((9, 5, 3, 2, 1), "contradicted", 4, 4),
        ((1, 2, 3, 4, 5), "contradicted", 0, 0),
        ((9, 3, 1, 1, 1), "inconclusive", None, 2),
    ],
)
def test_an_optimum_is_supported_if_an_inner_point_surely_beats_both_ends(
    middles, verdict, best, knee
):
    """It is contradicted if an end beats all others.

    The knee is the first point within 5 % of the least.
    """
    found = judge_optimum(sweep(middles, NOISE))
    assert found.verdict == verdict
    assert found.turning.knee == knee
    assert best in {found.turning.best, None}


@pytest.mark.parametrize(
    ("middles", "verdict", "negligible"),
    [
        ((9, 3, 1, 1, 1), "inconclusive", 1.03),
        ((1, 1, 1, 1, 1), "inconclusive", 1.03),
        ((1.0, 2.0, 1.003), "contradicted", None),
        ((0.998, 1.0, 5.0), "inconclusive", 1.03),
    ],
)
def test_a_plateau_that_includes_an_end_needs_no_more_rounds(
    middles, verdict, negligible
):
    found = judge_optimum(sweep(middles, np.resize(NOISE, 20)))
    assert found.verdict == verdict
    assert found.negligible == negligible
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
def test_a_spread_is_judged_by_the_ratio_of_the_spreads(
    times, rounds, verdict, negligible
):
    """It is negligible below a factor of 2."""
    draw = np.random.default_rng(5)
    steady = draw.normal(0, 0.01, rounds)
    restless = draw.normal(0, 0.01 * times, rounds)
    found = spread(series(1.0, np.exp(steady)), series(2.0, np.exp(restless)))
    assert found.verdict == verdict
    assert found.negligible == negligible


@pytest.mark.parametrize(
    "judge",
    [
        less,
        spread,
        lambda a, b: judge_band(paired_ratio(b, a), (1, 2)),
        lambda a, b: judge_optimum([a, b, a]),
    ],
)
def test_fewer_than_three_rounds_decide_nothing(judge):
    found = judge(series(1.0, NOISE[:2]), series(9.0, SHUFFLED[:2]))
    assert found.verdict == "inconclusive"
    assert found.more_rounds >= 3


def test_the_estimated_number_of_rounds_settles_a_claim():
    noise = np.array([0.9, 1.0, 1.1, 1.02])
    found = less(series(1.0, np.ones(4)), series(1.06, noise))
    assert found.verdict == "inconclusive"
    rounds = found.more_rounds + 2
    deviation = np.log(noise).std(ddof=1)
    ranks = (np.arange(rounds) + 0.5) / rounds
    many = np.exp(deviation * stats.norm.ppf(ranks))
    again = less(series(1.0, np.ones(rounds)), series(found.ratio.value, many))
    assert again.verdict == "supported"


def chance(share: float) -> float:
    """Return three sampling errors of a share."""
    return 3 * np.sqrt(share * (1 - share) / SIMULATIONS)


def simulated(
    judge, arms: int, rounds: int, truth: float = 1.0, runs: int = SIMULATIONS
):
    """Return the findings of simulated runs.

    The last arm takes `truth` times as long; all share each round's pace.
    """
    draw = np.random.default_rng(arms * 100 + rounds)
    pace = draw.normal(0, 0.3, (runs, 1, rounds))
    logs = pace + draw.normal(0, 0.05, (runs, arms, rounds))
    logs[:, -1] += np.log(truth)
    findings = []
    for run in np.exp(logs).tolist():
        by_round = [dict(enumerate(figures)) for figures in run]
        findings.append(judge(*by_round))
    return findings


def share(findings, verdict: str) -> float:
    """Return the share of a verdict."""
    return np.mean([found.verdict == verdict for found in findings])


def coverage(findings, truth: float) -> float:
    """Return the share of intervals that contain the true ratio."""
    ratios = [found.ratio for found in findings]
    return np.mean([ratio.low <= truth <= ratio.high for ratio in ratios])


@pytest.mark.parametrize("rounds", [3, 10])
def test_equal_arms_are_called_different_in_one_of_twenty_runs(rounds):
    found = simulated(less, 2, rounds)
    for verdict in ("supported", "contradicted"):
        assert share(found, verdict) == pytest.approx(0.025, abs=chance(0.025))


def test_a_difference_that_just_matters_is_hardly_ever_called_negligible():
    found = simulated(less, 2, 10, 1.03)
    assert share(found, "contradicted") <= 0.005
    negligible = [finding.negligible is not None for finding in found]
    assert np.mean(negligible) <= 0.025 + chance(0.025)


@pytest.mark.parametrize("rounds", [3, 10])
def test_a_ratio_on_the_limit_of_its_band_is_called_outside_in_2_5_of_100_runs(rounds):
    def judge(a, b):
        return judge_band(paired_ratio(b, a), (1.0, 1.2))

    found = simulated(judge, 2, rounds, 1.2)
    assert share(found, "contradicted") == pytest.approx(0.025, abs=chance(0.025))
    assert share(found, "supported") <= 0.025 + chance(0.025)


@pytest.mark.parametrize(
    ("judge", "arms", "rounds"),
    [(spread, 2, 6), (lambda *figures: judge_optimum(figures), 3, 3)],
)
def test_equal_spreads_and_flat_sweeps_are_decided_in_at_most_5_of_100_runs(
    judge, arms, rounds
):
    found = simulated(judge, arms, rounds, runs=SIMULATIONS // 4)
    decided = share(found, "supported") + share(found, "contradicted")
    assert decided <= 0.05 + 2 * chance(0.05)
    assert coverage(found, 1.0) >= 0.95 - 2 * chance(0.05)


def end_of_run(logs):
    """Return the finding at which the stopping rule ends a run of one claim.

    `logs`: of b over a, by round.
    """
    for rounds in range(FEWEST_SEQUENTIAL_ROUNDS, len(logs) + 1):
        a = dict.fromkeys(range(rounds), 1.0)
        b = dict(enumerate(np.exp(logs[:rounds]).tolist()))
        found = less(a, b, SEQUENTIAL_CONFIDENCE)
        decided = less(a, b, DECIDED_CONFIDENCE)
        if is_settled(found, decided, 0.03):
            return found
    return None


@pytest.mark.parametrize("truth", [1.0, 1.015, 1.03])
def test_a_settled_claim_has_an_interval_that_contains_the_truth(truth):
    """The claim about equal arms is always decided or negligible."""
    draw = np.random.default_rng(23)
    runs = draw.normal(np.log(truth), 0.03, (400, 120))
    found = [end_of_run(logs) for logs in runs]
    sampling_error = np.sqrt(0.07 * 0.93 / 400)
    assert coverage(found, truth) >= 0.93 - 3 * sampling_error
    if truth == 1:
        undecided = [finding for finding in found if finding.verdict == "inconclusive"]
        for finding in undecided:
            assert finding.negligible


@pytest.mark.parametrize(("end", "enough"), [(2.0, True), (2.06, True), (2.07, False)])
def test_an_interval_is_narrow_if_both_ends_are_within_the_precision(end, enough):
    mirrored = 4 / end
    assert is_narrow(Ratio(2.0, mirrored, end, 5), 0.03) is enough
    assert is_narrow(Ratio(2.0, 2.0, end, 5), 0.03) is enough
    assert is_narrow(Ratio(2.0, mirrored, 2.0, 5), 0.03) is enough
    assert is_narrow(Ratio(2.0, None, None, 5), 0.03) is False
