"""The ceiling of a server, as the run document holds it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from clientlab.bounded_numbers import Count, Positive, Seconds
from clientlab.results.part import MeasuredPart
from clientlab.results.server_counters import ServerUse
from clientlab.results.trial import Bound, PlannedTrial


class Ceiling(MeasuredPart):
    """How many requests per second an upstream answered by a route, to the fastest load generator of the machine.

    It is measured once, before the first round, with the request of a workload without its delay.
    """

    upstream: str
    route: str
    arms: Annotated[list[str], Field(description="names of the arms that it is for", max_length=10_000)]
    http: Annotated[Literal["1.1", "2"], Field(description="version of HTTP of the arms that it is for")]
    generator: Annotated[
        str | None, Field(description="the program, or the strategy, that sent the requests; null: none did")
    ] = None
    version: Annotated[str | None, Field(description="of the program")] = None
    connections: Annotated[Count, Field(description="requests in flight, each on a connection of its own")]
    without_delay: Annotated[bool, Field(description="whether the workload has a delay, which was left out")]
    seconds: Seconds | None = None
    requests: Annotated[Count, Field(description="that succeeded")] = 0
    failed: Annotated[Count, Field(description="that got no response, or one with a status from 400 on")] = 0
    requests_per_second: Annotated[Positive | None, Field(description="successful ones; null: not measured")] = None
    generator_cpu_seconds: Seconds | None = None
    upstream_use: ServerUse | None = None
    proxy_use: ServerUse | None = None
    verdict: Annotated[
        Bound | None,
        Field(description="what limited the generator; client-bound: itself, so the server may do more; null: unknown"),
    ] = None
    reason: Annotated[str | None, Field(description="why the ceiling was not measured")] = None


def ceiling_of(trial: PlannedTrial, ceilings: Iterable[Ceiling]) -> Ceiling | None:
    """The ceiling that is for the arm of a trial; None where there is none."""
    return next((one for one in ceilings if trial.arm in one.arms), None)
