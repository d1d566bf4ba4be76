"""The scenario of cancelled requests: each ends when its caller gives it up, and gives back its slot of the pool."""

from __future__ import annotations

from clientlab.conformance.evidence import Evidence, serve, speaks_http2
from clientlab.conformance.scenario import Check, Scenario
from clientlab.conformance.server import ok
from clientlab.errors import CANCELLED as CANCELLED_KIND
from clientlab.strategies import Strategy, client_spec, executor_spec
from clientlab.workload.cancelled_requests import cancellation_of
from clientlab.workload.cancels import Cancels
from clientlab.workload.workload import Workload

HOLD = 0.6
"""Seconds for which the server holds each request: longer than a probe waits for requests that had a slot at once."""

_CANCELS = Cancels.parse("30%@50ms-150ms")


def _give_up(strategy: Strategy) -> Evidence:
    workload = Workload(
        path="/item/{k}", requests=12, concurrency=4, warmup=4, timeout=5.0, connections="warm", cancel=_CANCELS
    )
    found = serve(strategy, workload, lambda _: ok(), hold=HOLD)
    # A busy machine may send a request of the second probe late, so that it seems to wait for a slot.
    return serve(strategy, workload, lambda _: ok(), hold=HOLD) if _slots(found) else found


def _ended(found: Evidence) -> str:
    """Each request that was to be cancelled ended as such, before its answer; the others were answered."""
    drawn = cancellation_of(found.workload)
    for number in found.samples.numbers.tolist():
        wanted = "none" if drawn(number) is None else CANCELLED_KIND
        if (kind := found.kind(number)) != wanted:
            return f"the kind of request {number} is {wanted}, and it is recorded as {kind}"
    return ""


def _slots(found: Evidence) -> str:
    """As many requests are in flight at once as before."""
    both = found.probes
    if both is None:
        return "no probe was made"
    if both.before.seconds is None:
        return f"only {both.before.answered} of the requests before any cancellation were answered"
    lost = both.before.at_once - both.after.at_once
    return f"{lost} of {both.before.at_once} slots are lost behind cancelled requests" if lost > 0 else ""


def _fits(strategy: Strategy) -> bool:
    """Over HTTP/2, a pool has no slots to lose."""
    return (
        executor_spec(strategy.executor).cancels
        and executor_spec(strategy.executor).concurrent
        and not speaks_http2(strategy)
        and not client_spec(strategy.client).streams_only
    )


_CHECKS: dict[str, Check[Evidence]] = {"ends when it is cancelled": _ended, "slots of cancelled requests": _slots}

CANCELLED = Scenario("cancelled", _give_up, _CHECKS, frozenset({"client"}), _fits)
