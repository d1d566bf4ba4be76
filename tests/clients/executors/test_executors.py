"""What single executors promise: libcurl's multi interface, requests-futures and
gevent; and the shared numbers.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pytest

from clientlab.conformance.server import Last, Stall, counting_server, ok
from clientlab.executors.executor_interface import RequestNumbers
from clientlab.workload.workload import make_workload
from clients.measured import measure
from tls_servers import Authority


@pytest.mark.parametrize("abiflags", ["", "t"])
def test_threads_share_the_numbers_with_and_without_a_gil(abiflags, monkeypatch):
    monkeypatch.setattr(sys, "abiflags", abiflags)
    shared = RequestNumbers(20_000, first=3)
    taken = []
    with ThreadPoolExecutor(4) as pool:
        for numbers in pool.map(list, [shared] * 4):
            taken += numbers
    assert sorted(taken) == list(range(3, 20_003))


def test_the_least_number_of_requests_begins_after_the_deadline():
    """The start of a pool may have taken the whole duration.

    Its share of the least number is sent, and no more.
    """
    late = RequestNumbers(None, time.perf_counter() - 1, first=2, step=4, least=3)
    assert list(late) == [2, 6, 10]
    assert late.extended
    assert list(late) == []
    in_time = RequestNumbers(None, time.perf_counter() + 0.2, least=3)
    assert len(list(in_time)) > 3
    assert list(in_time) == []
    assert in_time.extended is False


@pytest.mark.real
@pytest.mark.parametrize("strategy", ["pycurl@multi", "urllib3@gevent"])
def test_certificates_are_verified_and_connections_counted(strategy, tmp_path):
    """These executors drive the client themselves or patch the standard library."""
    ours = Authority(tmp_path / "ours")
    foreign = Authority(tmp_path / "foreign")
    workload = make_workload(path="/{k}", requests=24, concurrency=4, warmup=0)
    with counting_server(hold=0.01, tls=[ours.context("127.0.0.1")]) as server:
        measured = measure(strategy, workload, server.url, ca_file=ours.ca_file)
        targets = [seen.target for seen in server.seen]
        assert len(targets) == 24
        assert set(targets) == {f"/{number}" for number in range(24)}
        assert measured.samples.errors == {}
        assert server.accepted == measured.outcome.connections_begun <= 4
        refused = measure(strategy, workload, server.url, ca_file=foreign.ca_file)
        assert refused.samples.errors == {"tls": 24}
        assert len(server.seen) == 24


@pytest.mark.real
def test_a_fault_affects_no_other_transfer_of_libcurl():
    """Its timer ends a transfer without a response."""
    faults = {"/7": Stall()} | {
        f"/{number}": Last(ok()[:-5]) for number in (5, 15, 25, 35)
    }
    workload = make_workload(
        path="/{k}", requests=40, concurrency=4, warmup=0, timeout=1.0
    )
    with counting_server(lambda seen: faults.get(seen.target, ok())) as server:
        measured = measure("pycurl@multi", workload, server.url)
    assert measured.samples.errors == {"protocol": 4, "timeout-read": 1}
    assert measured.samples.records["status"].tolist().count(200) == 35


@pytest.mark.real
def test_the_time_limit_does_not_include_the_wait_for_a_connection():
    """A transfer begins when a connection is free, even if the workload has more
    requests in flight.
    """
    with counting_server(hold=0.2) as server:
        workload = make_workload(requests=4, concurrency=4, warmup=0, timeout=0.7)
        measured = measure("pycurl@multi?pool=1", workload, server.url)
        assert server.connections == 1
    assert measured.samples.errors == {}


@pytest.mark.real
def test_the_time_of_a_future_excludes_its_wait_in_the_queue():
    """All futures are made at once, and most wait for a worker.

    Only the wall time includes that wait.
    """
    with counting_server(hold=0.03) as server:
        measured = measure(
            "requests-session@futures?max_workers=2",
            make_workload(requests=24, warmup=0),
            server.url,
        )
        assert server.connections == 2
    assert measured.outcome.wall_seconds > 12 * 0.03
    assert (
        median(measured.samples.records["seconds"].tolist())
        < measured.outcome.wall_seconds / 4
    )
    assert measured.samples.records["start"].max() - measured.outcome.began > 10 * 0.03


@pytest.mark.real
def test_gevent_patches_before_the_client_is_imported(monkeypatch):
    """Gevent warns if it patches too late, and the warning would fail the trial."""
    monkeypatch.setenv(
        "PYTHONWARNINGS", "error::Warning:gevent,error::Warning:clientlab"
    )
    with counting_server(hold=0.02) as server:
        measured = measure(
            "urllib3@gevent",
            make_workload(requests=20, concurrency=5, warmup=2),
            server.url,
        )
        assert server.most_in_flight == 5
    assert measured.samples.errors == {}


def test_numbers_report_the_end_of_the_first_wave_and_of_the_duration():
    """With 3 in flight, request 6 begins when 3 have ended."""
    reported = []
    deadline = time.perf_counter() + 0.05
    numbers = RequestNumbers(
        None, deadline, first=100, slots=3, on_steady=reported.append
    )
    given = list(numbers)
    assert given[0] == 100
    assert reported == [106, given[-1] + 1]
    assert list(numbers) == []
    assert len(reported) == 2
