"""Load generators: ab against a server that counts, and what each of them can send."""

from __future__ import annotations

import itertools
import shutil

import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.generators import programs
from clientlab.generators.commands import Ab
from clientlab.generators.generator_interface import GeneratorLoad
from clientlab.generators.programs import GENERATORS, GeneratorFailed
from clientlab.workload.workload import Request
from optional_programs import REQUIRED

CONNECTIONS = 3
BODY = b"7 bytes"
needs_ab = pytest.mark.skipif(shutil.which("ab") is None and not REQUIRED, reason="apt-get install apache2-utils")


def a_load(url, method="GET", body=None, **changes):
    headers = {"X-Mine": "a b", "Content-Type": "text/x"}
    return GeneratorLoad(Request(method, url, headers, body), CONNECTIONS, 1, **changes)


@needs_ab
@pytest.mark.real
def test_ab_sends_the_request_and_counts_as_the_server_does(tmp_path):
    """Each fourth response is an error. Of the requests in flight at the end, some may be counted by one side only."""
    numbers = itertools.count(1)

    def some(_):
        status = "200 OK" if next(numbers) % 4 else "503 Service Unavailable"
        return ok(status=status).replace(b"\r\n", b"\r\nConnection: keep-alive\r\n", 1)

    with counting_server(some, hold=0.002) as server:
        driven = programs.drive(Ab(), a_load(f"{server.url}/item?x=1", "POST", BODY), tmp_path)
        seen = list(server.seen)
    report = driven.report
    assert abs(report.succeeded + report.failed - len(seen)) <= CONNECTIONS
    assert abs(report.failed - len(seen) // 4) <= CONNECTIONS
    assert report.succeeded > 0
    assert report.seconds > 0
    assert driven.cpu_seconds > 0
    assert {(one.method, one.target, one.body) for one in seen} == {("POST", "/item?x=1", BODY)}
    assert {one.headers["x-mine"] for one in seen} == {"a b"}
    assert {(one.headers["content-type"], one.headers["content-length"]) for one in seen} == {("text/x", "7")}


@needs_ab
@pytest.mark.real
def test_a_generator_that_can_not_send_is_an_error(tmp_path):
    """No figures are made up."""
    with pytest.raises(GeneratorFailed):
        programs.drive(Ab(), a_load("http://"), tmp_path)


def test_a_generator_refuses_what_it_can_not_send():
    """Another one, or a strategy, sends it."""
    by_name = {one.name: one for one in GENERATORS}
    for name, changes in {
        "wrk": {"http": "2"},
        "h2load": {"method": "PUT", "body": BODY},
        "ab": {"method": "PATCH", "body": BODY},
    }.items():
        assert by_name[name].refuses(a_load("http://127.0.0.1", **changes))
        assert by_name[name].refuses(a_load("http://127.0.0.1")) is None
