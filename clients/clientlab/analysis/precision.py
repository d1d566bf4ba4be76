"""When rounds are enough: the rule that adds rounds to a run, and its effect on the confidence intervals.

A run stops when its intervals are narrow, never when a difference becomes significant. If a run stopped at the first
interval that excludes 1, it would sooner or later find a difference between equal arms. The width of an interval
does not depend on the side of 1 that the truth lies on.

This rule has a small price: it stops a little too often when the spread looks smaller than it is. A 95 % interval at
such a stop contains the truth in 91 to 93 of 100 simulations (from three rounds on). So sequential runs have at least
five rounds and intervals of nominally 97 %, which contain the truth in 94 to 98 of 100 simulations.

The width of the interval settles a claim of a direction, too. Rounds are added until the interval must either exclude
1 or exclude every difference of 3 %. If a run stopped at the first 97 % interval that does either, it would call equal
arms different in 13 of 100 simulations where rounds spread by 5 %, and in 19 where they spread by 12 %. Arms that
differ by 3 % would be called equal too often. See tests/clients/analysis/test_precision.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clientlab.analysis.hypotheses import Finding
from clientlab.analysis.ratios import CONFIDENCE, Ratio

FEWEST_ROUNDS = 5
SEQUENTIAL_CONFIDENCE = 0.97
"""Level of the intervals of a sequential run: they contain the truth as often as 95 % intervals of other runs."""

_ROUNDING = 1e-12

DECIDED_CONFIDENCE = 0.999
"""If the interval of this level decides a claim, the claim needs no further rounds, however wide the interval.

Haybittle (1971), Peto et al. (1976): an interim look at such a level hardly changes the level of the last look.
Without this rule, a ratio of 40 would be measured to 3 %, which nobody needs.
"""


def confidence_of(precision: float | None) -> float:
    """The nominal level of a run's intervals. `precision`: None for a run with a planned number of rounds."""
    return CONFIDENCE if precision is None else SEQUENTIAL_CONFIDENCE


def narrow(ratio: Ratio, precision: float) -> bool:
    """Whether the ratio is at most that share above the lower end, and the upper end above the ratio."""
    if ratio.low is None or ratio.high is None:
        return False
    value, low, high = np.log([ratio.value, ratio.low, ratio.high])
    return bool(narrow_enough(value, low, high, precision))


def narrow_enough(value: Any, low: Any, high: Any, precision: float) -> Any:
    """The same of logarithms, also of arrays by element."""
    return np.maximum(high - value, value - low) <= math.log1p(precision) + _ROUNDING


def settled(finding: Finding, surely: Finding, precision: float) -> bool:
    """Whether a claim needs no further rounds. `surely`: the finding at `DECIDED_CONFIDENCE`.

    A claim is settled if it is surely decided, if its difference is surely negligible, or if its interval is narrow.
    A claim without a ratio has an arm that fails, so further rounds would not help.
    """
    if finding.ratio is None or surely.verdict != "inconclusive" or surely.negligible:
        return True
    if finding.material is not None:
        # So narrow an interval either excludes 1 or lies wholly within 1/material and material.
        return narrow(finding.ratio, math.sqrt(finding.material) - 1)
    return on_the_limit(finding, precision) if finding.verdict == "inconclusive" else narrow(finding.ratio, precision)


def on_the_limit(finding: Finding, precision: float) -> bool:
    """Whether a claim of a band or an optimum is inconclusive although its intervals have the requested precision."""
    unsure = finding.verdict == "inconclusive" and finding.material is None
    return unsure and all(narrow(ratio, precision) for ratio in finding.open)
