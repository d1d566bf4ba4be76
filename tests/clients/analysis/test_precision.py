"""Runs whose rounds end with a precision: their intervals hold the truth as often as those of planned rounds.

The sampling error of a share near 95 % is 0.5 % in 2,000 simulations; none is allowed for below 93 %. Kinds of noise
other than the normal one are in test_typical.py and in `scripts/bench truth`.
"""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.hypotheses import less
from clientlab.analysis.precision import (
    DECIDED_CONFIDENCE,
    FEWEST_ROUNDS,
    SEQUENTIAL_CONFIDENCE,
    narrow,
    narrow_enough,
    settled,
)
from clientlab.analysis.ratios import Ratio
from clientlab.analysis.typical import typical, typical_interval

SIMULATIONS = 2000
MOST = 120
PRECISION = 0.03
LEVELS = (SEQUENTIAL_CONFIDENCE, DECIDED_CONFIDENCE)
ERROR = 3 * np.sqrt(0.05 * 0.95 / SIMULATIONS)


def figures(logs) -> dict[int, float]:
    """Round → figure."""
    return dict(enumerate(np.exp(logs).tolist(), start=1))


def ended(judge, a, b) -> int:
    """After how many rounds the lab's own rule ends the run of one claim, of its arms' logarithms by round."""
    for rounds in range(FEWEST_ROUNDS, len(a) + 1):
        pair = figures(a[:rounds]), figures(b[:rounds])
        found = judge(*pair, LEVELS[0])
        # at the higher level nothing can be sure that is open at the lower
        sure = found.verdict != "inconclusive" or found.negligible
        if settled(found, judge(*pair, LEVELS[1]) if sure else found, PRECISION):
            return rounds
    return len(a)


def by_claim(values, material=1.03):
    """Where runs that wait for a claim end, all simulations at once: the interval's ends, and the number of rounds.

    `values`: logarithms of ratios by round, a run a row. See the test that holds this to the rule.
    """
    limit, rows = np.log(material), np.arange(len(values))
    found, surely = (
        np.stack([typical_interval(values[:, :n], at) for n in range(FEWEST_ROUNDS, MOST + 1)], axis=2) for at in LEVELS
    )
    (low, high), (sure_low, sure_high) = found, surely
    middles = np.stack([typical(values[:, :n]) for n in range(FEWEST_ROUNDS, MOST + 1)], axis=1)
    narrow = narrow_enough(middles, low, high, np.sqrt(material) - 1)
    ends = (sure_low > 0) | (sure_high < 0) | ((sure_high < limit) & (-sure_low < limit)) | narrow
    ends[:, -1] = True
    at = ends.argmax(axis=1)
    return low[rows, at], high[rows, at], at + FEWEST_ROUNDS


def drawn(truth: float, spread: float):
    """Logarithms of ratios by round: a simulated run a row."""
    return np.random.default_rng(23).normal(np.log(truth), spread, (SIMULATIONS, MOST))


@pytest.mark.parametrize(("truth", "spread"), [(1.0, 0.01), (1.0, 0.05), (1.015, 0.05), (1.03, 0.05)])
def test_a_settled_claim_has_an_interval_that_holds_the_truth(truth, spread):
    """Equal arms are called different in 5 % at most, and their claim is decided or negligible: never left open."""
    low, high, rounds = by_claim(drawn(truth, spread))
    held = (low <= np.log(truth)) & (high >= np.log(truth))
    assert held.mean() >= (0.95 - ERROR if truth == 1 else 0.93)
    if truth == 1:
        assert np.all(~held | (np.maximum(high, -low) < np.log(1.03)) | (rounds == MOST))


@pytest.mark.parametrize(("truth", "spread"), [(1.03, 0.03), (1.015, 0.05), (1.3, 0.12)])
def test_all_simulations_at_once_end_where_the_rule_ends_them(truth, spread):
    """The vectorised simulation ends each of forty runs after the same round as the stopping rule itself."""
    logs = drawn(truth, spread)[:40]
    zeros = np.zeros(MOST)
    assert [ended(less, zeros, row) for row in logs] == by_claim(logs)[2].tolist()


@pytest.mark.parametrize(("high", "enough"), [(2.0, True), (2.06, True), (2.07, False), (None, False)])
def test_an_interval_is_narrow_that_reaches_no_further_than_its_share(high, enough):
    """Of the ratio, on both sides; one that is not there is not narrow."""
    assert narrow(Ratio(2.0, high and 4 / high, high, 5), 0.03) is enough
    assert narrow(Ratio(2.0, high and 2.0, high, 5), 0.03) is enough
    assert narrow(Ratio(2.0, high and 4 / high, high and 2.0, 5), 0.03) is enough
