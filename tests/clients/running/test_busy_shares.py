"""The shares behind a verdict: from CPU times, counters, what each part can use, and waits in the link."""

from __future__ import annotations

import pytest

from clientlab.judging.verdict import Shares, verdict
from clientlab.measuring.noise import Disturbance
from clientlab.measuring.outcome import Outcome
from clientlab.results.bottleneck import InFlight
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running import busy_shares
from clientlab.running.busy_shares import LinkWaits, client_cores, in_flight, link_waits, shares_of
from clientlab.workload.link import Link
from clients.documents import a_planned_trial

CORES = 4.0
IDLE = ServerUse(cpu_seconds=0.1)


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    """A machine of four cores."""
    monkeypatch.setattr(busy_shares, "cpu_usable", lambda: CORES)


def outcome(cpu: float = 0.5, wall: float = 1.0, connections: int = 32, processes: int = 1, **more) -> Outcome:
    """A trial's outcome with what these shares need, on a machine whose cores were busy for 90 %."""
    counts = dict.fromkeys(("connections_begun", "connections_opened", "connections_in_all"), connections)
    return Outcome(
        began=0.0, wall_seconds=wall, cpu_seconds=cpu, idle_rss_bytes=0, peak_rss_bytes=0, processes=processes,
        disturbance=Disturbance(wall, busy_share=0.9), **counts, **{"callers": processes, **more},
    )  # fmt: skip


def planned(strategy: str, concurrency: int = 32, **changes):
    """A trial of a strategy."""
    return a_planned_trial(strategy).model_copy(update={"concurrency": concurrency, **changes})


def shares(strategy: str = "urllib3@threads", many: int = 32, held: InFlight | None = None, **parts) -> Shares:
    """The shares of a trial. `parts`: uses of servers, delays, placement and link; the others are of its outcome."""
    servers = {name: parts.pop(name) for name in ("upstream", "proxy", "link") if name in parts}
    delays, placement, behind = parts.pop("delays", None), parts.pop("placement", None), parts.pop("behind", None)
    trial = planned(strategy, many, link=behind)
    held = held or InFlight(client=many)
    return shares_of(trial, outcome(**parts), delays, ServerCounters(**servers), held, placement)


@pytest.mark.parametrize(
    ("strategy", "measured", "cores"),
    [
        ("requests-session@threads", {}, 1),
        ("pycurl@threads", {}, 4),
        ("requests-session@processes", {"processes": 32}, 4),
        ("requests-session@threads", {"cpu": 1.8}, 1.8),
        ("aiohttp@async-threads?threads=3", {"callers": 3, "gil": False}, 3),
        ("aiohttp@async-threads?threads=3", {"callers": 3, "gil": True}, 1),
    ],
)
def test_a_client_can_use_a_core_for_each_process_or_thread_without_the_gil(strategy, measured, cores):
    """No more than there are; one that used more can use more. The GIL is that of the trial's process."""
    assert client_cores(planned(strategy), outcome(**measured), CORES) == cores


@pytest.mark.parametrize(
    ("strategy", "fullest", "share"),
    [
        ("requests-session@processes", 0.95, 0.95),
        ("requests-session@processes", 0.2, 1.2 / 4),
        ("pycurl@processes", 0.95, 1.2 / 4),
    ],
)
def test_the_fullest_process_of_the_client_counts(strategy, fullest, share):
    """One full process of eight limits what waits for it. A native library may use several cores in one process."""
    assert shares(strategy, cpu=1.2, processes=8, fullest_cpu_seconds=fullest).client == pytest.approx(share)


@pytest.mark.parametrize(
    ("many", "more", "share"),
    [(4, {"worker_cpu_seconds": [0.01, 0.97, 0.01, 0.01]}, 0.97), (2, {}, 0.5), (1, {"cores": 1}, 1.0)],
    ids=["one full worker", "two workers", "one core"],
)
def test_a_server_is_busy_by_its_fullest_worker_its_processes_and_its_cores(many, more, share):
    """One full worker of four is the bottleneck, although their sum is 25 % of the cores."""
    use = ServerUse(cpu_seconds=1.0, processes=many, cpu_step_seconds=0, **more)
    assert shares(upstream=use).upstream == pytest.approx(share)


