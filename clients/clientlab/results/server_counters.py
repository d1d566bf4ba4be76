"""Counters of the servers: what an upstream, the proxy and the link spent and counted, at a moment or in a trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from pydantic import NonNegativeFloat as NotNegative
from pydantic import NonNegativeInt as Count

from clientlab.validation import MeasuredPart

Seconds = float


class ServerUse(MeasuredPart):
    """What an upstream, the proxy or the link spent and counted during a trial."""

    cpu_seconds: Seconds
    requests: Count | None = None
    connections: Count | None = None  # accepted with at least one request
    held_seconds: Seconds | None = None  # sum over requests: from the request read to its response ready, with delays
    processes: Count | None = None  # among which the CPU time is divided, one core each
    slots: Count | None = None  # requests that it can hold at once; None: no limit
    cores: NotNegative | None = None  # CPU cores that it may use
    failed_requests: Count | None = None  # of an upstream: answered with status 400 or more
    request_body_bytes: Count | None = None  # that an upstream received
    response_body_bytes: Count | None = None  # that an upstream sent
    request_digest: Count | None = None  # sum of the hashes of methods and targets that an upstream received
    in_flight: Count | None = None  # requests of others that an upstream held when the trial began
    cpu_step_seconds: Seconds = 0.01  # resolution of cpu_seconds; 0: nanoseconds
    worker_cpu_seconds: list[Seconds] | None = None  # of each worker, in the order of their start; None: unknown
    worker_held_seconds: list[Seconds] | None = None  # held_seconds of each worker; None: unknown
    up_bytes: Count | None = None  # of a link: bytes that it carried to the servers
    down_bytes: Count | None = None  # of a link: bytes that it carried to the client


OF_LINK = ("up_bytes", "down_bytes")
"""Fields of a link's use that its process counts, if its bandwidth is limited."""

_COUNTERS = (
    "cpu_seconds", "connections", "held_seconds", "requests", "failed_requests", "request_body_bytes",
    "response_body_bytes", "request_digest", *OF_LINK,
)  # fmt: skip
_OF_WORKERS = ("worker_cpu_seconds", "worker_held_seconds")
"""Fields of a server's use that grow, the latter with a value for each worker; the others are as it reports them."""


class ServerCounters(MeasuredPart):
    """Counters of all servers, at one moment or over a trial; null for those that are unknown."""

    upstream: ServerUse | None = None
    proxy: ServerUse | None = None
    link: ServerUse | None = None

    @property
    def known(self) -> list[ServerUse]:
        """The uses that are known."""
        return [use for use in (self.upstream, self.proxy, self.link) if use is not None]

    def since(self, before: ServerCounters) -> ServerCounters:
        """Return the growth of each counter since a reading."""
        grown = _combined([self, before], lambda now_and_then: now_and_then[0] - now_and_then[1])
        if grown.upstream is None or before.upstream is None:
            return grown
        use = grown.upstream.model_copy(update={"in_flight": before.upstream.in_flight})
        return grown.model_copy(update={"upstream": use})


def first_of(readings: Sequence[ServerCounters]) -> ServerCounters:
    """Return the least of each counter. Servers only count on, so this is the first reading."""
    return _combined(readings, min)


def last_of(readings: Sequence[ServerCounters]) -> ServerCounters:
    """Return the largest of each counter, which is the last reading."""
    return _combined(readings, max)


def total_of(grown: Sequence[ServerCounters]) -> ServerCounters:
    """Return the sum of each counter's growth."""
    return _combined(grown, sum)


def _combined(readings: Sequence[ServerCounters], of: Callable[[list[float]], float]) -> ServerCounters:
    """Return each counter of each server computed from all readings, or None for one that a reading lacks."""
    found = {}
    for server in ServerCounters.model_fields:
        uses: list[ServerUse] = [use for one in readings if (use := getattr(one, server)) is not None]
        if not uses or len(uses) < len(readings):
            continue
        others = [one.in_flight for one in uses if one.in_flight is not None]
        changes: dict[str, Any] = {"in_flight": max(others, default=None)}
        for name in _COUNTERS + _OF_WORKERS:
            values = [getattr(one, name) for one in uses]
            if None in values:
                changes[name] = None
            elif name in _OF_WORKERS:  # a worker that was not yet there had counted nothing
                changes[name] = [of(list(each)) for each in zip_longest(*values, fillvalue=0.0)]
            else:
                changes[name] = of(values)
        found[server] = uses[0].model_copy(update=changes)
    return ServerCounters(**found)
