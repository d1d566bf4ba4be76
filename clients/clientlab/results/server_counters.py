"""Counters of the servers: what an upstream, the proxy and the link spent and counted, at a moment or in a trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from clientlab.bounded_numbers import Count, NotNegative, Seconds
from clientlab.results.part import MeasuredPart


class ServerUse(MeasuredPart):
    """What an upstream, the proxy or the link spent and counted during a trial."""

    cpu_seconds: Seconds
    requests: Count | None = None
    connections: Annotated[Count | None, Field(description="accepted with at least one request")] = None
    held_seconds: Annotated[
        Seconds | None, Field(description="sum over requests: from the request read to its response ready, with delays")
    ] = None
    processes: Annotated[Count | None, Field(description="among which the CPU time is divided, one core each")] = None
    slots: Annotated[Count | None, Field(description="requests that it can hold at once; null: no limit")] = None
    cores: Annotated[NotNegative | None, Field(description="CPU cores that it may use")] = None
    cpu_step_seconds: Annotated[Seconds, Field(description="resolution of cpu_seconds; 0: nanoseconds")] = 0.01


_COUNTERS = ("cpu_seconds", "requests", "connections", "held_seconds")
"""Fields of a server's use that grow; the others are as the server reports them."""


class ServerCounters(MeasuredPart):
    """Counters of all servers, at one moment or over a trial; null for those that are unknown."""

    upstream: ServerUse | None = None
    proxy: ServerUse | None = None
    link: ServerUse | None = None

    def since(self, before: ServerCounters) -> ServerCounters:
        """The growth of each counter since a reading."""
        return _combined([self, before], lambda now_and_then: now_and_then[0] - now_and_then[1])


def first_of(readings: Sequence[ServerCounters]) -> ServerCounters:
    """The least of each counter. Servers only count on, so this is the first reading."""
    return _combined(readings, min)


def last_of(readings: Sequence[ServerCounters]) -> ServerCounters:
    """The largest of each counter, which is the last reading."""
    return _combined(readings, max)


def _combined(readings: Sequence[ServerCounters], of: Callable[[list[float]], float]) -> ServerCounters:
    """Each counter of each server computed from all readings; None for one that a reading lacks."""

    def use(uses: list[ServerUse | None]) -> ServerUse | None:
        known = [one for one in uses if one is not None]
        if len(known) < len(uses) or not known:
            return None
        columns = {name: [getattr(one, name) for one in known] for name in _COUNTERS}
        return known[0].model_copy(
            update={name: None if None in values else of(values) for name, values in columns.items()}
        )

    return ServerCounters(
        upstream=use([one.upstream for one in readings]),
        proxy=use([one.proxy for one in readings]),
        link=use([one.link for one in readings]),
    )
