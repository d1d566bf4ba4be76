"""How long the requests of a trial were on their way through its link, and how much of the bandwidth they took."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.results.trial import PlannedTrial
from clientlab.samples.log_reader import Samples
from clientlab.workload.workload import Workload, delay_of

FIRST_WINDOW = 10 * 1460
"""Bytes that TCP sends on a new connection before the first acknowledgement (RFC 6928)."""

_BITS = 8


@dataclass(frozen=True)
class LinkTraffic:
    """What a trial sent and received. `opened`: connections inside the clock; None where the client hides them."""

    requests: int
    opened: int | None
    received_bytes: int
    upload_bytes: int
    wall_seconds: float


@dataclass(frozen=True)
class LinkWaits:
    """`seconds`: round trips, summed over requests and connections. `exact`: nothing else of the link took time.

    `bandwidth`: bytes of bodies over those that the bandwidth permits, in the direction that has more; None without a
    limit.
    """

    seconds: float
    exact: bool
    bandwidth: float | None


def traffic_of(
    workload: Workload, sent: int, received_bytes: int, opened: int | None, wall_seconds: float
) -> LinkTraffic:
    """What a trial of the workload sent. Of the bodies of requests, only generated uploads count."""
    return LinkTraffic(sent, opened, received_bytes, sent * (workload.upload_size or 0), wall_seconds)


def link_waits(planned: PlannedTrial, sent: LinkTraffic) -> LinkWaits | None:
    """The waits of a trial; None without a link.

    A request takes one round trip, and so does the handshake of TCP. TLS adds one (version 1.3) to each connection.
    Bodies beyond the first window take more, and so do those of a limited bandwidth.
    """
    link = planned.link
    if link is None:
        return None
    handshakes = 2 if planned.route == "proxy-tls" else 1
    trips = sent.requests + handshakes * (sent.opened or 0)
    largest = max(sent.received_bytes, sent.upload_bytes)
    small = largest <= FIRST_WINDOW * sent.requests
    permitted = None if link.bandwidth is None else link.bandwidth / _BITS * sent.wall_seconds
    return LinkWaits(
        seconds=trips * link.rtt,
        exact=small and permitted is None and sent.opened is not None,
        bandwidth=None if permitted is None else largest / permitted,
    )


def delays_in(workload: Workload, sent: Samples) -> float | None:
    """Seconds of the requested delays, over all requests; None without delays."""
    delay = delay_of(workload)
    return None if delay is None else sum(map(delay, sent.numbers.tolist()))
