"""The limits of a trial: whole requests, and the memory of its processes."""

from __future__ import annotations

import re
import time

import pytest

from clientlab.conformance.server import Endless, counting_server
from clientlab.measuring.limits import LimitReached, free_memory, private_memory
from clientlab.workload.workload import Workload
from clients.measured import measure, trial_processes

MIB = 1 << 20
DRIP = Endless(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x", 0.1)
POUR = Endless(b"HTTP/1.1 200 OK\r\n\r\n", bytes(MIB))
SLACK = 2.0


def workload(**fields) -> Workload:
    """One request, without a warm-up."""
    return Workload(**{"requests": 1, "concurrency": 1, "warmup": 0, "timeout": 1.0, "request_limit": 1.5} | fields)


@pytest.mark.parametrize(
    ("strategy", "fields"),
    [("http.client", {}), ("http.client", {"requests": None, "duration": 0.2}), ("http.client", {"warmup": 1}),
     ("requests-session@process-chunks", {}), ("http.client", {"connections": "warm"})],
    ids=["requests", "duration", "warm-up", "processes", "warm connections"],
)  # fmt: skip
def test_a_response_byte_by_byte_ends_the_trial_at_the_limit_of_a_request(strategy, fields):
    """Though each wait for bytes is shorter than the timeout. The reason names the limit and its option."""
    with counting_server(lambda _: DRIP) as server:
        with pytest.raises(LimitReached, match=re.escape("no request ended for 1.5 s, the limit of a whole request")):
            measure(strategy, workload(**fields), server.url)
        until = time.monotonic() + SLACK
        while not server.let_go and time.monotonic() < until:
            time.sleep(0.01)  # the server notices it a moment later
        # The client's time begins before the server has read the request, on a busy machine by a while.
        assert 1.2 < next(iter(server.let_go.values())) < 1.5 + SLACK
    assert trial_processes() == []


def test_a_body_without_an_end_ends_the_trial_at_its_memory_limit():
    """Long before the limit of time, and before the machine's memory is used up."""
    with (
        counting_server(lambda _: POUR) as server,
        pytest.raises(LimitReached, match=r"memory: its processes held [\d.]+ MiB, more than the limit of 200 MiB"),
    ):
        measure("http.client", workload(request_limit=30.0, memory_limit=200 * MIB), server.url)
    assert trial_processes() == []


def test_a_slow_trial_whose_requests_end_in_time_reaches_no_limit():
    """The limit is one of a request, not of the trial."""
    with counting_server(hold=0.4) as server:
        measured = measure("http.client", workload(requests=6), server.url)
    assert measured.samples.errors == {}
    assert measured.outcome.wall_seconds > 1.5


def test_free_memory_is_known_before_a_trial():
    """It is what the default limit is a share of; a process that has ended holds nothing."""
    assert free_memory() > 0
    assert private_memory(1 << 30) == 0


@pytest.mark.parametrize("fields", [{"requests": 500}, {"requests": None, "duration": 60.0}], ids=["full", "projected"])
def test_a_trial_ends_where_its_log_would_hold_too_many_requests(monkeypatch, fields):
    """When the log is full, and of a trial with a duration as soon as its rate shows that it will be."""
    most = 50 if fields["requests"] else 5000
    monkeypatch.setattr("clientlab.measuring.limits.MOST_RECORDS", most)
    monkeypatch.setattr("clientlab.measuring.limits._RATE_SECONDS", 0.4)
    with (
        counting_server() as server,
        pytest.raises(LimitReached, match=rf"[\d,]+ requests after \d+ s: a trial records no more than {most:,}"),
    ):
        measure("http.client", workload(**fields, timeout=5.0, request_limit=5.0), server.url)