def test_requests_in_flight_are_the_sum_of_their_times_over_the_wall_time():
    """Little's law, at the client, in the proxy and in the upstream; unknown where there is no counter."""
    held = ServerUse(cpu_seconds=0.1, held_seconds=8.0)
    assert in_flight(64.0, 2.0, ServerCounters(upstream=held)) == InFlight(client=32, upstream=4)
    assert in_flight(64.0, 2.0, ServerCounters(upstream=IDLE, proxy=held)) == InFlight(client=32, proxy=4)


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (Placement(client=[2, 3], upstream=[0], proxy=[1]), (0.75, 0.45, 0.5)),
        (Placement(client=[1], upstream=[0], proxy=[0]), (1.5, 0.9, 0.5 / 0.55)),
        (None, (0.375, 0.45, 0.5)),
    ],
    ids=["apart", "together", "anywhere"],
)
def test_pinned_parts_are_busy_by_their_own_cores(placement, expected):
    """A server that shares its core is judged by what the other server leaves of it."""
    upstream, proxy = (ServerUse(cpu_seconds=cpu, cores=1, cpu_step_seconds=0) for cpu in (0.45, 0.5))
    found = shares("pycurl@threads", cpu=1.5, upstream=upstream, proxy=proxy, placement=placement)
    assert (found.client, found.upstream, found.proxy) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("wall", "step", "upstream", "machine"), [(0.1, 0.01, None, None), (0.1, 0.0, 0.5, None), (1.0, 0.0, 0.05, 0.9)]
)
def test_steps_of_a_clock_hide_a_short_trial(wall, step, upstream, machine):
    """Of a clock in nanoseconds, it is known."""
    use = ServerUse(cpu_seconds=0.05, processes=1, cpu_step_seconds=step)
    found = shares(many=1, wall=wall, upstream=use)
    assert (found.upstream, found.machine) == (upstream, machine)


@pytest.mark.parametrize(
    ("many", "held", "share", "more"),
    [
        (32, 3.9, 3.9 / 4, {"slots": 4}),
        (32, 31, None, {"slots": 32}),
        # 45 of 64 connections on one of two workers with 25 threads, where 20 wait, and 19 on the other
        (64, 38.5, 1.0, {"slots": 50, "processes": 2, "worker_held_seconds": [25.0, 13.5]}),
    ],
)
def test_threads_of_the_upstream_are_full_by_the_requests_that_it_holds(many, held, share, more):
    """If it can hold fewer than are in flight; of several workers, the fullest counts."""
    upstream = ServerUse(cpu_seconds=0.1, **more)
    found = shares(many=many, held=InFlight(client=many, upstream=held), upstream=upstream)
    assert found.upstream_threads == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("strategy", "many", "opened", "behind", "full", "streams"),
    [
        ("aiohttp@gather", 32, 4, 3.8, 0.95, None),
        ("httpx-async-h2@workers", 150, 1, 99.0, None, 0.99),
        ("pycurl-h2@threads", 32, 32, 30.0, None, None),
    ],
)
def test_connections_and_streams_are_full_by_the_requests_on_them(strategy, many, opened, behind, full, streams):
    """If there are fewer of them. Httpx opens 100 streams on a connection; a handle of libcurl has one request."""
    held = InFlight(client=300, proxy=behind, upstream=behind)
    found = shares(strategy, many, held, connections=opened, upstream=IDLE, proxy=IDLE)
    assert (found.connections, found.streams) == (full, None if streams is None else pytest.approx(streams))


def test_without_counters_of_the_server_the_rest_of_each_request_is_outside():
    """The client's CPU time is inside; connections are taken to be in use."""
    found = shares("urllib3@threads", 10, cpu=0.2, connections=5)
    assert (found.upstream, found.waiting, found.chain, found.connections) == (None, None, None, 1)
    assert found.outside == pytest.approx(0.98)


