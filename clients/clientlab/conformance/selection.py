"""The scenarios that `scripts/test --all` runs with the listed strategies: a selection from all pairs, by one rule."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from clientlab.conformance.ending import DURATION, STOP
from clientlab.conformance.faults import OVER_HTTP2, REFUSED, UNANSWERED
from clientlab.conformance.faults import SCENARIO as FAULTS
from clientlab.conformance.hostile import HOSTILE, WITHOUT_END
from clientlab.conformance.hostile_h2 import HOSTILE_H2, WITHOUT_END_H2
from clientlab.conformance.same_work import BUDGET, ONE, SEVEN
from clientlab.conformance.scenario import Scenario, StrategyPart
from clientlab.conformance.verifying import HANDSHAKE, TLS
from clientlab.strategies import Strategy, client_spec, executor_spec
from clientlab.strategies.executors import loop_of

SCENARIOS: tuple[Scenario[Any], ...] = (
    BUDGET,
    ONE,
    SEVEN,
    FAULTS,
    OVER_HTTP2,
    HOSTILE,
    HOSTILE_H2,
    HANDSHAKE,
    WITHOUT_END,
    WITHOUT_END_H2,
    TLS,
    REFUSED,
    UNANSWERED,
    DURATION,
    STOP,
)

Pair = tuple[Strategy, Scenario[Any]]
"""One trial of the conformance checks."""


def scenarios_of(strategy: Strategy) -> list[Scenario[Any]]:
    """The scenarios that a strategy can do: an executor that starts all requests at once has no duration.

    A client that speaks HTTP/2 meets fewer faults, because Caddy before the server answers for the others.
    A program that drives has no scenarios: it sends one request again and again, and records little of each. An event
    loop without TLS has none of those of TLS. A function of a URL has no other methods, no CA and no time limit of
    the lab's.
    """
    if client_spec(strategy.client).program:
        return []
    left_out = () if loop_of(strategy.settings).has_tls else (TLS, HANDSHAKE)
    if client_spec(strategy.client).url_only:
        left_out = (*left_out, ONE, SEVEN, TLS, UNANSWERED)
    return [scenario for scenario in SCENARIOS if scenario.fits(strategy) and scenario not in left_out]


def selection(strategies: Iterable[Strategy]) -> list[Pair]:
    """Each scenario once with each value of each part that it depends on.

    Strategies that send one request after the other come first: of the clients alone they show most, because
    each request then meets the connection of the one before it. Those that keep connections come first of them.
    """
    done: set[Hashable] = set()
    pairs = []
    for strategy in sorted(strategies, key=_telling):
        for scenario in scenarios_of(strategy):
            met = {(scenario.name, part, _value(part, strategy)) for part in scenario.depends_on}
            if not met <= done:
                pairs.append((strategy, scenario))
                done |= met
    return pairs


def _telling(strategy: Strategy) -> tuple[bool, bool]:
    """Sorts strategies: those of which a scenario shows most of the client come first."""
    return executor_spec(strategy.executor).concurrent, client_spec(strategy.client).policy == "per call"


def _value(part: StrategyPart, strategy: Strategy) -> Hashable:
    """A value that is equal for strategies with the same part. Settings belong to the part, or to both parts."""
    settings = frozenset(strategy.settings.items())
    if part == "strategy":
        return strategy.name
    if part == "executor":
        return strategy.executor, settings
    if part in {"library", "library kind"}:
        spec = client_spec(strategy.client)
        return (spec.distribution, spec.http) if part == "library" else (spec.kind, spec.native)
    return strategy.client, settings, _own_way_of_sending(strategy)


def _own_way_of_sending(strategy: Strategy) -> str:
    """The executor's name if it drives the client itself, or runs only some clients, which it patches or wraps."""
    spec = executor_spec(strategy.executor)
    return spec.name if spec.drives_client or spec.only else ""
