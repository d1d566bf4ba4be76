"""The scenarios of equal budgets: 1,000 requests, 1 and 7, compared with what reached the server."""

from __future__ import annotations

from collections.abc import Callable

from clientlab.conformance import same_work
from clientlab.conformance.evidence import FEW_CAS, Evidence, serve
from clientlab.conformance.responses import Gate, items
from clientlab.conformance.scenario import Check, Scenario
from clientlab.strategies import Strategy
from clientlab.workload.workload import Workload

CONCURRENCY = 7  # of the thousand: six chunks and one for the remainder fill it
WIDE = 10
"""The concurrency of workloads that have fewer requests."""

_HOLD = 0.001


def _do(workload: Workload) -> Callable[[Strategy], Evidence]:
    def do(strategy: Strategy) -> Evidence:
        asked, requests = workload.concurrency or 1, workload.requests or 0
        width = strategy.in_flight(asked, requests)
        gate = Gate(min(width, asked + 1, requests))
        return serve(strategy, workload, items(gate, _HOLD if width > 1 else 0.0), ca_file=FEW_CAS)

    return do


def _of(method: str, requests: int, concurrency: int, *, payload: bool, parse: bool = False) -> Workload:
    return Workload(
        path="/item/{k}?x=1", method=method, payload_size=300 if payload else None, headers={"X-Mine": "yes"},
        parse=parse, requests=requests, concurrency=concurrency, warmup=1,
    )  # fmt: skip


CHECKS: dict[str, Check[Evidence]] = {
    "1,000 requests": same_work.exactly_n,
    "method, headers, body": same_work.as_asked,
    "recorded once": same_work.recorded,
    "whole body read": same_work.whole_body,
    "never more in flight": same_work.never_more,
    "as many in flight": same_work.as_many,
    "connection policy": same_work.policy,
    "connections counted": same_work.counted,
}


def _all_of_them(found: Evidence) -> str:
    """The message of the first of these checks that finds something broken; empty if none does."""
    return next((broken for check in CHECKS.values() if (broken := check(found))), "")


BUDGET = Scenario(
    "budget", _do(_of("POST", 1000, CONCURRENCY, payload=True, parse=True)), CHECKS, frozenset({"strategy"})
)
# How a method is sent depends on the client. No other scenario sends PUT and HEAD.
ONE = Scenario(
    "one",
    _do(_of("PUT", 1, WIDE, payload=True)),
    {"one request": _all_of_them, "method PUT": same_work.method},
    frozenset({"client", "executor"}),
)
SEVEN = Scenario(
    "seven",
    _do(_of("HEAD", 7, WIDE, payload=False)),
    {"seven requests": _all_of_them, "method HEAD": same_work.method},
    frozenset({"client", "executor"}),
)
