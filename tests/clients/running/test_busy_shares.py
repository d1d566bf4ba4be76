"""The shares behind a verdict: from CPU times, ledgers and what each part can use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clientlab.measuring.noise import Disturbance
from clientlab.measuring.outcome import Outcome
from clientlab.results.bottleneck import InFlight
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running import busy_shares
from clientlab.running.busy_shares import client_cores, in_flight, shares_of
from clients.documents import a_planned_trial

CORES = 4.0


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    """A machine of four cores."""
    monkeypatch.setattr(busy_shares, "cpu_usable", lambda: CORES)


def outcome(
    cpu: float = 0.5,
    wall: float = 1.0,
    processes: int = 1,
    connections: int = 32,
    callers: int = 0,
    *,
    gil: bool = True,
) -> Outcome:
    """A trial's outcome with what these shares need, on a machine whose cores were busy for 90 %."""
    disturbance = Disturbance(wall, busy_share=0.9)
    return Outcome(0.0, wall, cpu, 0, 0, connections, connections, connections, processes, disturbance=disturbance,
                   callers=callers or processes, gil=gil)  # fmt: skip


def planned(strategy: str, concurrency: int = 32):
    """A trial of a strategy."""
    return a_planned_trial(strategy).model_copy(update={"concurrency": concurrency})


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


@pytest.mark.parametrize("cpu", [1.0, 1.24])
def test_threads_with_a_gil_that_use_a_core_or_more_are_full(cpu):
    """Between 1.20 and 1.30 cores, the share of the client does not fall to half."""
    found = shares_of(planned("requests-session@threads"), outcome(cpu), None, ServerCounters(), InFlight(client=32))
    assert found.client == pytest.approx(1.0)


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
    whole = replace(outcome(1.2, processes=8), fullest_cpu_seconds=fullest)
    found = shares_of(planned(strategy), whole, None, ServerCounters(), InFlight(client=32))
    assert found.client == pytest.approx(share)


def test_the_fullest_worker_of_the_upstream_counts():
    """One full worker of four is the bottleneck, although their sum is 25 % of the cores."""
    workers = ServerUse(cpu_seconds=1.0, processes=4, cpu_step_seconds=0, worker_cpu_seconds=[0.01, 0.97, 0.01, 0.01])
    found = shares_of(planned("urllib3"), outcome(), None, ServerCounters(upstream=workers), InFlight(client=32))
    assert found.upstream == pytest.approx(0.97)
    even = workers.model_copy(update={"worker_cpu_seconds": [0.25] * 4})
    found = shares_of(planned("urllib3"), outcome(), None, ServerCounters(upstream=even), InFlight(client=32))
    assert found.upstream == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("strategy", "concurrency", "connections", "behind", "share"),
    [
        ("httpx-async-h2@workers", 150, 1, 99.0, 0.99),
        ("pycurl-h2@threads", 32, 32, 30.0, None),
    ],
)
def test_streams_of_http2_are_full_by_the_requests_on_them(strategy, concurrency, connections, behind, share):
    """Httpx opens 100 on a connection; a handle of libcurl has one request at a time."""
    servers = ServerCounters(upstream=ServerUse(cpu_seconds=0.1), proxy=ServerUse(cpu_seconds=0.1))
    held = InFlight(client=concurrency, proxy=behind, upstream=behind)
    found = shares_of(planned(strategy, concurrency), outcome(connections=connections), None, servers, held)
    assert found.streams == (None if share is None else pytest.approx(share))


def test_requests_in_flight_are_the_sum_of_their_times_over_the_wall_time():
    """Little's law, at the client, in the proxy and in the upstream; unknown where there is no counter."""
    held = ServerUse(cpu_seconds=0.1, held_seconds=8.0)
    assert in_flight(64.0, 2.0, ServerCounters(upstream=held)) == InFlight(client=32, upstream=4)
    unknown = ServerUse(cpu_seconds=0.1)
    assert in_flight(64.0, 2.0, ServerCounters(upstream=unknown, proxy=held)) == InFlight(client=32, proxy=4)


def test_a_server_is_busy_by_its_own_cores_and_processes():
    """Two workers of 4 are no busier than two cores; a control group with one core is full with one."""
    workers = ServerUse(cpu_seconds=1.0, processes=2, cpu_step_seconds=0)
    one_core = ServerUse(cpu_seconds=0.9, cores=1, cpu_step_seconds=0)
    found = shares_of(
        planned("urllib3@threads"),
        outcome(),
        None,
        ServerCounters(upstream=workers, proxy=one_core),
        InFlight(client=32),
    )
    assert (found.upstream, found.proxy) == (0.5, 0.9)


