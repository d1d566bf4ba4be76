"""What a link adds to a trial by arithmetic, and the verdicts that rest on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clientlab.judging.verdict import Shares, verdict
from clientlab.results.bottleneck import InFlight
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running.busy_shares import LinkTraffic, LinkWaits, in_flight, link_waits, shares_of
from clientlab.running.trial_watch import deadline_of
from clientlab.workload.delays import Delay
from clientlab.workload.link import Link, unavoidable_of
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial
from clients.running.test_busy_shares import outcome


def planned(link: Link | None, **changes):
    """A trial with 10 requests in flight behind a link."""
    return a_planned_trial("urllib3@threads").model_copy(update={"link": link, "concurrency": 10, **changes})


def sent(requests=1000, opened=10, received=21_000, uploaded=0, wall=10.0) -> LinkTraffic:
    """A trial of 10 s."""
    return LinkTraffic(requests, opened, received, uploaded, wall)


@pytest.mark.parametrize(
    ("opened", "route", "trips"),
    [
        (1000, "proxy-tls", 3000),
        (None, "direct", 1000),
    ],
)
def test_a_request_takes_a_round_trip_and_so_does_each_handshake(opened, route, trips):
    """That of TCP, and that of TLS 1.3. Without a count of connections, the sum is only a lower bound."""
    found = link_waits(planned(Link(0.05), route=route), sent(opened=opened))
    assert found == LinkWaits(pytest.approx(0.05 * trips), exact=opened is not None, bandwidth=None)


def test_bodies_beyond_the_first_window_take_more_than_round_trips():
    """15 kB each, where 10 segments go at once. They have a share of a limited bandwidth: 12 of 24 Mbit/s."""
    assert not link_waits(planned(Link(0.05)), sent(received=15_000_000)).exact
    found = link_waits(planned(Link(0.05, 24e6)), sent(received=15_000_000))
    assert (found.bandwidth, found.exact) == (pytest.approx(0.5), False)


def test_the_bytes_that_the_link_carried_fill_it_with_their_heads():
    """Bodies of 21 bytes with heads of 300: the link counts both. Where it does not count, bodies alone are known."""
    traffic = replace(sent(received=210_000), carried_bytes=28_500_000)
    assert link_waits(planned(Link(0.05, 24e6)), traffic).bandwidth == pytest.approx(0.95)
    uncounted = link_waits(planned(Link(0.05, 24e6)), replace(traffic, carried_bytes=None))
    assert uncounted.bandwidth == pytest.approx(0.007)


def test_what_is_on_its_way_does_not_wait_in_the_client():
    """Of 10 in flight, 5 are in the link and 4 in the upstream. Where the link's part is unknown, so is the rest."""
    servers = ServerCounters(
        upstream=ServerUse(cpu_seconds=0.1, held_seconds=4.0), link=ServerUse(cpu_seconds=0.3, processes=1)
    )
    held = in_flight(10.0, 1.0, servers, LinkWaits(5.0, exact=True, bandwidth=None))
    assert held == InFlight(client=10, upstream=4, link=5)
    found = shares_of(planned(Link(0.05)), outcome(), 5.0, servers, held)
    assert (found.waiting, found.link) == (pytest.approx(0.1), pytest.approx(0.3))
    unknown = in_flight(10.0, 1.0, servers, LinkWaits(5.0, exact=False, bandwidth=None))
    assert shares_of(planned(Link(0.05)), outcome(), 5.0, servers, unknown).waiting is None


@pytest.mark.parametrize(
    ("shares", "bound"),
    [
        (Shares(client=0.2, link=0.9, latency=0.6), "link-bound"),
        (Shares(client=0.2, link=0.3, bandwidth=0.95, latency=0.6), "bandwidth-bound"),
        (Shares(client=0.2, link=0.3, bandwidth=0.2, latency=0.9), "latency-bound"),
    ],
)
def test_the_link_can_limit_a_trial(shares, bound):
    """By its process, by its bandwidth, or by its round trips, which count as delays."""
    assert verdict(shares, 10) == bound


def test_the_overhead_leaves_out_the_delay_and_one_round_trip():
    """It is known where there is either of them."""
    link = Link(0.1)
    assert unavoidable_of(Workload(), None) is None
    assert unavoidable_of(Workload(), link)(7) == 0.1
    assert unavoidable_of(Workload(delay=Delay.parse("20ms")), link)(7) == pytest.approx(0.12)
    assert unavoidable_of(Workload(delay=Delay.parse("20ms")), None)(7) == 0.02


def test_the_deadline_grows_by_the_round_trips_of_a_new_connection_for_each_request():
    """Four for each request: TCP, TLS 1.2, and the request."""
    workload = Workload(requests=90, warmup=10)
    assert deadline_of(workload, 1, Link(0.1)) - deadline_of(workload, 1) == pytest.approx(100 * 4 * 0.1)
