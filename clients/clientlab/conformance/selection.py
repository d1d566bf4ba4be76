"""The scenarios that the tests run with the listed strategies: a selection from all pairs, by one rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from clientlab.conformance.ending import DURATION, STOP
from clientlab.conformance.faults import OVER_HTTP2, REFUSED, UNANSWERED
from clientlab.conformance.faults import SCENARIO as FAULTS
from clientlab.conformance.giving_up import CANCELLED
from clientlab.conformance.hostile import HOSTILE, WITHOUT_END
from clientlab.conformance.hostile_h2 import HOSTILE_H2, WITHOUT_END_H2
from clientlab.conformance.same_work import BUDGET, ONE, SEVEN
from clientlab.conformance.scenario import Scenario, StrategyPart
from clientlab.conformance.stream_ending import LEFT, STREAM_WITHOUT_END
from clientlab.conformance.streams import STREAMS
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
    CANCELLED,
    *(OF_STREAMS := (STREAMS, LEFT, STREAM_WITHOUT_END)),
)

Pair = tuple[Strategy, Scenario[Any]]
"""One trial of the conformance checks."""


def scenarios_of(strategy: Strategy) -> list[Scenario[Any]]:
    """The scenarios that a strategy can do: an executor that starts all requests at once has no duration.

    A client that speaks HTTP/2 meets fewer faults, because Caddy before the server answers for the others.
    A program that drives has no scenarios: it sends one request again and again, and records little of each. An event
    loop without TLS has none of those of TLS. A function of a URL has no other methods, no CA and no time limit of
    the lab's. A client that only reads streams has no other scenarios.
    """
    if client_spec(strategy.client).program:
        return []
    if client_spec(strategy.client).streams_only:
        return list(OF_STREAMS)
    left_out = () if loop_of(strategy.settings).has_tls else (TLS, HANDSHAKE)
    if client_spec(strategy.client).url_only:
        left_out = (*left_out, ONE, SEVEN, TLS, UNANSWERED)
    return [scenario for scenario in SCENARIOS if scenario.fits(strategy) and scenario not in left_out]


def product(strategies: Iterable[Strategy]) -> list[Pair]:
    """Every strategy with every scenario that it can do."""
    return [(strategy, scenario) for strategy in strategies for scenario in scenarios_of(strategy)]


def selection(strategies: Iterable[Strategy]) -> list[Pair]:
    """Each scenario once with each value of each part that it depends on.

    Strategies that send one request after the other come first: of the clients alone they show most, because
    each request then meets the connection of the one before it. Those that keep connections come first of them.
    """
    return _covering(strategies, lambda part, _scenario: (part,))


def brief_selection(strategies: Iterable[Strategy]) -> list[Pair]:
    """The same with each library and each executor, in place of each client and each pair of them.

    One request is sent with every client all the same: that shows whether its file works at all. The thousand requests
    are sent with each kind of library: other scenarios show each library's method, headers, body and connections.
    """
    return _covering(strategies, _brief_parts)


def _brief_parts(part: StrategyPart, scenario: Scenario[Any]) -> tuple[StrategyPart, ...]:
    """The coarser parts that stand for a part in the brief selection."""
    if scenario is ONE or part not in {"strategy", "client"}:
        return (part,)
    return ("library kind", "executor") if part == "strategy" else ("way of sending",)


def _covering(
    strategies: Iterable[Strategy], parts: Callable[[StrategyPart, Scenario[Any]], tuple[StrategyPart, ...]]
) -> list[Pair]:
    """Each scenario once with each value of the parts that stand for each one that it depends on."""
    done: set[Hashable] = set()
    pairs = []
    for strategy, scenario in product(sorted(strategies, key=_telling)):
        wanted = {part for needed in scenario.depends_on for part in parts(needed, scenario)}
        met = {(scenario.name, part, _value(part, strategy)) for part in wanted}
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
    if part == "way of sending":
        return _value("library", strategy), _own_way_of_sending(strategy), client_spec(strategy.client).streams_only
    return strategy.client, settings, _own_way_of_sending(strategy)


def _own_way_of_sending(strategy: Strategy) -> str:
    """The executor's name if it drives the client itself, or runs only some clients, which it patches or wraps."""
    spec = executor_spec(strategy.executor)
    return spec.name if spec.drives_client or spec.only else ""
