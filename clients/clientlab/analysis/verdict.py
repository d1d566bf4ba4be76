"""What held a trial back: the part that was busiest, as a share of what it could have been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["client-bound", "proxy-bound", "upstream-bound", "latency-bound", "unclear"]

SATURATED = 0.7
"""Share of its cores' time from which on a part is taken to have held the trial back."""

WAITED = 0.5
"""Share of the wall time that the asked delays alone would take, likewise."""

SHORT_SECONDS = 0.2
"""Wall time below which a trial is too short to be believed."""


@dataclass(frozen=True)
class Shares:
    """Busy shares of a trial's wall time, each between 0 and about 1; None where it is not known.

    client, proxy, upstream: CPU seconds over the seconds of the cores that the part can use.
    latency: the time that the asked delays alone would take at this concurrency.
    """

    client: float
    proxy: float | None = None
    upstream: float | None = None
    latency: float | None = None


def busy(cpu_seconds: float, wall: float, lanes: int, cores: int) -> float:
    """CPU seconds as a share of the wall time of the cores that `lanes` processes can use."""
    return cpu_seconds / (wall * max(1, min(lanes, cores))) if wall > 0 else 0.0


def waited(delays: float, wall: float, concurrency: int) -> float:
    """The sum of delays, spread over `concurrency` in flight, as a share of the wall time."""
    return delays / concurrency / wall if wall > 0 else 0.0


def verdict(shares: Shares, wall: float) -> Bound:
    """The busiest part, where it was busy enough to be the one that all waited for.

    "unclear" where no part was, as in one request after the other, where each part waits for the next;
    and for a trial of less than `SHORT_SECONDS`: the servers' CPU time comes in steps of 10 ms.
    """
    parts: tuple[tuple[Bound, float | None, float], ...] = (
        ("client-bound", shares.client, SATURATED),
        ("proxy-bound", shares.proxy, SATURATED),
        ("upstream-bound", shares.upstream, SATURATED),
        ("latency-bound", shares.latency, WAITED),
    )
    saturated = [(share / enough, bound) for bound, share, enough in parts if share is not None and share >= enough]
    return max(saturated)[1] if saturated and wall >= SHORT_SECONDS else "unclear"
