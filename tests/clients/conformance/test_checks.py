"""Each check finds what it is there for, in a client that breaks that one thing. Listed strategies pass them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab.conformance import causes_of, conform, faults, load, results
from clientlab.conformance.results import CheckResult
from clientlab.strategies import CLIENTS, STRATEGIES, find, plugins

BROKEN_CLIENTS = Path(__file__).with_name("broken.py")
BROKEN_EXECUTORS = Path(__file__).with_name("broken_executors.py")

BROKEN = [
    ("SendsTwice", load.same_work, "1,000 requests", "2000 reached the server"),
    ("LosesHeaders", load.same_work, "one request", "x-mine"),
    ("Decompresses", load.same_work, "method, headers, body", "accept-encoding: identity"),
    ("ChangesBody", load.same_work, "one request", "'data' of 300 characters"),
    ("ReadsPart", load.same_work, "one request", "12 were read"),
    ("CountsTwice", load.same_work, "one request", "the lab counted 2 connections"),
    ("OneAtATime@threads", load.same_work, "seven requests", "never more than 1"),
    ("KeepsNothing@threads", load.same_work, "connection policy", "1000 were"),
    ("Unverified", faults.certificates, "certificate of another CA", "bytes were sent"),
    ("AnyName", faults.certificates, "certificate of another name", "bytes were sent"),
    ("Swallows", faults.refused, "connection refused", "recorded as none"),
    ("IsPatient", faults.unanswered, "time limit of connecting", "time limit"),
    ("IgnoresTheEnd", load.duration, "ends on time", "none is to begin"),
    ("LeavesAProcess", load.stop, "no process left", "are left"),
]  # fmt: skip


def path_of(name: str) -> str:
    if name in {"IgnoresTheEnd", "LeavesAProcess"}:
        return f"http.client@{BROKEN_EXECUTORS}:{name}"
    return f"{BROKEN_CLIENTS}:{name}"


def judged(strategy: str, scenario) -> dict[str, CheckResult]:
    plugins.admit([strategy])
    return {result.check: result for result in scenario(find(strategy))}


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "scenario", "check", "found"), BROKEN, ids=[f"{name}: {check}" for name, _, check, _ in BROKEN]
)
def test_a_strategy_that_breaks_something_is_found(name, scenario, check, found, monkeypatch):
    """The check of that thing says what it found. What never comes is waited for less long than usual."""
    monkeypatch.setattr(load, "PATIENCE", 1.0)
    monkeypatch.setattr(faults, "SLACK", 0.5)
    assert found in judged(path_of(name), scenario)[check].broken


@pytest.mark.real
def test_a_client_that_sends_again_and_follows_redirects_is_found():
    results = judged(path_of("RetriesToo"), faults.server_faults)
    assert "closed before an answer" in results["nothing sent again"].broken
    assert "followed" in results["redirect not followed"].broken


@pytest.mark.real
@pytest.mark.parametrize("name", ["Sound", "SoundH2"])
def test_a_users_own_strategy_that_breaks_nothing_passes(name):
    path = path_of(name)
    plugins.admit([path])
    assert [result for result in conform(find(path)) if result.broken] == []


@pytest.mark.real
def test_connections_of_a_function_that_the_lab_cannot_see_break_no_check():
    """The library of the function opens them outside Python, so the lab counts none."""
    assert judged(path_of("fetch"), faults.refused)["refused connection not opened"].passed


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        ([results.COUNTS, results.NO_TIME_LIMIT, results.RETRIES, results.REDIRECTS, results.RETRIES],
         [results.RETRIES, results.REDIRECTS]),
        ([results.BODY, results.CACHED], [results.CACHED]),
    ],
)  # fmt: skip
def test_the_causes_of_the_earliest_stage_are_named_once(failed, expected):
    """Later failures may be their consequences."""
    assert causes_of([CheckResult("any", "broken", cause) for cause in failed]) == expected


@pytest.mark.real
@pytest.mark.release
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "strategy", [one for one in STRATEGIES.values() if not CLIENTS[one.client].program], ids=lambda one: one.name
)
def test_every_strategy_conforms(strategy):
    assert {result.check: result.broken for result in conform(strategy) if result.broken} == {}
