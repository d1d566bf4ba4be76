"""How often verdicts are wrong: 2,000 simulated runs of planned rounds through the functions that judge them.

Of a share p the sampling error is sqrt(p (1 - p) / 2,000): 0.5 % of 5 %, 0.35 % of 2.5 %. Three of them are allowed.
"""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.hypotheses import inside, less, spread, within
from clientlab.analysis.ratios import paired_ratio

SIMULATIONS = 2000


def chance(share: float) -> float:
    """Three sampling errors of that share."""
    return 3 * np.sqrt(share * (1 - share) / SIMULATIONS)


def judged(judge, arms: int, rounds: int, truth: float = 1.0):
    """What is found in each simulated run; its last arm is `truth` times as slow, all share each round's pace."""
    draw = np.random.default_rng(arms * 100 + rounds)
    pace = draw.normal(0, 0.3, (SIMULATIONS, 1, rounds))
    logs = pace + draw.normal(0, 0.05, (SIMULATIONS, arms, rounds))
    logs[:, -1] += np.log(truth)
    return [judge(*(dict(enumerate(figures)) for figures in run)) for run in np.exp(logs).tolist()]


def share(findings, verdict: str) -> float:
    """The share of a verdict."""
    return sum(found.verdict == verdict for found in findings) / len(findings)


def held(findings, truth: float) -> float:
    """The share of intervals that hold the truth."""
    return sum(found.ratio.low <= truth <= found.ratio.high for found in findings) / len(findings)


@pytest.mark.parametrize("rounds", [3, 10])
def test_equal_arms_have_less_in_one_of_twenty_runs(rounds):
    """No more, and no fewer: half of them either way, and the interval holds 1 in all others."""
    found = judged(less, 2, rounds)
    for verdict in ("supported", "contradicted"):
        assert share(found, verdict) == pytest.approx(0.025, abs=chance(0.025))
    assert held(found, 1) == pytest.approx(0.95, abs=chance(0.05))


def test_a_difference_is_hardly_ever_called_the_other_way_round():
    """Nor surely negligible where it is just what counts: in half of 5 % at most."""
    found = judged(less, 2, 10, 1.03)
    assert share(found, "contradicted") <= 0.005
    assert sum(one.negligible is not None for one in found) / SIMULATIONS <= 0.025 + chance(0.025)
    assert held(found, 1.03) == pytest.approx(0.95, abs=chance(0.05))


@pytest.mark.parametrize("rounds", [3, 10])
def test_a_ratio_on_the_limit_of_its_band_is_called_inside_in_half_of_5_of_100_runs(rounds):
    """And outside as seldom. Of three rounds few intervals are narrow enough to lie inside: it may be fewer."""
    found = judged(lambda a, b: within(paired_ratio(b, a), (1.0, 1.2)), 2, rounds, 1.2)
    assert share(found, "contradicted") == pytest.approx(0.025, abs=chance(0.025))
    assert share(found, "supported") <= 0.025 + chance(0.025)
    assert held(found, 1.2) == pytest.approx(0.95, abs=chance(0.05))


def test_arms_that_vary_alike_are_called_different_in_one_of_twenty_runs_at_most():
    """In fewer where the pace of the rounds, which both arms share, varies more than they do."""
    found = judged(spread, 2, 6)
    assert held(found, 1) >= 0.95 - chance(0.05)
    assert share(found, "supported") + share(found, "contradicted") <= 0.05 + chance(0.05)


def test_a_flat_sweep_has_its_optimum_inside_in_half_of_5_of_100_runs_at_most():
    """In far fewer, for it has to be less than both ends; and at an end as seldom.

    The interval shown holds the truth, 1, in 95 % or more whichever places come out as the least and the better end.
    """
    found = judged(lambda *series: inside(series), 3, 3)
    assert share(found, "supported") <= 0.025 + chance(0.025)
    assert share(found, "contradicted") <= 0.025 + chance(0.025)
    assert held(found, 1) >= 0.95 - chance(0.05)
