"""Conformance: the rules for every strategy, checked by a server that shares no code with the lab."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab.conformance.causes import causes_of
from clientlab.conformance.scenario import CheckResult, Scenario
from clientlab.conformance.selection import SCENARIOS, scenarios_of, selection
from clientlab.strategies import Strategy

__all__ = [
    "SCENARIOS",
    "CheckResult",
    "Scenario",
    "causes_of",
    "conform",
    "scenarios_of",
    "selection",
]


def conform(strategy: Strategy) -> Iterator[CheckResult]:
    """The result of every check of a strategy, one by one. All checks take some seconds."""
    for scenario in scenarios_of(strategy):
        yield from scenario.judge(strategy)
