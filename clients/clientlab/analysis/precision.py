"""When rounds are enough: the rule by which rounds are added to a run, and what it does to the intervals.

A run stops when its intervals are narrow, never when a difference has become significant. Whoever looks after
every round and stops at the first interval that leaves out 1 will find a difference where there is none, sooner
or later. The width of an interval says nothing of which side the truth lies on.

It is not quite free: it stops a little too often just when the spread looks smaller than it is. At 95 % an
interval at such a stop holds the truth in 90 to 95 of 100 simulations (from three rounds on). So sequential runs
have at least five rounds, and intervals of nominally 97 %: these hold it in 94.5 to 97 of 100.

A claim of a direction is settled by width as well: its rounds go on until the interval is so narrow that it must
either leave out 1 or show that no difference of 3 % is there. To stop at the first 97 % interval that does either
would call equal arms different in 15 of 100 simulations where rounds spread by 5 %, in 27 where they spread by 12 %;
and arms that differ by 3 % would be called alike too often. See
tests/clients/analysis/test_precision.py.
"""

from __future__ import annotations

import math

from clientlab.analysis.claims import Finding
from clientlab.analysis.ratios import CONFIDENCE, Ratio

FEWEST_ROUNDS = 5
SEQUENTIAL_CONFIDENCE = 0.97
"""The level of intervals in a sequential run: there they hold the truth as often as 95 % ones elsewhere."""

DECIDED_CONFIDENCE = 0.999
"""A claim whose interval of this level decides it needs no further rounds, however wide the interval.

Haybittle (1971), Peto et al. (1976): a look that stops only at such a level leaves the last look's nearly as it is.
Without it a ratio of 40 would be measured to 3 % for no one's use.
"""


def confidence_of(precision: float | None) -> float:
    """The nominal level of a run's intervals: of one that asked for a precision, or of one of planned rounds."""
    return CONFIDENCE if precision is None else SEQUENTIAL_CONFIDENCE


def narrow(ratio: Ratio, precision: float) -> bool:
    """Whether the interval reaches no further than that share of the ratio."""
    return ratio.high is not None and ratio.high <= ratio.value * (1 + precision) * (1 + math.ulp(1.0))


def settled(finding: Finding, surely: Finding, precision: float) -> bool:
    """Whether a claim needs no further rounds; `surely`: the same at `DECIDED_CONFIDENCE`.

    It is where it is surely decided or its difference surely negligible, and where its interval is so narrow that
    it is taken as it is. A claim without a ratio has an arm that fails: no round would tell.
    """
    if finding.ratio is None or surely.verdict != "inconclusive" or surely.negligible:
        return True
    if finding.material is not None:
        # So narrow an interval either leaves out 1 or lies wholly within 1/material and material.
        return narrow(finding.ratio, math.sqrt(finding.material) - 1)
    return on_the_limit(finding, precision) if finding.verdict == "inconclusive" else narrow(finding.ratio, precision)


def on_the_limit(finding: Finding, precision: float) -> bool:
    """Whether a claim of a band or an optimum is inconclusive though its intervals are as narrow as was asked for."""
    unsure = finding.verdict == "inconclusive" and finding.material is None
    return unsure and all(narrow(ratio, precision) for ratio in finding.open)
