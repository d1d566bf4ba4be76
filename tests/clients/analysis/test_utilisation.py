"""The shares behind a verdict, and the rate of a closed load while it was whole."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from clientlab.analysis import utilisation
from clientlab.analysis.finish import Begun, finish_trial
from clientlab.analysis.utilisation import (
    LoadTimes,
    Utilisation,
    count_in_flight,
    find_shares,
)
from clientlab.observing.measurement import Measurement
from clientlab.observing.samples import Samples
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.trial import Disturbance, InFlight, Outcome, Placement, Shares
from clientlab.workload.values import Link
from clientlab.workload.workload import make_workload
from clients.documents import a_planned_trial
from clients.sampled import records_of, samples_of

CORES = 4.0
IDLE = ServerUse(cpu_seconds=0.1)


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr(utilisation, "cpu_usable", lambda: CORES)


def outcome(
    cpu: float = 0.5,
    wall: float = 1.0,
    connections: int = 32,
    processes: int = 1,
    **more,
) -> Outcome:
    """A trial's outcome with what these shares need, on a machine whose cores were busy
    for 90 %.
    """
    made = Outcome(
        began=0.0,
        wall_seconds=wall,
        cpu_seconds=cpu,
        peak_rss_bytes=0,
        processes=processes,
        callers=processes,
        connections_begun=connections,
        connections_opened=connections,
        connections_in_all=connections,
        disturbance=Disturbance(seconds=wall, busy_share=0.9),
    )
    return made.updated(**more)


def planned(strategy: str, concurrency: int = 32, **changes):
    return a_planned_trial(strategy).updated(**{"concurrency": concurrency, **changes})


def shares(
    strategy: str = "urllib3@threads",
    many: int = 32,
    held: InFlight | None = None,
    *,
    delays: float | None = None,
    placement: Placement | None = None,
    behind: Link | None = None,
    upstream: ServerUse | None = None,
    proxy: ServerUse | None = None,
    link: ServerUse | None = None,
    **of_outcome,
) -> Shares:
    """The shares of a trial."""
    trial = planned(strategy, many, link=behind)
    servers = ServerCounters(upstream=upstream, proxy=proxy, link=link)
    held = held or InFlight(client=many)
    measured = outcome(**of_outcome)
    wall = measured.wall_seconds
    times = LoadTimes(wall, wall, wall)
    trial_use = Utilisation(trial, measured, servers, held, times, delays, placement)
    return trial_use.compute_shares()


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
def test_a_client_can_use_a_core_for_each_process_or_thread_without_the_gil(
    strategy, measured, cores
):
    """No more than there are; one that used more can use more.

    The GIL is that of the trial's process.
    """
    times = LoadTimes(1.0, 1.0, 1.0)
    used = Utilisation(
        planned(strategy),
        outcome(**measured),
        ServerCounters(),
        InFlight(client=32),
        times,
    )
    assert used.count_client_cores(CORES) == cores


@pytest.mark.parametrize(
    ("strategy", "fullest", "share"),
    [
        ("requests-session@processes", 0.95, 0.95),
        ("requests-session@processes", 0.2, 1.2 / 4),
        ("pycurl@processes", 0.95, 1.2 / 4),
    ],
)
def test_the_fullest_process_of_the_client_counts(strategy, fullest, share):
    """One full process of eight limits what waits for it.

    A native library may use several cores in one process.
    """
    found = shares(strategy, cpu=1.2, processes=8, fullest_cpu_seconds=fullest)
    assert found.client == pytest.approx(share)


@pytest.mark.parametrize(
    ("many", "more", "share"),
    [
        (4, {"worker_cpu_seconds": [0.01, 0.97, 0.01, 0.01]}, 0.97),
        (2, {}, 0.5),
        (1, {"cores": 1}, 1.0),
    ],
    ids=["one full worker", "two workers", "one core"],
)
def test_a_server_is_busy_by_its_fullest_worker_its_processes_and_its_cores(
    many, more, share
):
    """One full worker of four is the bottleneck, although their sum is 25 % of the
    cores.
    """
    use = ServerUse(cpu_seconds=1.0, processes=many, cpu_step_seconds=0, **more)
    assert shares(upstream=use).upstream == pytest.approx(share)


def test_requests_in_flight_are_the_sum_of_their_times_over_the_wall_time():
    holding = ServerUse(cpu_seconds=0.1, held_seconds=8.0)
    upstream = ServerCounters(upstream=holding)
    proxy = ServerCounters(upstream=IDLE, proxy=holding)
    assert count_in_flight(64.0, 2.0, upstream) == InFlight(client=32, upstream=4)
    assert count_in_flight(64.0, 2.0, proxy) == InFlight(client=32, proxy=4)


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
    upstream = ServerUse(cpu_seconds=0.45, cores=1, cpu_step_seconds=0)
    proxy = upstream.updated(cpu_seconds=0.5)
    found = shares(
        "pycurl@threads", cpu=1.5, upstream=upstream, proxy=proxy, placement=placement
    )
    assert (found.client, found.upstream, found.proxy) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("wall", "step", "upstream", "machine"),
    [(0.1, 0.01, None, None), (0.1, 0.0, 0.5, None), (1.0, 0.0, 0.05, 0.9)],
)
def test_steps_of_a_clock_hide_a_short_trial(wall, step, upstream, machine):
    use = ServerUse(cpu_seconds=0.05, processes=1, cpu_step_seconds=step)
    found = shares(many=1, wall=wall, upstream=use)
    assert found.upstream == upstream
    assert found.machine == machine


@pytest.mark.parametrize(
    ("many", "held", "share", "more"),
    [
        (32, 3.9, 3.9 / 4, {"slots": 4}),
        (32, 31, None, {"slots": 32}),
        # 45 of 64 connections on one of two workers with 25 threads, where 20 wait, and
        # 19 on the other
        (
            64,
            38.5,
            1.0,
            {"slots": 50, "processes": 2, "worker_held_seconds": [25.0, 13.5]},
        ),
    ],
)
def test_threads_of_the_upstream_are_full_by_the_requests_that_it_holds(
    many, held, share, more
):
    upstream = ServerUse(cpu_seconds=0.1, **more)
    in_flight = InFlight(client=many, upstream=held)
    found = shares(many=many, held=in_flight, upstream=upstream)
    assert found.upstream_threads == pytest.approx(share)


@pytest.mark.parametrize(
    ("strategy", "many", "opened", "behind", "full", "streams"),
    [
        ("aiohttp@gather", 32, 4, 3.8, 0.95, None),
        ("httpx-async-h2@workers", 150, 1, 99.0, None, 0.99),
        ("pycurl-h2@threads", 32, 32, 30.0, None, None),
    ],
)
def test_connections_and_streams_are_full_by_the_requests_on_them(
    strategy, many, opened, behind, full, streams
):
    """If there are fewer of them.

    Httpx opens 100 streams on a connection; a handle of libcurl has one request.
    """
    held = InFlight(client=300, proxy=behind, upstream=behind)
    found = shares(strategy, many, held, connections=opened, upstream=IDLE, proxy=IDLE)
    assert found.connections == full
    assert found.streams == pytest.approx(streams)


def test_without_counters_of_the_server_the_rest_of_each_request_is_outside():
    found = shares("urllib3@threads", 10, cpu=0.2, connections=5)
    assert found.upstream is None
    assert found.waiting is None
    assert found.chain is None
    assert found.connections == 1
    assert found.outside == pytest.approx(0.98)


def test_what_no_server_holds_waits_elsewhere_and_a_chain_is_unavoidable():
    held = InFlight(client=300, upstream=4)  # clocks of gather run before
    found = shares("aiohttp@gather", held=held, upstream=IDLE)
    assert found.waiting == 1 - 4 / 32
    held = InFlight(client=32, proxy=24, upstream=4)
    found = shares("aiohttp@workers", held=held, upstream=IDLE, proxy=IDLE)
    assert found.waiting == 0.25
    upstream = ServerUse(cpu_seconds=0.3)
    found = shares(many=2, cpu=0.5, delays=0.7, upstream=upstream, proxy=IDLE)
    assert found.chain == pytest.approx((0.5 + 0.3 + 0.1 + 0.7) / 2)


@pytest.mark.parametrize(
    ("many", "uses", "share"),
    [
        (1, {"upstream": IDLE}, 0.5),
        (1, {"upstream": IDLE, "delays": 1.0}, 0.0),
        (1, {}, None),
        (8, {}, 0.85),
    ],
)
def test_unaccounted_is_the_rest_of_the_requests_time(many, uses, share):
    """0.4 s of CPU time in 1 s are 5 % of the time of eight requests.

    A single request waits for nobody.
    """
    held = InFlight(client=many, upstream=0.1 * many)
    found = shares(many=many, held=held, cpu=0.4, **uses)
    assert found.unaccounted == pytest.approx(share)


COUNTED = ServerUse(cpu_seconds=0.1, up_bytes=28_500_000, down_bytes=1)
"""Of a link that counts its bytes."""


def waits(
    link: Link,
    route: str = "direct",
    opened: int | None = 10,
    received: int = 21_000,
    use=None,
):
    """The waits of 1,000 requests in a link in 10 s, whether they are exact, and the
    share of its bandwidth.
    """
    requests = SimpleNamespace(
        sent=SimpleNamespace(records=range(1000)),
        received_bytes=received,
        delays=None,
        in_flight_seconds=10,
        share_in_turn=None,
    )
    found, held = find_shares(
        planned("urllib3@threads", 1, link=link, route=route),
        make_workload(),
        outcome(wall=10.0, connections_opened=opened),
        requests,
        LoadTimes(10.0, 10.0, 10.0),
        ServerCounters(link=use),
    )
    return found.latency * 10.0, held.link is not None, found.bandwidth


@pytest.mark.parametrize(
    ("opened", "route", "trips"), [(1000, "proxy-tls", 3000), (None, "direct", 1000)]
)
def test_a_request_takes_a_round_trip_and_so_does_each_handshake(opened, route, trips):
    """That of TCP, and that of TLS 1.3.

    Without a count of connections, the sum is only a lower bound.
    """
    seconds, is_exact, bandwidth = waits(Link(0.05), route, opened)
    assert seconds == pytest.approx(0.05 * trips)
    assert is_exact == (opened is not None)
    assert bandwidth is None


@pytest.mark.parametrize(
    ("received", "use", "share", "is_exact"),
    [
        (15_000_000, None, 0.5, False),
        (210_000, None, 0.007, True),
        (210_000, COUNTED, 0.95, True),
    ],
    ids=["bodies", "small bodies", "counted"],
)
def test_bytes_have_a_share_of_a_limited_bandwidth(received, use, share, is_exact):
    """Here 24 Mbit/s.

    A link that counts its bytes includes heads; bodies beyond the first window take
    more trips.
    """
    _, limited_is_exact, bandwidth = waits(Link(0.05, 24e6), received=received, use=use)
    assert limited_is_exact is False
    assert bandwidth == pytest.approx(share)
    assert waits(Link(0.05), received=received, use=use)[1] == is_exact


@pytest.mark.parametrize(("in_link", "waiting"), [(5.0, 0.1), (None, None)])
def test_what_is_on_its_way_does_not_wait_in_the_client(in_link, waiting):
    """Of 10 in flight, 5 are in the link and 4 in the upstream.

    If the link's part is unknown, so is the rest.
    """
    uses = {
        "upstream": ServerUse(cpu_seconds=0.1, held_seconds=4.0),
        "link": ServerUse(cpu_seconds=0.3, processes=1),
    }
    held = count_in_flight(10.0, 1.0, ServerCounters(**uses), in_link)
    found = shares(many=10, held=held, delays=5.0, behind=Link(0.05), **uses)
    assert found.waiting == pytest.approx(waiting)
    assert found.link == pytest.approx(0.3)


C = 64


def closed_loop(draw, duration: float) -> Samples:
    """The samples of a closed load without any overhead.

    `draw`: delays of so many requests, in seconds.
    """
    starts = []
    lengths = []
    now = np.zeros(C)
    while (going := now < duration).any():
        took = draw(C)
        starts.append(now[going])
        lengths.append(took[going])
        now = np.where(going, now + took, now)
    records = records_of(np.concatenate(starts), np.concatenate(lengths))
    return samples_of(np.sort(records, order="start"))


def judged(
    found: Samples, servers: ServerCounters | None = None, outcome=None, **workload
):
    """The finished trial of these samples, whose clock began at 0.

    `outcome`: fields of its outcome.
    """
    ends = found.records["start"] + found.records["seconds"]
    measured = Outcome(
        began=0.0,
        wall_seconds=float(ends.max()),
        extended=None if "requests" in workload else False,
        cpu_seconds=0.0,
        processes=1,
        peak_rss_bytes=None,
        connections_begun=C,
        connections_opened=C,
        connections_in_all=C,
    )
    if outcome:
        measured = measured.updated(**outcome)
    workload = make_workload(concurrency=C, **workload)
    begun = Begun(planned("aiohttp", C), workload, "2024-05-06T07:08:09+00:00")
    return finish_trial(
        begun, Measurement(measured, found), servers or ServerCounters()
    )


DRAW = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("draw", "mean", "duration"),
    [
        (lambda many: DRAW.exponential(0.06, many), 0.06, 60.0),
        (lambda many: np.full(many, 3.0), 3.0, 16.0),
    ],
    ids=["exponential", "five and a third"],
)
def test_the_rate_with_a_duration_is_that_of_the_whole_load(draw, mean, duration):
    """The rate is c divided by the mean delay, however the last responses
    are spread.
    """
    trial = judged(closed_loop(draw, duration), duration=duration)
    assert trial.figures.requests_per_second == pytest.approx(C / mean, rel=0.02)
    tail = trial.wall_seconds - duration
    assert trial.figures.tail_seconds == pytest.approx(tail)


def test_a_straggler_changes_neither_rate_nor_shares_nor_the_verdict():
    """One request of 30 s keeps a trial of 10 s waiting; the client stays full."""
    found = closed_loop(lambda many: np.full(many, 0.032), 10.0)
    held = float(found.records["seconds"].sum()) * 0.9

    def judged_with(held_seconds: float):
        use = ServerUse(cpu_seconds=1.0, held_seconds=held_seconds)
        servers = ServerCounters(upstream=use)
        return judged(found, servers, {"cpu_seconds": 9.0}, duration=10.0)

    before = judged_with(held)
    found.records["seconds"][-1] = 30.0
    after = judged_with(held + 30.0)
    assert before.wall_seconds < 11
    assert after.wall_seconds > 30
    rate = before.figures.requests_per_second
    assert after.figures.requests_per_second == pytest.approx(rate, rel=0.02)
    known = before.verdict.shares.known
    assert after.verdict.shares.known == pytest.approx(known, abs=0.01)
    assert after.verdict.in_flight.client == pytest.approx(C, rel=0.02)
    assert before.bound == "client-bound"
    assert after.bound == "client-bound"


def test_the_start_of_a_pool_is_a_share_of_the_time_in_which_the_load_was_whole():
    found = closed_loop(lambda many: np.full(many, 2.4), 5.0)
    found.records["seconds"][-C:] = 7.5
    started = {"processes": C, "startup_seconds": 4.0}
    trial = judged(found, outcome=started, duration=5.0)
    assert trial.verdict.shares.startup == pytest.approx(0.8)


def test_a_trial_of_a_number_of_requests_has_the_rate_of_its_wall_time():
    found = closed_loop(lambda many: np.full(many, 0.06), 5.0)
    requests = len(found.records)
    trial = judged(found, requests=requests)
    assert trial.figures.tail_seconds is None
    assert trial.figures.requests_per_second == requests / trial.wall_seconds


def test_a_trial_without_an_end_before_its_deadline_has_the_rate_of_its_wall_time():
    found = closed_loop(lambda many: np.full(many, 8.0), 5.0)
    trial = judged(found, duration=5.0)
    assert trial.figures.tail_seconds is not None
    assert trial.figures.requests_per_second == C / trial.wall_seconds
