"""Requests that are sent again: each attempt meets its own fault, and all workers count together."""

from __future__ import annotations

import itertools
import multiprocessing
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from mockupstream.ledger import Book
from running import FRAMEWORKS, gunicorn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from running import Server

_IDENTITIES = itertools.count(0x1234_0000_0000)


@pytest.fixture(scope="module")
def busy_upstreams() -> Iterator[dict[str, Server]]:
    """Both upstreams with three workers: each connection of a test may reach another one."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(gunicorn(name, workers="3")) for name in FRAMEWORKS}


@pytest.fixture(params=FRAMEWORKS)
def server(request: pytest.FixtureRequest, busy_upstreams: dict[str, Server]) -> Server:
    """Each of them in turn."""
    return busy_upstreams[request.param]


def test_each_attempt_meets_its_own_fault(server: Server) -> None:
    """On new connections, by whichever worker; attempts beyond the written ones have none."""
    for _ in range(5):
        query = f"request={next(_IDENTITIES):016x}&fault=status=503@2s,none,status=429"
        met = [server.ask(f"/?{query}").status for _ in range(5)]
        assert met == [503, 200, 429, 200, 200]


def test_repeats_are_counted_and_those_of_post_are_duplicates(server: Server) -> None:
    """A first attempt is no repeat; a request without an identity is none either."""
    before = server.metrics()
    for method, times in (("GET", 3), ("POST", 4), ("PUT", 1)):
        identity = next(_IDENTITIES)
        for _ in range(times):
            assert server.ask(f"/?request={identity:016x}", method, b"x" if method != "GET" else None).status == 200
    for _ in range(2):
        server.ask("/", "POST", b"x")
    after = server.metrics()
    names = ("mockupstream_requests_repeated_total", "mockupstream_requests_duplicated_total")
    assert [after[name] - before[name] for name in names] == [5, 3]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("fault=reset,none", "need request, the identity"),
        ("fault=none", "need request, the identity"),
        ("request=12", "16 hexadecimal digits"),
        ("request=00000000000000FF", "16 hexadecimal digits"),
        ("request=00000000000000ff&fault=none,burn", "'burn' is not a fault"),
    ],
)
def test_attempts_that_nobody_could_count_are_refused(server: Server, query: str, says: str) -> None:
    """In one sentence, with status 400."""
    found = server.ask(f"/?{query}")
    assert found.status == 400
    assert says in found.body.decode()


def _arrive(book: Book, worker: int, identities: range) -> None:
    ledger = book.open(worker)
    for identity in identities:
        ledger.arrived(identity, "GET")


def test_attempts_are_counted_over_all_processes() -> None:
    """What one worker has counted, another one goes on to count; requests that follow each other share no slot."""
    book = Book()
    requests = range(5 << 32, (5 << 32) + 100_000)
    child = multiprocessing.get_context("fork").Process(target=_arrive, args=(book, 1, requests))
    child.start()
    child.join()
    ledger = book.open(0)
    assert {ledger.arrived(identity, "GET") for identity in requests} == {2}
