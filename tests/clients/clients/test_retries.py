"""Retries: what settings ask for, and what a server sees of them."""

from __future__ import annotations

import functools
import socket
import sys

import aiohttp_retry
import pytest
import urllib3

from clientlab.clients.retrying import make_urllib3_retry, wrap_aiohttp_session
from clientlab.conformance.fault_checks import FAULTS
from clientlab.conformance.server import Reset, Stall, ok
from clientlab.errors import LabError
from clientlab.strategies import (
    CLIENTS,
    check_capabilities,
    check_settings,
    find,
    retry_of,
    unavailable,
)
from clientlab.workload.workload import make_workload
from clients.one_call import call_once

BUSY = ok(status="503 Service Unavailable")
LIMITED = BUSY.replace(b"\r\n", b"\r\nRetry-After: 1\r\n", 1)


def list_own(way):
    """Return the clients whose libraries retry in this way, except for streams."""
    specs = CLIENTS.values()
    return [spec.name for spec in specs if spec.own_retries == way and not spec.formats]


def mark_others(clients, usual, settings):
    """Return strategies of clients with settings.

    Clients that are not usual share the code of one that is: they wait for a release.
    """
    strategies = []
    for client in clients:
        marks = () if client in usual else pytest.mark.release
        strategies.append(pytest.param(f"{client}?{settings}", marks=marks))
    return strategies


OF_URLLIB3 = mark_others(
    list_own("urllib3"),
    {"urllib3", "requests-session", "niquests-async"},
    "retry=own&backoff=1ms",
)
CONNECTING = mark_others(
    list_own("connecting"), {"httpx-client", "httpx2-async"}, "retry=own"
)
EACH = [
    *OF_URLLIB3,
    "aiohttp?retry=own&backoff=1ms",
    *(
        f"{client}?retry={way}&backoff=1ms"
        for client in ("requests-session", "pycurl", "aiohttp", "httpx2-async@trio")
        for way in ("tenacity&jitter=true", "stamina&jitter=false")
    ),
]


def failing(answer, times):
    """Return a function that answers so often with a failure, and then well."""
    left = [answer] * times
    return lambda _: left.pop() if left else ok()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("requests-session?attempts=2", "attempts needs retry=own"),
        ("requests-session?retry=always", "own, tenacity or stamina"),
        ("requests?retry=own", "clients of aiohttp.*retry=tenacity wraps any"),
        ("ab?retry=tenacity", "sends requests itself"),
        ("pycurl@multi?retry=tenacity", "sends requests itself"),
        ("httpx-client?retry=own&backoff=1s", "connecting only, has no backoff"),
        ("aiohttp?retry=own&respect_retry_after=true", "no respect_retry_after"),
        ("aiohttp?retry=tenacity&respect_retry_after=true", "no respect_retry_after"),
        ("urllib3?retry=own&jitter=true", "add backoff"),
        ("urllib3?retry=own&attempts=0", "1 or more"),
        ("urllib3?retry=own&attempts=many", "attempts=many must be a whole number"),
        ("urllib3?retry=own&backoff=100", "100ms or 100s"),
        ("urllib3?retry=own&statuses=teapot", "not a status"),
    ],
)
def test_settings_that_are_not_possible_are_refused_in_one_line(
    name, reason, monkeypatch
):
    monkeypatch.setattr("clientlab.strategies.which", lambda program: program)
    with pytest.raises(LabError, match=f"^strategy '.*{reason}.*$"):
        check_settings(find(name))


def test_settings_reach_the_library():
    """Lists are separated by commas or pluses."""
    settings = "retry=own&backoff=100ms&jitter=true&statuses=429+503&methods=get,post"
    made = make_urllib3_retry(urllib3.Retry, retry_of(find(f"urllib3?{settings}")))
    assert (made.total, made.status_forcelist) == (2, {429, 503})
    assert made.allowed_methods == ("GET", "POST")
    assert (made.backoff_factor, made.backoff_jitter) == (0.1, 0.1)
    session = wrap_aiohttp_session(object(), retry_of(find(f"aiohttp?{settings}")))
    options = session.retry_options
    assert isinstance(options, aiohttp_retry.JitterRetry)
    assert (options.attempts, options.statuses) == (3, {429, 503})
    assert options.methods == {"GET", "POST"}
    assert 0.2 <= options.get_timeout(1) <= 4.2


