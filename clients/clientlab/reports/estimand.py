"""What a ratio is an estimate of, in one sentence for every page that shows ratios."""

from __future__ import annotations

PAIRED = (
    "A ratio is the typical one: the median over the rounds of how many times as much one arm has as the other in the "
    "same round."
)
FASTEST = (
    "x fastest is the typical ratio of time per request: the median over the rounds, reconciled over all pairs of "
    "arms. All intervals of a table together hold the truth in 95 of 100 runs, whichever arm is the fastest. If an "
    "interval includes 1, the two arms do not differ measurably."
)
UNPAIRED = (
    "A ratio is the typical one: the median of how many times as much a round of one run has as a round of the other. "
    "All intervals of this comparison together hold the truth in 95 of 100 comparisons."
)
