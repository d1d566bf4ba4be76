"""A row of the table of benchmarks: a figure, its spread and its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from clientlab.statistics.ratios import paired_ratio


@dataclass(frozen=True)
class BenchmarkRow:
    """`low` and `high` are the 95 % interval of `value` or its range, as
    `spread` says.
    """

    name: str
    value: float
    low: float
    high: float
    spread: str
    target: str
    met: bool
    unit: str = "x"


def ratio(
    name: str, ratios: Sequence[float], limit: float | None = None
) -> BenchmarkRow:
    """Return the row of a ratio that was measured once per round.

    Its median must not exceed the limit.
    """
    value, rounds = median(ratios), dict(enumerate(ratios))
    target, met = ("none", True) if limit is None else (f"<= {limit:g}", value <= limit)
    mean = paired_ratio(rounds, dict.fromkeys(rounds, 1.0))
    if mean is None or mean.low is None or mean.high is None:
        return BenchmarkRow(
            name,
            value,
            min(ratios),
            max(ratios),
            f"range of {len(ratios)}",
            target,
            met,
        )
    return BenchmarkRow(
        name, value, mean.low, mean.high, f"95 % of {len(ratios)} rounds", target, met
    )


def share(
    name: str,
    hits: npt.NDArray[np.bool_],
    *,
    least: float | None = None,
    most: float | None = None,
) -> BenchmarkRow:
    """Return a share of simulated runs, and its interval (Wilson 1927, Probable
    inference).
    """
    n, found, z = len(hits), float(hits.mean()), 1.96
    middle, reach = (
        found + z**2 / (2 * n),
        z * np.sqrt(found * (1 - found) / n + z**2 / (4 * n**2)),
    )
    low, high = (
        100 * float(middle + sign * reach) / (1 + z**2 / n) for sign in (-1, 1)
    )
    target, met = "none", True
    if least is not None:
        target, met = f">= {least:.0%}", found >= least
    if most is not None:
        target, met = f"<= {most:.0%}", found <= most
    return BenchmarkRow(
        name, 100 * found, low, high, f"95 % of {n:,} runs", target, met, "%"
    )
