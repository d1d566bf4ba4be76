"""What a ratio is an estimate of, in one sentence for every page that shows ratios."""

from __future__ import annotations

from collections.abc import Iterable

PAIRED = (
    "A ratio is the typical one: the median over the rounds of how many times as much one arm has as the other in the "
    "same round."
)
FASTEST = (
    "x fastest is the typical ratio of time per request: the median over the rounds, reconciled over all pairs of "
    "arms. All intervals of a table together hold the truth in 95 of 100 runs, whichever arm is the fastest. If an "
    "interval includes 1, the two arms do not differ measurably."
)
LEAST_P99 = (
    "x least p99 is the typical ratio of the 99th percentile of latency from the planned start, since the schedule of "
    "an open load decides how long its trials take. It is paired and reconciled as x fastest of a closed load is, and "
    "its intervals hold together as well."
)
UNPAIRED = (
    "A ratio is the typical one: the median of how many times as much a round of one run has as a round of the other. "
    "All intervals of this comparison together hold the truth in 95 of 100 comparisons."
)


def standings(open_loads: Iterable[bool]) -> str:
    """What the ratios of a run's tables are. `open_loads`: whether each of its groups is an open load."""
    kinds = set(open_loads)
    return " ".join(text for kind, text in ((False, FASTEST), (True, LEAST_P99)) if kind in kinds)
