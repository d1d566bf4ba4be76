"""Conformance: what every strategy has to keep to, seen by a server that shares no code with the lab."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clientlab.conformance.budget import BUDGET, ONE, SEVEN
from clientlab.conformance.connecting import REFUSED, UNANSWERED
from clientlab.conformance.drill import Drill, Result
from clientlab.conformance.ending import DURATION, STOP
from clientlab.conformance.faults import DRILL as FAULTS
from clientlab.conformance.faults import OVER_HTTP2
from clientlab.conformance.verifying import TLS
from clientlab.strategies import Strategy, client_row

DRILLS: tuple[Drill[Any], ...] = (BUDGET, ONE, SEVEN, FAULTS, OVER_HTTP2, TLS, REFUSED, UNANSWERED, DURATION, STOP)

__all__ = ["DRILLS", "Drill", "Result", "conform", "drills_of"]


def drills_of(strategy: Strategy) -> list[Drill[Any]]:
    """Those that can be asked of it: what starts all at once has no duration.

    Fewer faults of a client that speaks HTTP/2: Caddy stands before the server, and makes answers of the others.
    None of a program that drives: it sends one request again and again, and tells little of each.
    """
    if client_row(strategy.client).program:
        return []
    return [drill for drill in DRILLS if drill.fits(strategy)]


def conform(strategy: Strategy) -> Iterator[Result]:
    """Every check of a strategy, as it is known; some seconds in all."""
    for drill in drills_of(strategy):
        yield from drill.judge(strategy)
