"""The checks themselves: each finds what it is there for, in a client that breaks that one thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab.conformance import SCENARIOS, CheckResult, causes_of, ending, faults, same_work
from clientlab.conformance.causes import CAUSES
from clientlab.strategies import find, plugins

CLIENTS = Path(__file__).with_name("broken.py")
EXECUTORS = Path(__file__).with_name("broken_executors.py")
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}

BROKEN = [
    ("SendsTwice", "one", "one request", "2 reached the server"),
    ("LosesHeaders", "one", "one request", "x-mine"),
    ("ChangesBody", "one", "one request", "'data' of 300 characters"),
    ("ReadsPart", "one", "one request", "12 were read"),
    ("OtherMethod", "one", "method PUT", "POST"),
    ("CountsTwice", "one", "one request", "the lab counted 2 connections"),
    ("OneAtATime@threads", "seven", "seven requests", "never more than 1"),
    ("Skips", "budget", "1,000 requests", "100 never sent"),
    ("KeepsNothing@threads", "budget", "connection policy", "1000 were"),
    ("Unverified", "tls", "certificate of another CA", "bytes were sent"),
    ("AnyName", "tls", "certificate of another name", "bytes were sent"),
    ("Swallows", "refused", "connection refused", "recorded as none"),
    ("KnowsNoKinds", "refused", "connection refused", "recorded as other:"),
    ("IsPatient", "unanswered", "time limit of connecting", "time limit"),
    ("IgnoresTheEnd", "duration", "ends on time", "none is to begin"),
    ("LeavesAProcess", "stop", "no process left", "are left"),
]  # fmt: skip


def path_of(name: str) -> str:
    """How a class of the two files is asked for."""
    if name in {"IgnoresTheEnd", "LeavesAProcess"}:
        return f"http.client@{EXECUTORS}:{name}"
    return f"{CLIENTS}:{name}"


def judged(strategy: str, scenario: str) -> dict[str, CheckResult]:
    """The result of each check of one scenario."""
    plugins.admit([strategy])
    return {result.check: result for result in BY_NAME[scenario].judge(find(strategy))}


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "scenario", "check", "found"), BROKEN, ids=[f"{name}: {check}" for name, _, check, _ in BROKEN]
)
def test_a_strategy_that_breaks_something_is_found(name, scenario, check, found, monkeypatch):
    """The check of that thing says what it found. What never comes is waited for less long than usual."""
    monkeypatch.setattr(same_work, "_PATIENCE", 1.0)
    monkeypatch.setattr(ending, "_GRACE", 1.0)
    monkeypatch.setattr(faults, "SLACK", 0.5)
    assert found in judged(path_of(name), scenario)[check].broken


@pytest.mark.real
def test_a_client_that_sends_again_and_follows_redirects_is_found():
    """Both by the same trial."""
    results = judged(path_of("RetriesToo"), "faults")
    assert "closed before an answer" in results["nothing sent again"].broken
    assert "followed" in results["redirect not followed"].broken


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        *[("Sound", name) for name in ("budget", "faults", "tls", "duration")],
        ("SoundH2", "seven"),
    ],
)
def test_a_users_own_strategy_that_breaks_nothing_passes(name, scenario):
    """Every check, as for the lab's own."""
    assert [result for result in judged(path_of(name), scenario).values() if result.broken] == []


@pytest.mark.real
def test_connections_of_a_function_that_the_lab_cannot_see_break_no_check():
    """The library of the function opens them outside Python, so the lab counts none."""
    results = judged(path_of("fetch"), "refused")
    assert results["refused connection not opened"].passed


FAILED = [
    ("retries", [("nothing sent again", "37 requests reached the server for 29"),
                 ("no answer", "the trial failed: stalled"),
                 ("refused connection not opened", "the lab counted 4 begun and 3 opened")]),
    ("redirects", [("redirect not followed", "the redirect was followed"), ("redirect", "its kind is none")]),
    ("another URL", [("1,000 requests", "1000 never sent, as /item/0?x=1; 1000 not asked for, as /item/0"),
                     ("answer 404", "its kind is status-4xx, and it is recorded as none")]),
    ("cache", [("1,000 requests", "900 reached the server: 100 never sent"), ("whole body read", "12 were read")]),
    ("more than once", [("1,000 requests", "1000 sent more than once"), ("nothing sent again", "58 requests")]),
    ("another method", [("method, headers, body", "the method is GET, and POST reached the server")]),
    ("compressed", [("method, headers, body", "header accept-encoding: identity reached the server as 'gzip'")]),
    ("changes headers", [("method, headers, body", "header x-mine: yes reached the server as None")]),
    ("body of the request", [("one request", "the body that reached the server is not the JSON")]),
    ("whole body", [("whole body read", "the answer to request 0 has 25 bytes, and 12 were read")]),
    ("returns a success", [("answer 503", "its kind is status-5xx, and it is recorded as none")]),
    ("are not verified", [("certificate of another CA", "612 bytes were sent"), ("certificates verified", "none")]),
    ("host name", [("certificate of another name", "612 bytes were sent"), ("certificates verified", "1 tls")]),
    ("'errors' does not name", [("certificates verified", "which are two errors of kind tls; recorded are: 2 protocol"),
                                ("refused connection not opened", "the lab counted 1 begun and 1 opened")]),
    ("time limit", [("time limit kept", "'no answer' was waited for 10.0 s")]),
    ("not kept", [("connection policy", "connections are kept (pool): at most 7 are to be opened; 1000 were")]),
    ("wait for each other", [("as many in flight", "7 are to be in flight at once; never more than 1 were")]),
    ("of type bytes", [(name, "the trial failed: the function returned an object of type bytes; return both")
                       for name in ("1,000 requests", "answer 404", "method GET")]),
    ("unknown", [("something new", "nobody knows")]),
]  # fmt: skip


@pytest.mark.parametrize(("word", "failed"), FAILED, ids=[word for word, _ in FAILED])
def test_failed_checks_lead_to_their_cause(word, failed):
    """One cause, with a fix, however many checks it makes fail."""
    [(cause, fix)] = causes_of([CheckResult("mine", check, broken) for check, broken in failed])
    assert word in cause
    assert fix


def test_causes_name_checks_that_there_are():
    """A cause of a check that is gone would never be found."""
    checks = {name for scenario in SCENARIOS for name in scenario.checks}
    assert {name for cause in CAUSES for name in cause.checks | cause.explains} - checks == {"*"}
