"""The limit of a whole call, which a server exceeds that sends a byte now and then."""

from __future__ import annotations

import contextlib
import socket
import sys

import pytest

from clientlab.conformance.server import Paced, Reset, Stall, ok
from clientlab.errors import LabError
from clientlab.strategies import CLIENTS, check_capabilities, find
from clientlab.workload.workload import make_workload
from clients.one_call import call_once

LIMIT = 0.2
LATE = 0.25
"""Seconds after the limit; the server's next byte comes after 0.1 s."""

PLAIN = [spec for spec in CLIENTS.values() if spec.http == "1.1" and not spec.formats]
KEPT = [spec.name for spec in PLAIN if spec.call_timeout_by != "nobody"]
BY_NOBODY = [
    "requests-session",
    "http.client",
    *(
        pytest.param(name, marks=pytest.mark.release)
        for name in ("urllib3", "httpx-client", "niquests")
    ),
]
BY_LIBRARY = [name for name in KEPT if CLIENTS[name].call_timeout_by == "library"]


def each_dripping():
    """Yield strategies, each with a way to read bodies.

    Executors limit all ways alike, so they read chunks before a release only.
    """
    for name in (*KEPT, "httpx-async@trio"):
        marks = () if name in BY_LIBRARY else pytest.mark.release
        yield name, "whole"
        yield pytest.param(name, "chunks", marks=marks)


def drip(_seen=None, pieces=10):
    """Return an answer that sends a byte of its body each 100 ms."""
    head = ok(b"x" * pieces)[:-pieces]
    return Paced([lambda: head, *[lambda: b"x"] * pieces], pause=0.1, closes=True)


def test_ab_has_no_such_limit():
    with pytest.raises(LabError, match=r"^call_timeout: .*limits no whole request"):
        check_capabilities(find("ab"), make_workload(call_timeout=1.0))


@pytest.mark.real
@pytest.mark.parametrize(("name", "reading"), list(each_dripping()))
def test_a_dripping_call_ends_at_its_limit(name, reading):
    found = call_once(name, drip, call_timeout=LIMIT, read=reading)
    assert found.kind == "timeout-call"
    assert LIMIT - 0.01 <= found.seconds < LIMIT + LATE


@pytest.mark.real
@pytest.mark.parametrize("name", BY_NOBODY)
def test_a_thread_cannot_be_cancelled(name):
    assert CLIENTS[name].call_timeout_by == "nobody"
    found = call_once(name, lambda _: drip(pieces=4), call_timeout=LIMIT)
    assert (found.kind, found.seconds > LIMIT + 0.1) == ("", True)


@pytest.mark.real
@pytest.mark.parametrize("name", KEPT)
def test_other_failures_keep_their_kind(name):
    """Also silence, which ends at the limit of each wait, before that of the call."""
    limits = {"call_timeout": 5.0, "timeout": 0.1}
    assert call_once(name, lambda _: Stall(), **limits).kind == "timeout-read"
    assert call_once(name, lambda _: Reset(), **limits).kind == "reset"


@pytest.mark.real
@pytest.mark.parametrize(
    "name",
    [
        "aiohttp?retry=own&backoff=1ms",
        "aiohttp?retry=tenacity",
        "httpx2-async@trio?retry=stamina&jitter=false",
        "niquests-async?retry=own",
        "pycurl?retry=tenacity",
    ],
)
def test_all_attempts_of_a_call_share_its_limit(name):
    found = call_once(name, drip, call_timeout=LIMIT)
    assert (found.kind, found.attempts) == ("timeout-call", 1)
    assert found.seconds < LIMIT + LATE


@pytest.mark.real
@pytest.mark.parametrize("way", ["tenacity", "stamina&jitter=false"])
def test_no_attempt_of_a_thread_begins_after_the_limit(way):
    busy = ok(status="503 Service Unavailable")
    name = f"requests-session?retry={way}&attempts=9&backoff=100ms"
    found = call_once(name, lambda _: busy, call_timeout=LIMIT)
    assert (found.kind, found.attempts < 5) == ("status-5xx", True)


@pytest.fixture
def unanswered():
    """The URL of a port whose queue is full, so connecting waits."""
    with contextlib.ExitStack() as stack:
        address = ("127.0.0.1", 0)
        listener = stack.enter_context(socket.create_server(address, backlog=0))
        for _ in range(4):  # a queue of length 0 holds one or two
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="others refuse, or connect")
@pytest.mark.parametrize(
    "name", ["aiohttp", "httpx-async", "httpx-async@trio", "niquests-async"]
)
def test_a_call_that_ends_while_it_connects_has_opened_nothing(name, unanswered):
    found = call_once(name, drip, url=unanswered, call_timeout=LIMIT)
    assert (found.kind, found.begun, found.opened) == ("timeout-call", 1, 0)
    later = call_once(name, drip, call_timeout=LIMIT)
    assert (later.kind, later.begun, later.opened) == ("timeout-call", 1, 1)