@pytest.mark.parametrize("asked", [{"read": "chunks"}, {"first_byte": True}])
def test_a_body_that_is_read_in_parts_is_not_retried_around_the_client(asked):
    workload = make_workload(**asked)
    check_capabilities(find("requests-session?retry=own"), workload)
    with pytest.raises(LabError, match="stamina retries only whole"):
        check_capabilities(find("requests-session?retry=stamina"), workload)


@pytest.mark.parametrize(
    ("name", "module"),
    [("aiohttp?retry=own", "aiohttp_retry"), ("urllib3?retry=stamina", "stamina")],
)
def test_a_missing_library_makes_the_strategy_unavailable(name, module, monkeypatch):
    assert unavailable(find(name)) is None
    monkeypatch.setitem(sys.modules, module, None)
    assert "pip install 'clientlab[retry]'" in unavailable(find(name))
    assert unavailable(find(name.partition("?")[0])) is None


@pytest.mark.real
@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("failure", [BUSY, Reset()])
def test_a_call_succeeds_after_two_failed_attempts(name, failure):
    found = call_once(name, failing(failure, 2))
    assert (found.status, found.kind, found.attempts) == (200, "", 3)


@pytest.mark.real
@pytest.mark.parametrize("name", EACH)
def test_a_call_ends_as_its_last_attempt(name):
    """With the last response, or with the kind of the last exception."""
    found = call_once(f"{name}&attempts=2", lambda _: BUSY)
    assert (found.status, found.kind, found.attempts) == (503, "status-5xx", 2)
    for fault in FAULTS[4:12:2]:  # reset, silence, truncated, and no HTTP
        once = kind_of_fault(name.partition("?")[0], fault)
        assert kind_of_fault(f"{name}&attempts=2", fault) == once, fault.name


@functools.cache
def kind_of_fault(name, fault):
    """Return the kind of a call's error if the server always answers with a fault."""
    timeout = 0.1 if isinstance(fault.answer, Stall) else 10.0
    return call_once(name, lambda _: fault.answer, timeout=timeout).kind


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "attempts"),
    [
        ("urllib3?retry=own", 1),  # documented: only methods that may be repeated
        ("urllib3?retry=own&methods=POST", 3),
        ("aiohttp?retry=own&backoff=1ms", 3),
        ("aiohttp?retry=own&methods=GET", 1),
        ("aiohttp?retry=own&statuses=429", 1),
        ("requests?retry=tenacity", 3),
        ("requests?retry=tenacity&methods=GET+PUT", 1),
        ("requests?retry=stamina&statuses=429", 1),
        ("niquests?retry=own&methods=POST&respect_retry_after=false&statuses=4xx", 1),
    ],
)
def test_methods_and_statuses_decide_which_requests_are_sent_again(name, attempts):
    found = call_once(name, lambda _: BUSY, method="POST", body="x")
    assert (found.kind, found.attempts) == ("status-5xx", attempts)


@pytest.mark.real
@pytest.mark.parametrize("name", OF_URLLIB3)
@pytest.mark.parametrize("respects", ["true", "false"])
def test_retry_after_is_kept_or_ignored(name, respects):
    found = call_once(f"{name}&respect_retry_after={respects}", failing(LIMITED, 1))
    assert (found.status, found.attempts) == (200, 2)
    assert (found.seconds > 0.9) == (respects == "true")


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("urllib3?retry=own&backoff=100ms", 0.2),  # none before the second attempt
        ("aiohttp?retry=own&backoff=50ms", 0.3),  # 0.1 + 0.2: it doubles at once
        ("aiohttp?retry=tenacity&backoff=100ms", 0.3),
        ("requests?retry=stamina&backoff=100ms&jitter=false", 0.3),
    ],
)
def test_waits_grow_from_the_base(name, least):
    assert least <= call_once(name, failing(BUSY, 2)).seconds < least + 0.3


@pytest.mark.real
@pytest.mark.parametrize("name", CONNECTING)
def test_httpx_retries_connecting_only(name):
    """Nothing listens at the port: the third attempt waits for 0.5 s."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        found = call_once(name, lambda _: BUSY, url=url)
    assert (found.kind, found.seconds > 0.49) == ("connect", True)
    if CLIENTS[name.partition("?")[0]].http == "1.1":
        assert call_once(name, lambda _: BUSY).attempts == 1
