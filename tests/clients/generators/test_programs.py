"""Load generators: the real programs against a server that counts."""

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
from clients.test_apache_bench import needs_ab
from optional_programs import REQUIRED

CONNECTIONS = 3
BODY = b"7 bytes"


def a_load(url, method="GET", body=None, **changes):
    headers = {"X-Mine": "a b", "Content-Type": "text/x"}
    return GeneratorLoad(Request(method, url, headers, body), CONNECTIONS, 1, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda one: one.name)
def test_a_generator_sends_the_request_for_a_second_and_counts_as_the_server_does(generator, method, tmp_path):
    """Each fourth response is an error. Of the requests in flight at the end, some may be counted by one side only."""
    if shutil.which(generator.name) is None and not (generator.name == "ab" and REQUIRED):
        pytest.skip(f"{generator.name} is not installed: {generator.install}")
    load = a_load("http://127.0.0.1", method, BODY if method == "POST" else None)
    if reason := generator.refuses(load):
        pytest.skip(f"{generator.name} {reason}")

    numbers = itertools.count(1)

    def some(_):
        status = "200 OK" if next(numbers) % 4 else "503 Service Unavailable"
        return ok(status=status).replace(b"\r\n", b"\r\nConnection: keep-alive\r\n", 1)

    with counting_server(some, hold=0.002) as server:
        load = a_load(f"{server.url}/item?x=1", method, load.request.body)
        driven = programs.drive(generator, load, tmp_path)
        seen = list(server.seen)
    report = driven.report
    assert abs(report.succeeded + report.failed - len(seen)) <= CONNECTIONS
    assert abs(report.failed - len(seen) // 4) <= CONNECTIONS
    assert report.succeeded > 20
    assert 0.5 <= report.seconds < 5
    assert driven.cpu_seconds > 0
    assert bool(generator.version) == bool(programs.version_of(generator))
    assert {(one.method, one.target, one.body) for one in seen} == {(method, "/item?x=1", load.request.body or b"")}
    assert {one.headers["x-mine"] for one in seen} == {"a b"}
    if method == "POST":
        assert {(one.headers["content-type"], one.headers["content-length"]) for one in seen} == {("text/x", "7")}


@needs_ab
def test_a_generator_that_can_not_send_says_why(tmp_path):
    """With its own last line: no figures are made up."""
    with pytest.raises(GeneratorFailed, match=r"ab ended with code \d+: .+"):
        programs.drive(Ab(), a_load("http://"), tmp_path)


@pytest.mark.parametrize(
    ("generator", "changes"),
    [
        ("wrk", {"method": "POST", "body": BODY}),
        ("wrk", {"http": "2"}),
        ("h2load", {"method": "PUT", "body": BODY}),
        ("ab", {"method": "PATCH", "body": BODY}),
        ("ab", {"http": "2"}),
        ("hey", {"http": "2"}),
    ],
)
def test_a_generator_refuses_what_it_can_not_send(generator, changes):
    """Another one, or a strategy, sends it."""
    found = next(one for one in GENERATORS if one.name == generator)
    assert found.refuses(a_load("http://127.0.0.1", **changes))
    assert found.refuses(a_load("http://127.0.0.1")) is None