def test_pinned_parts_are_busy_by_their_own_cores():
    """A server that shares its core is judged by what the other server leaves of it."""
    upstream, proxy = (ServerUse(cpu_seconds=cpu, cores=1, cpu_step_seconds=0) for cpu in (0.45, 0.5))
    parts = (
        planned("pycurl@threads"),
        outcome(cpu=1.5),
        None,
        ServerCounters(upstream=upstream, proxy=proxy),
        InFlight(client=32),
    )
    apart = shares_of(*parts, Placement(client=[2, 3], upstream=[0], proxy=[1]))
    assert (apart.client, apart.upstream, apart.proxy) == (0.75, 0.45, 0.5)
    together = shares_of(*parts, Placement(client=[1], upstream=[0], proxy=[0]))
    assert (together.client, together.upstream, together.proxy) == pytest.approx((1.5, 0.9, 0.5 / 0.55))
    anywhere = shares_of(*parts)
    assert (anywhere.client, anywhere.upstream, anywhere.proxy) == (0.375, 0.45, 0.5)


def test_steps_of_a_clock_hide_a_short_trial():
    """Of a clock in nanoseconds, it is known."""
    rough, fine = (ServerUse(cpu_seconds=0.05, processes=1, cpu_step_seconds=step) for step in (0.01, 0.0))
    short = outcome(wall=0.1)
    found = shares_of(planned("urllib3"), short, None, ServerCounters(upstream=rough), InFlight(client=1))
    assert (found.upstream, found.machine) == (None, None)
    found = shares_of(planned("urllib3", 1), short, None, ServerCounters(upstream=fine), InFlight(client=1))
    assert found.upstream == 0.5
    assert (
        shares_of(planned("urllib3"), outcome(), None, ServerCounters(upstream=fine), InFlight(client=1)).machine == 0.9
    )


@pytest.mark.parametrize(("slots", "held", "share"), [(4, 3.9, 3.9 / 4), (32, 31, None)])
def test_threads_of_the_upstream_are_full_by_the_requests_that_it_holds(slots, held, share):
    """Where it can hold fewer than are in flight."""
    upstream = ServerUse(cpu_seconds=0.1, slots=slots)
    found = shares_of(
        planned("urllib3@threads"),
        outcome(),
        None,
        ServerCounters(upstream=upstream),
        InFlight(client=32, upstream=held),
    )
    assert found.upstream_threads == (None if share is None else pytest.approx(share))


def test_threads_of_the_fullest_worker_count():
    """64 connections on two workers with 25 threads: 45 on one, where 20 wait, and 19 on the other."""
    upstream = ServerUse(cpu_seconds=0.1, slots=50, processes=2, worker_held_seconds=[25.0, 13.5])
    servers, held = ServerCounters(upstream=upstream), InFlight(client=64, upstream=38.5)
    assert shares_of(planned("aiohttp@workers", 64), outcome(), None, servers, held).upstream_threads == 1.0


@pytest.mark.parametrize(
    ("strategy", "connections", "share"),
    [
        ("aiohttp@gather", 4, 0.95),
        ("httpx-async-h2@workers", 1, None),
    ],
)
def test_connections_are_full_by_the_requests_behind_them(strategy, connections, share):
    """Where there are fewer of them than requests in flight. HTTP/2 has many requests on one."""
    held = InFlight(client=300, upstream=3.8)
    servers = ServerCounters(upstream=ServerUse(cpu_seconds=0.1))
    assert shares_of(planned(strategy), outcome(connections=connections), None, servers, held).connections == share


def test_without_counters_of_the_server_the_rest_of_each_request_is_outside():
    """The client's CPU time is inside; connections are taken to be in use."""
    found = shares_of(
        planned("urllib3@threads", 10), outcome(0.2, connections=5), None, ServerCounters(), InFlight(client=10)
    )
    assert (found.upstream, found.waiting, found.chain) == (None, None, None)
    assert found.outside == pytest.approx(0.98)
    assert found.connections == 1


def test_what_no_server_holds_waits_elsewhere():
    """Of the requests that may be in flight: clocks of gather run before."""
    servers = ServerCounters(upstream=ServerUse(cpu_seconds=0.1))
    found = shares_of(planned("aiohttp@gather"), outcome(), None, servers, InFlight(client=300, upstream=4))
    assert found.waiting == 1 - 4 / 32
    behind_proxy = ServerCounters(upstream=ServerUse(cpu_seconds=0.1), proxy=ServerUse(cpu_seconds=0.1))
    held = InFlight(client=32, proxy=24, upstream=4)
    assert shares_of(planned("aiohttp@workers"), outcome(), None, behind_proxy, held).waiting == 0.25


def test_a_chain_is_what_no_request_can_avoid():
    """Delays and CPU time of all parts, over wall time and requests in flight."""
    servers = ServerCounters(upstream=ServerUse(cpu_seconds=0.3), proxy=ServerUse(cpu_seconds=0.1))
    found = shares_of(planned("urllib3@threads", 2), outcome(0.5), 0.7, servers, InFlight(client=2, upstream=1))
    assert found.chain == pytest.approx((0.5 + 0.3 + 0.1 + 0.7) / 2)
