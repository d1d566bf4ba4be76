"""Conformance: the rules for every strategy, checked by a server that shares no code with the lab."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clientlab.conformance.causes import causes_of
from clientlab.conformance.ending import DURATION, STOP
from clientlab.conformance.faults import OVER_HTTP2, REFUSED, UNANSWERED
from clientlab.conformance.faults import SCENARIO as FAULTS
from clientlab.conformance.same_work import BUDGET, ONE, SEVEN
from clientlab.conformance.scenario import CheckResult, Scenario
from clientlab.conformance.verifying import TLS
from clientlab.strategies import Strategy, client_spec

__all__ = ["SCENARIOS", "CheckResult", "Scenario", "causes_of", "conform", "scenarios_of"]

SCENARIOS: tuple[Scenario[Any], ...] = (
    BUDGET,
    ONE,
    SEVEN,
    FAULTS,
    OVER_HTTP2,
    TLS,
    REFUSED,
    UNANSWERED,
    DURATION,
    STOP,
)


def conform(strategy: Strategy) -> Iterator[CheckResult]:
    """Yield the result of every check of a strategy. All checks take some seconds."""
    for scenario in scenarios_of(strategy):
        yield from scenario.judge(strategy)


def scenarios_of(strategy: Strategy) -> list[Scenario[Any]]:
    """Return the scenarios that a strategy can do.

    A program sends one request again and again and records little of each, so it has none. A function gets a URL only:
    no other methods, no CA and no time limit of the lab's.
    """
    client = client_spec(strategy.client)
    if client.program:
        return []
    left_out = (ONE, SEVEN, TLS, UNANSWERED) if client.url_only else ()
    return [scenario for scenario in SCENARIOS if scenario.fits(strategy) and scenario not in left_out]
