"""One row of the table: a figure, its spread over rounds, and what it is to reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import paired_ratio


@dataclass(frozen=True)
class BenchmarkRow:
    """`value` with `low` and `high` as the figure's 95 % interval or its range, as `spread` says."""

    name: str
    value: float
    low: float
    high: float
    spread: str
    target: str
    met: bool
    unit: str = "x"


def at_most(name: str, ratios: Sequence[float], limit: float) -> BenchmarkRow:
    """A ratio that is to stay below a limit."""
    return _ratio(name, ratios, f"<= {limit:g}", met=median(ratios) <= limit)


def at_least(name: str, ratios: Sequence[float], limit: float) -> BenchmarkRow:
    """A ratio that is to stay above a limit."""
    return _ratio(name, ratios, f">= {limit:g}", met=median(ratios) >= limit)


def ratio(name: str, ratios: Sequence[float]) -> BenchmarkRow:
    """A ratio with nothing to reach."""
    return _ratio(name, ratios, "none", met=True)


def _ratio(name: str, ratios: Sequence[float], target: str, *, met: bool) -> BenchmarkRow:
    rounds = dict(enumerate(ratios))
    mean = paired_ratio(rounds, dict.fromkeys(rounds, 1.0))
    if mean is None or mean.low is None or mean.high is None:
        return BenchmarkRow(name, median(ratios), min(ratios), max(ratios), f"range of {len(ratios)}", target, met)
    return BenchmarkRow(name, median(ratios), mean.low, mean.high, f"95 % of {len(ratios)} rounds", target, met)
