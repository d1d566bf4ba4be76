"""Counters of the servers: what upstream, proxy and link spent and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from pydantic import NonNegativeFloat as NotNegative
from pydantic import NonNegativeInt as Count

from clientlab.validation import MeasuredPart


class ServerUse(MeasuredPart):
    """What an upstream, the proxy or the link spent and counted during a trial."""

    cpu_seconds: float
    requests: Count | None = None
    connections: Count | None = None  # accepted with at least one request
    held_seconds: float | None = None
    """Sum over requests: from the request read to its response ready, with delays."""

    processes: Count | None = None  # among which the CPU time is divided, one core each
    slots: Count | None = None  # requests that it can hold at once; None: no limit
    cores: NotNegative | None = None  # CPU cores that it may use
    failed_requests: Count | None = None
    """Of an upstream: answered with status 400 or more."""

    request_body_bytes: Count | None = None  # that an upstream received
    response_body_bytes: Count | None = None  # that an upstream sent
    request_digest: Count | None = None
    """Sum of the hashes of methods and targets that an upstream received."""

    in_flight: Count | None = None
    """Requests of others that an upstream held when the trial began."""

    cpu_step_seconds: float = 0.01  # resolution of cpu_seconds; 0: nanoseconds
    worker_cpu_seconds: list[float] | None = None
    """Of each worker, in the order of their start; None: unknown."""

    worker_held_seconds: list[float] | None = None
    """held_seconds of each worker; None: unknown."""

    up_bytes: Count | None = None  # of a link: bytes that it carried to the servers
    down_bytes: Count | None = None  # of a link: bytes that it carried to the client


class FaultCounts(MeasuredPart):
    """What an upstream counted of the calls of a trial with faults."""

    calls: Count
    attempts: Count
    carried_out: Count
    repeated: Count
    kinds: dict[str, Count]
    width: float
    """Seconds of each bin."""

    bins: list[Count]
    """Attempts over time, from the first one."""

    faults: str = ""
    seed: int = 0


OF_LINK = ("up_bytes", "down_bytes")
"""Fields of a link's use that its process counts, if its bandwidth is limited."""

_COUNTERS = (  # fields of a server's use that grow; the others are as it reports them
    "cpu_seconds",
    "connections",
    "held_seconds",
    "requests",
    "failed_requests",
    "request_body_bytes",
    "response_body_bytes",
    "request_digest",
    *OF_LINK,
)
# Fields with a value for each worker
_OF_WORKERS = ("worker_cpu_seconds", "worker_held_seconds")


class ServerCounters(MeasuredPart):
    """Counters of all servers, at one moment or over a trial; None if unknown."""

    upstream: ServerUse | None = None
    proxy: ServerUse | None = None
    link: ServerUse | None = None

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of all servers that are known."""
        uses = (self.upstream, self.proxy, self.link)
        return sum(use.cpu_seconds for use in uses if use is not None)

    def since(self, before: ServerCounters) -> ServerCounters:
        """Return the growth of each counter since a reading."""

        def subtract(readings: list[float]) -> float:
            return readings[0] - readings[1]

        growth = combine_counters([self, before], subtract)
        if growth.upstream is None or before.upstream is None:
            return growth
        in_flight = before.upstream.in_flight
        use = growth.upstream.updated(in_flight=in_flight)
        return growth.updated(upstream=use)


def combine_counters(
    readings: Sequence[ServerCounters], by: Callable[[list[float]], float]
) -> ServerCounters:
    """Return each counter computed from all readings by a function.

    It is None if it is missing from one of them. Servers only count on, so `min` and
    `max` return the first and the last reading. `sum` adds up growths.
    """
    combined = {}
    for server in ServerCounters.model_fields:
        uses: list[ServerUse | None] = [
            getattr(reading, server) for reading in readings
        ]
        known = [use for use in uses if use is not None]
        if known and len(known) == len(uses):
            combined[server] = _combine_uses(known, by)
    return ServerCounters(**combined)


def _combine_uses(
    uses: Sequence[ServerUse], by: Callable[[list[float]], float]
) -> ServerUse:
    in_flight = [use.in_flight for use in uses if use.in_flight is not None]
    changes: dict[str, Any] = {"in_flight": max(in_flight, default=None)}
    for name in _COUNTERS + _OF_WORKERS:
        values = [getattr(use, name) for use in uses]
        if None in values:
            changes[name] = None
        elif name in _OF_WORKERS:
            # A worker that was not yet there had counted nothing.
            by_worker = zip_longest(*values, fillvalue=0.0)
            changes[name] = [by(list(counts)) for counts in by_worker]
        else:
            changes[name] = by(values)
    return uses[0].updated(**changes)