def test_what_no_server_holds_waits_elsewhere_and_a_chain_is_what_no_request_can_avoid():
    """Of the requests that may be in flight; the chain has delays and CPU time of all parts, over the wall time."""
    held = InFlight(client=300, upstream=4)  # clocks of gather run before
    assert shares("aiohttp@gather", held=held, upstream=IDLE).waiting == 1 - 4 / 32
    held = InFlight(client=32, proxy=24, upstream=4)
    assert shares("aiohttp@workers", held=held, upstream=IDLE, proxy=IDLE).waiting == 0.25
    uses = {"upstream": ServerUse(cpu_seconds=0.3), "proxy": IDLE}
    assert shares(many=2, cpu=0.5, delays=0.7, **uses).chain == pytest.approx((0.5 + 0.3 + 0.1 + 0.7) / 2)


def waits(link: Link, route: str = "direct", **sent) -> LinkWaits:
    """The waits of 1,000 requests in 10 s."""
    usual = {"requests": 1000, "opened": 10, "received": 21_000, "uploaded": 0, "wall": 10.0}
    return link_waits(planned("urllib3@threads", link=link, route=route), **usual | sent)


@pytest.mark.parametrize(("opened", "route", "trips"), [(1000, "proxy-tls", 3000), (None, "direct", 1000)])
def test_a_request_takes_a_round_trip_and_so_does_each_handshake(opened, route, trips):
    """That of TCP, and that of TLS 1.3. Without a count of connections, the sum is only a lower bound."""
    found = waits(Link(0.05), route, opened=opened)
    assert found == LinkWaits(pytest.approx(0.05 * trips), exact=opened is not None, bandwidth=None)


@pytest.mark.parametrize(
    ("sent", "share"),
    [
        ({"received": 15_000_000}, 0.5),
        ({"received": 210_000}, 0.007),
        ({"received": 210_000, "use": ServerUse(cpu_seconds=0.1, up_bytes=28_500_000, down_bytes=1)}, 0.95),
    ],
    ids=["bodies", "small bodies", "counted"],
)
def test_bytes_have_a_share_of_a_limited_bandwidth(sent, share):
    """Here 24 Mbit/s. A link that counts its bytes includes heads; bodies beyond the first window take more trips."""
    found = waits(Link(0.05, 24e6), **sent)
    assert (found.bandwidth, found.exact) == (pytest.approx(share), False)
    assert waits(Link(0.05), **sent).exact == (share < 0.5 or "use" in sent)


@pytest.mark.parametrize(("exact", "waiting"), [(True, 0.1), (False, None)])
def test_what_is_on_its_way_does_not_wait_in_the_client(exact, waiting):
    """Of 10 in flight, 5 are in the link and 4 in the upstream. If the link's part is unknown, so is the rest."""
    uses = {"upstream": ServerUse(cpu_seconds=0.1, held_seconds=4.0), "link": ServerUse(cpu_seconds=0.3, processes=1)}
    held = in_flight(10.0, 1.0, ServerCounters(**uses), LinkWaits(5.0, exact=exact, bandwidth=None))
    found = shares(many=10, held=held, delays=5.0, behind=Link(0.05), **uses)
    assert found.waiting == (None if waiting is None else pytest.approx(waiting))
    assert found.link == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("found", "bound"),
    [
        (Shares(client=0.2, link=0.9, latency=0.6), "link-bound"),
        (Shares(client=0.2, link=0.3, bandwidth=0.95, latency=0.6), "bandwidth-bound"),
        (Shares(client=0.2, link=0.3, bandwidth=0.2, latency=0.9), "latency-bound"),
    ],
)
def test_the_link_can_limit_a_trial(found, bound):
    """By its process, by its bandwidth, or by its round trips, which count as delays."""
    assert verdict(found, 10) == bound
