"""Conformance: the rules for every strategy, checked by a server that shares no code with the lab."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab.conformance.scenario import CheckResult, Drill
from clientlab.conformance.selection import DRILLS, drills_of, product, selection
from clientlab.strategies import Strategy

__all__ = ["DRILLS", "CheckResult", "Drill", "conform", "drills_of", "product", "selection"]


def conform(strategy: Strategy) -> Iterator[CheckResult]:
    """The result of every check of a strategy, one by one. All checks take some seconds."""
    for drill in drills_of(strategy):
        yield from drill.judge(strategy)
