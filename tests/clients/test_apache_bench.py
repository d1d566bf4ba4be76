"""ApacheBench as a driver: which limits and figures it shares with the clients, and
which workloads it refuses.
"""

from __future__ import annotations

import shutil

import pytest

from clientlab import strategies
from clientlab.clients.apache_bench import percentiles, spread
from clientlab.conformance.server import Last, counting_server, ok
from clientlab.errors import LabError
from clientlab.observing.measurement import TrialEvents
from clientlab.workload.values import Delay, Statuses
from clientlab.workload.workload import make_workload
from clients.measured import measure
from optional_programs import REQUIRED

needs_ab = pytest.mark.skipif(
    shutil.which("ab") is None and not REQUIRED,
    reason="ab is not installed: apt-get install apache2-utils",
)


def answer(seen, status="200 OK"):
    """Answer as servers do to HTTP/1.0: keep the connection only if the request asks
    for it.
    """
    if seen.headers.get("connection", "").lower() != "keep-alive":
        return Last(ok(status=status))
    return ok(status=status).replace(b"\r\n", b"\r\nConnection: keep-alive\r\n", 1)


@pytest.mark.real
@needs_ab
def test_n_requests_are_completed_and_recorded():
    """Each has its method, headers and body.

    With kept connections, ab may begin some requests too many at the end.
    """
    requests = 50
    in_flight = 8
    workload = make_workload(
        path="/item?x=1",
        method="POST",
        payload_size=300,
        headers={"X-Mine": "yes"},
        requests=requests,
        concurrency=in_flight,
        warmup=2,
    )
    with counting_server(answer) as server:
        measured = measure("ab", workload, server.url, events=TrialEvents(server.reset))
        assert requests <= len(server.seen) < requests + in_flight
        for seen in server.seen:
            assert seen.method == "POST"
            assert seen.target == "/item?x=1"
            assert len(seen.body) == 312
            assert seen.headers["x-mine"] == "yes"
            assert seen.headers["accept-encoding"] == "identity"
            assert seen.headers["content-type"] == "application/json"
    assert measured.numbers == list(range(requests))
    assert measured.samples.errors == {}
    received = measured.samples.records["bytes"].tolist()
    assert received == [len(b'{"ok": true}')] * requests


@pytest.mark.real
@needs_ab
@pytest.mark.parametrize(
    ("strategy", "connections", "kept_alive"),
    [("ab", 6, 120), ("ab?keepalive=false", 120, 0)],
)
def test_concurrency_and_connections_agree_with_the_server(
    strategy, connections, kept_alive
):
    with counting_server(answer, hold=0.01) as server:
        workload = make_workload(requests=120, concurrency=6, warmup=1)
        events = TrialEvents(server.reset)
        measured = measure(strategy, workload, server.url, events=events)
        assert server.most_in_flight == 6
        assert server.connections == connections
        assert measured.outcome.connections_begun == connections
    assert measured.tool.kept_alive == kept_alive
    assert 0.2 <= measured.tool.wall_seconds == measured.outcome.wall_seconds
    assert 0 < measured.tool.cpu_seconds == measured.outcome.cpu_seconds
    times = sorted(measured.samples.records["seconds"].tolist())
    assert 0.01 <= times[0] < times[-1]


@pytest.mark.real
@needs_ab
def test_statuses_are_errors_and_spread_evenly():
    """`ab` counts the responses other than 2xx, but does not say which they were."""

    def some(seen):
        if len(server.seen) % 4 == 0:
            return answer(seen, "503 Service Unavailable")
        return answer(seen)

    workload = make_workload(requests=40, concurrency=1, warmup=0)
    with counting_server(some) as server:
        samples = measure("ab", workload, server.url).samples
    assert samples.errors == {"other:not-2xx": 10}
    failed = samples.records["error"] > 0
    assert samples.numbers[failed].tolist() == list(range(0, 40, 4))


def test_times_are_interpolated_between_percentiles():
    """They are seconds.

    None is above the last percentile, although `ab` may read beyond its table.
    """
    table = "Percentage served,Time in ms\n"
    for percent in range(101):
        milliseconds = percent / 10 + 1
        table += f"{percent},{milliseconds:.3f}\n"
    hundredths = percentiles(table)
    assert hundredths[0] == 0.001
    assert hundredths[50] == 0.006
    assert hundredths[100] == 0.011
    assert spread(hundredths, 101) == pytest.approx(hundredths)
    assert spread(hundredths, 1) == [0.001]
    assert spread(hundredths, 3) == pytest.approx([0.001, 0.006, 0.011])
    beyond = "Percentage served,Time in ms\n0,1.0\n1,99999.0\n2,1.5\n"
    assert percentiles(beyond) == [0.001, 0.0015, 0.0015]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"duration": 1.0}, "duration"),
        ({"path": "/{k}"}, "path"),
        ({"delay": Delay.parse("uniform:1ms,2ms")}, "delay"),
        ({"read": "chunks"}, "read"),
        ({"upload": "stream", "upload_size": 5, "method": "POST"}, "upload"),
        ({"connections": "warm"}, "connections"),
        ({"first_byte": True}, "first_byte"),
        ({"expect": Statuses.parse("404")}, "expect"),
        ({"body": "x", "method": "PATCH"}, "method"),
    ],
)
def test_a_workload_that_it_cannot_do_is_refused(changes, field):
    with pytest.raises(LabError, match=f"^{field}: "):
        strategies.check_capabilities(strategies.find("ab"), make_workload(**changes))


def test_without_the_program_it_is_unavailable(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apache2-utils" in strategies.unavailable(strategies.find("ab"))
    with pytest.raises(LabError, match="'ab'"):
        strategies.check_settings(strategies.find("ab"))
