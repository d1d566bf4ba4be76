"""Each check finds a client that breaks what it checks.

Strategies of the lab pass all checks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab import conformance, plugins
from clientlab.conformance import (
    causes_of,
    checking,
    conform,
    fault_checks,
    load_checks,
    stream_checks,
)
from clientlab.conformance.checking import CheckResult
from clientlab.strategies import CLIENTS, STRATEGIES, find

MINE = Path(__file__).with_name("broken.py")


def judged(path: str, scenario) -> dict[str, CheckResult]:
    plugins.admit([path])
    return {result.check: result for result in scenario(find(path))}


@pytest.mark.real
@pytest.mark.parametrize(
    ("path", "scenario", "expected"),
    [
        (
            f"{MINE}:SendsTwice",
            load_checks.check_same_work,
            {"1,000 requests": "2000", "method, headers, body": "accept: "},
        ),
        (
            f"{MINE}:StoresCookies",
            load_checks.check_same_work,
            {"method, headers, body": "cookie: 'lab=1'"},
        ),
        pytest.param(
            f"{MINE}:AddsAHeader",
            load_checks.check_same_work,
            {"method, headers, body": "x-trace: '1'"},
            marks=pytest.mark.release,
        ),
        pytest.param(
            f"{MINE}:CountsTwice",
            load_checks.check_same_work,
            {"one request": "the lab counted 2 connections"},
            marks=pytest.mark.release,
        ),
        (
            f"{MINE}:OneAtATime@threads",
            load_checks.check_same_work,
            {"one request": "12 were read", "seven requests": "never more than 1"},
        ),
        (
            f"{MINE}:KeepsNothing@threads",
            load_checks.check_same_work,
            {"one request": "300 characters", "connection policy": "1000 were"},
        ),
        (
            f"{MINE}:Unverified",
            fault_checks.check_certificates,
            {"certificate of another CA": "bytes were sent"},
        ),
        (
            f"requests-session@{MINE}:OneProcessTooFew",
            load_checks.check_same_work,
            {"as many in flight": "7 must be in flight at once"},
        ),
        pytest.param(
            f"{MINE}:AnyName",
            fault_checks.check_certificates,
            {"certificate of another name": "bytes were sent"},
            marks=pytest.mark.release,
        ),
        (
            f"{MINE}:Swallows",
            fault_checks.check_refused,
            {"connection refused": "recorded as none"},
        ),
        (
            f"{MINE}:IsPatient",
            fault_checks.check_unanswered,
            {"time limit of connecting": "1.5 s"},
        ),
        (
            f"{MINE}:RetriesToo",
            fault_checks.check_server_faults,
            {
                "nothing sent again": "closed before an answer",
                "redirect not followed": "followed",
            },
        ),
        (
            f"{MINE}:HoldsEvents",
            stream_checks.check_streams,
            {"events handed over at once": "after the next one"},
        ),
        (
            f"http.client@{MINE}:IgnoresTheEnd",
            load_checks.check_duration,
            {"ends on time": "0.4 s"},
        ),
        (
            f"http.client@{MINE}:LeavesAProcess",
            load_checks.check_stop,
            {"no process left": "are left"},
        ),
    ],
)
def test_a_check_finds_what_a_strategy_breaks(path, scenario, expected, monkeypatch):
    """The test waits a shorter time than users for what never comes."""
    monkeypatch.setattr(load_checks, "PATIENCE", 0.2)
    monkeypatch.setattr(stream_checks, "_PAUSES", (0.03,))
    monkeypatch.setattr(fault_checks, "SLACK", 0.5)
    found = judged(path, scenario)
    assert {
        check: text
        for check, text in expected.items()
        if text not in found[check].broken
    } == {}


@pytest.mark.real
@pytest.mark.parametrize(
    "path",
    [
        f"{MINE}:Sound",
        pytest.param(f"{MINE}:SoundH2", marks=pytest.mark.release),
        pytest.param("aiohttp?retry=tenacity", marks=pytest.mark.release),
    ],
)
def test_a_users_own_correct_strategy_passes(path, monkeypatch):
    """Its first events are later than the shortest pause, on every machine."""
    monkeypatch.setattr(stream_checks, "_PAUSES", (0.03, 0.1))
    plugins.admit([path])
    assert [result for result in conform(find(path)) if result.broken] == []


@pytest.mark.real
@pytest.mark.parametrize(
    "path", ["requests-session?retry=own&attempts=3", "httpx-async?retry=tenacity"]
)
def test_a_strategy_may_retry_if_it_was_asked_to(path, monkeypatch):
    scenarios = (
        fault_checks.check_server_faults,
        fault_checks.check_certificates,
        fault_checks.check_refused,
    )
    monkeypatch.setattr(conformance, "_SCENARIOS", scenarios)
    results = list(conform(find(path)))
    assert [result for result in results if result.broken] == []
    assert [result.check for result in results if result.unchecked] == ["retries"]


@pytest.mark.real
def test_a_client_that_repeats_by_itself_is_found_behind_retries(monkeypatch):
    scenarios = (fault_checks.check_server_faults,)
    monkeypatch.setattr(conformance, "_SCENARIOS", scenarios)
    path = f"{MINE}:RetriesToo?retry=tenacity"
    plugins.admit([path])
    found = {result.check: result.broken for result in conform(find(path))}
    assert "closed before an answer" in found["nothing sent again"]


@pytest.mark.real
def test_requests_in_flight_are_counted_when_all_processes_are_there():
    results = load_checks.check_same_work(find("sync_multiprocess"))
    check = "as many in flight"
    assert next(result for result in results if result.check == check).passed


@pytest.mark.real
def test_a_function_may_open_connections_that_the_lab_cannot_count():
    assert judged(f"{MINE}:fetch", fault_checks.check_refused)[
        "refused connection not opened"
    ].passed


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (
            [
                checking.COUNTS,
                checking.NO_TIME_LIMIT,
                checking.RETRIES,
                checking.REDIRECTS,
                checking.RETRIES,
            ],
            [checking.RETRIES, checking.REDIRECTS],
        ),
        ([checking.BODY, checking.CACHED], [checking.CACHED]),
    ],
)
def test_the_causes_of_the_earliest_stage_are_named_once(failed, expected):
    """Failures of later stages may be their consequences."""
    assert (
        causes_of([CheckResult("any", "broken", cause) for cause in failed]) == expected
    )


@pytest.mark.real
@pytest.mark.release
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "strategy",
    [one for one in STRATEGIES.values() if not CLIENTS[one.client].program],
    ids=lambda one: one.name,
)
def test_every_strategy_conforms(strategy):
    assert {
        result.check: result.broken for result in conform(strategy) if result.broken
    } == {}
