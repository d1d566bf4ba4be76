"""The limits of a trial: whole requests, and the memory of its processes."""

from __future__ import annotations

import time
from itertools import chain, repeat

import pytest

from clientlab.conformance.server import counting_server
from clientlab.measuring.limits import LimitReached
from clientlab.workload.workload import Workload
from clients.measured import measure, trial_processes

pytestmark = pytest.mark.real

MIB = 1 << 20


def drip():
    """A response byte by byte."""
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    while True:
        time.sleep(0.1)  # the server's work, not a wait for a condition
        yield b"x"


def workload(**fields) -> Workload:
    """One request, without a warm-up."""
    return Workload(**{"requests": 1, "concurrency": 1, "warmup": 0, "timeout": 1.0, "request_limit": 1.5} | fields)


def test_a_response_byte_by_byte_ends_the_trial_at_the_limit_of_a_request():
    """Though each wait for bytes is shorter than the timeout. The reason states the limit."""
    with counting_server(lambda _: drip()) as server, pytest.raises(LimitReached, match=r"1\.5 s"):
        measure("http.client@process-chunks", workload(), server.url)
    assert trial_processes() == []


def test_a_body_without_an_end_ends_the_trial_at_its_memory_limit():
    """Long before the limit of time, and before the machine's memory is used up."""
    with (
        counting_server(lambda _: chain([b"HTTP/1.1 200 OK\r\n\r\n"], repeat(bytes(MIB)))) as server,
        pytest.raises(LimitReached, match="200 MiB"),
    ):
        measure("http.client", workload(request_limit=30.0, memory_limit=200 * MIB), server.url)
    assert trial_processes() == []


def test_a_slow_trial_whose_requests_end_in_time_reaches_no_limit():
    """The limit is one of a request, not of the trial."""
    with counting_server(hold=0.2) as server:
        measured = measure("http.client", workload(requests=6, request_limit=1.0), server.url)
    assert measured.samples.errors == {}
    assert measured.outcome.wall_seconds > 1.0
