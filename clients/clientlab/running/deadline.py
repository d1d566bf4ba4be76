"""The deadline of a trial: long enough for any trial that gets on, and an end for one that does not."""

from __future__ import annotations

from clientlab.running.estimate import mean_delay
from clientlab.workload.link import Link
from clientlab.workload.load import arrivals_of, most_late, requests_in
from clientlab.workload.workload import Workload

FLOOR_SECONDS = 300.0
"""For the start of its process, its libraries, and a few long requests."""

_SHARE_OF_TIMEOUT = 0.1
"""A request that keeps the workload's timeout may on average take this share of it."""


_ROUND_TRIPS = 4
"""Of a request on a new connection: those of TCP, of TLS 1.2 (two), and its own."""


def deadline_of(workload: Workload, in_flight: int, link: Link | None = None) -> float:
    """Seconds from the start of its process after which a trial has failed: the workload's own, or a default.

    `in_flight`: requests in flight at once. The default is the sum of 5 minutes, twice the timeout, the duration, and
    for each request, those of the warm-up included, its mean delay, four round trips of the link, and a tenth of the
    timeout, the latter divided by the requests in flight. Delays and round trips are not divided: an upstream may serve
    one request after the other. The duration of
    an open load is that of its schedule, and of the time by which its last request may be late.
    """
    if workload.deadline is not None:
        return workload.deadline
    warm_up = max(workload.warmup, in_flight) if workload.connections == "warm" else workload.warmup
    requests = warm_up + (requests_in(workload) or 0)
    schedule = arrivals_of(workload)
    duration = (workload.duration or 0.0) if schedule is None else schedule.length + most_late(workload)
    trips = 0.0 if link is None else _ROUND_TRIPS * link.rtt
    each = mean_delay(workload) + trips + _SHARE_OF_TIMEOUT * workload.timeout / in_flight
    return FLOOR_SECONDS + 2 * workload.timeout + duration + requests * each
