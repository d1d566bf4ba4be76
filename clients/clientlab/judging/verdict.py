"""The verdict of a trial: the part that limited it, from the busy shares of all parts."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.results.trial import Bound

SATURATED = 0.7
"""From this share of its cores' time on, a part counts as the bottleneck."""

WAITED = 0.5
"""From this share of the wall time on, the requested delays count as the bottleneck."""

SHORT_SECONDS = 0.2
"""A shorter trial has no verdict."""


@dataclass(frozen=True)
class Shares:
    """Busy shares of a trial's wall time, each between 0 and about 1; None if unknown.

    `client`, `proxy`, `upstream`: CPU seconds over the seconds of the cores that the part can use.
    `latency`: the time that the requested delays alone would take at this concurrency.
    """

    client: float
    proxy: float | None = None
    upstream: float | None = None
    latency: float | None = None


def busy(cpu_seconds: float, wall: float, lanes: int, cores: int) -> float:
    """CPU seconds as a share of the wall time of those cores that `lanes` processes can use."""
    return cpu_seconds / (wall * max(1, min(lanes, cores))) if wall > 0 else 0.0


def waited(delays: float, wall: float, concurrency: int) -> float:
    """The sum of all delays, divided by `concurrency`, as a share of the wall time."""
    return delays / concurrency / wall if wall > 0 else 0.0


def verdict(shares: Shares, wall: float) -> Bound:
    """The busiest part, if it was busy enough that the others waited for it.

    "unclear" if no part was, for example with one request after another, where each part waits for the next. A trial
    shorter than `SHORT_SECONDS` is "unclear", too: the servers' CPU time comes in steps of 10 ms.
    """
    parts: tuple[tuple[Bound, float | None, float], ...] = (
        ("client-bound", shares.client, SATURATED),
        ("proxy-bound", shares.proxy, SATURATED),
        ("upstream-bound", shares.upstream, SATURATED),
        ("latency-bound", shares.latency, WAITED),
    )
    saturated = [(share / enough, bound) for bound, share, enough in parts if share is not None and share >= enough]
    return max(saturated)[1] if saturated and wall >= SHORT_SECONDS else "unclear"
