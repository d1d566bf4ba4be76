"""The bottleneck of a trial: its name, and the shares and the requests in flight that led to it."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat as NotNegative

from clientlab.validation import MeasuredPart

Bound = Literal[
    "client-bound", "proxy-bound", "upstream-bound", "link-bound", "bandwidth-bound", "latency-bound",
    "client-connections", "client-streams", "client-lock", "upstream-threads", "start-up", "machine", "chain",
    "outside", "unaccounted", "mixed", "on-schedule", "behind-schedule", "overloaded",
]  # fmt: skip
"""What limited a trial; the last three are of open loads."""

BUSY_PARTS = {
    "client": "CPU time of the client, of the cores that it can use; of its fullest process, if that is more",
    "proxy": "CPU time of the proxy, of the cores that it can use",
    "upstream": "CPU time of the upstream, of the cores that it can use; of its fullest worker, if that is more",
    "link": "CPU time of the link's process, of one core",
    "bandwidth": "bytes that passed the link, of those that its bandwidth permits, in the fuller direction",
    "latency": "requested delays and round trips of the link, of the time of the requests in flight",
    "upstream_threads": "requests in the upstream's threads, where these are fewer than the requests in flight",
    "connections": "requests on the client's connections, where these are fewer than the requests in flight",
    "streams": "requests on the streams of the client's HTTP/2 connections, if these are fewer than those in flight",
    "startup": "time until the last process of a pool had begun, of the trial",
    "machine": "busy time of all cores, whoever used them",
    "chain": "delays, round trips and CPU time of all parts, of the time of the requests in flight",
    "waiting": "requests in flight that neither link, proxy nor upstream held",
    "unaccounted": "time of the requests that neither a delay, nor a server, nor CPU time of the client explains",
    "locks": "threads of the client that were seen blocked on a lock, of those that were looked at",
    "in_turn": "requests that ended at least their own delay after the one before, of all",
    "outside": "time of each request that is not the client's CPU time, for a server without counters",
}
"""The keys of `Trial.busy`: part → what its share is a share of."""


class InFlight(MeasuredPart):
    """Mean number of requests in flight, by Little's law: the sum of their times over the wall time."""

    client: NotNegative  # begun by the client's clock, and not ended
    proxy: NotNegative | None = None  # read by the proxy, and not answered
    upstream: NotNegative | None = None  # read by the upstream, and not ready
    link: NotNegative | None = None  # on the way through the link: its round trips; None: no link
