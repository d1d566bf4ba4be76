"""The arms of experiments/atlas.toml: every listed strategy with each workload that it can do, and what is left out.

Strategies that take a number of requests, and no duration, have no arm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES, Strategy

_Rule = Callable[[Strategy], str | None]
"""Why a strategy cannot do a workload; None if it can."""


def _http2_without_tls(strategy: Strategy) -> str | None:
    return "they speak HTTP/2 only, which needs TLS" if CLIENTS[strategy.client].http == "2" else None


def _verifies_nothing(strategy: Strategy) -> str | None:
    return "they verify no certificate" if CLIENTS[strategy.client].program else None


def _one_at_a_time(strategy: Strategy) -> str | None:
    return None if EXECUTORS[strategy.executor].concurrent else "they have one request in flight"


def _several_at_once(strategy: Strategy) -> str | None:
    return "they have several requests in flight" if EXECUTORS[strategy.executor].concurrent else None


def _not_asyncio(strategy: Strategy) -> str | None:
    return None if EXECUTORS[strategy.executor].needs == "asyncio" else "they are not on asyncio"


def _keeps_http2_connections(strategy: Strategy) -> str | None:
    return "HTTP/2 has no request that closes its connection" if CLIENTS[strategy.client].http == "2" else None


def _keeps_no_connection(strategy: Strategy) -> str | None:
    return "they keep no connection" if strategy.policy == "per call" else None


def _without_http2(strategy: Strategy) -> str | None:
    spec = CLIENTS[strategy.client]
    both = any(other.http == "2" and other.distribution == spec.distribution for other in CLIENTS.values())
    return None if both else "the lab has no HTTP/2 client of their library"


def _needs_a_number(strategy: Strategy) -> str | None:
    return "they start all requests at once" if EXECUTORS[strategy.executor].needs_count else None


def _counts_its_requests(strategy: Strategy) -> str | None:
    return "they take a number of requests, and no duration" if CLIENTS[strategy.client].program == "ab" else None


@dataclass(frozen=True)
class _Work:
    """A workload of the atlas: its name and route, and what keeps strategies from it. The first rule decides."""

    name: str
    route: str
    rules: tuple[_Rule, ...]

    def refusal(self, strategy: Strategy) -> str | None:
        """Why the strategy is left out; None if it is an arm."""
        rules = (*self.rules, _counts_its_requests, _needs_a_number)
        return next((reason for rule in rules if (reason := rule(strategy)) is not None), None)


WORK = (
    _Work("json", "direct", (_http2_without_tls,)),
    _Work("delay", "direct", (_http2_without_tls, _one_at_a_time)),
    _Work("many", "direct", (_http2_without_tls, _not_asyncio, _one_at_a_time)),
    _Work("body", "direct", (_http2_without_tls,)),
    _Work("per-call", "proxy-tls", (_verifies_nothing, _keeps_http2_connections, _several_at_once)),
    _Work("http2", "proxy-tls", (_verifies_nothing, _without_http2, _keeps_no_connection)),
)


def arms() -> str:
    """A line of TOML for each strategy and workload: the body of the table ``[arms]``."""
    return "".join(f"{line}\n" for work in WORK for line in _arms(work))


def _arms(work: _Work) -> Iterator[str]:
    for strategy in STRATEGIES.values():
        if work.refusal(strategy) is None:
            fields = {"strategy": strategy.name, "workload": work.name, "route": work.route}
            table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())
            yield f"{json.dumps(f'{work.name} {strategy.name}')} = {{ {table} }}"


def left_out() -> str:
    """Items of a list of TOML: a sentence for each workload and reason, with the strategies that it leaves out."""
    return "".join(f"    {json.dumps(sentence)},\n" for work in WORK for sentence in _sentences(work))


def _sentences(work: _Work) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for strategy in STRATEGIES.values():
        if reason := work.refusal(strategy):
            reasons.setdefault(reason, []).append(strategy.name)
    for reason, names in reasons.items():
        yield f"Workload {work.name} leaves out, because {reason}: {', '.join(names)}."
