"""The checks themselves: each finds what it is there for, in a client that breaks that one thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab.conformance import SCENARIOS, CheckResult, ending, faults, same_work
from clientlab.conformance.hostile import ENDLESS, LIMIT, SLACK, WITHOUT_END, EndlessOutcome
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


def test_a_client_that_holds_on_to_an_answer_without_an_end_is_found():
    """The lab ends such trials itself, so that no client can break this check; its evidence is made up."""
    kept = WITHOUT_END.checks["answers without an end: limit kept"]
    found = {mode: EndlessOutcome("timeout-read", 1.0) for mode in ENDLESS}
    assert kept(found) == ""
    for seconds in (None, LIMIT + SLACK + 0.1):
        assert kept(found | {"a body byte by byte": EndlessOutcome("none", seconds)})


@pytest.mark.real
@pytest.mark.release
def test_an_answer_that_is_late_once_is_asked_for_again(tmp_path, monkeypatch):
    """The machine may have been busy; what is late in two trials is the strategy's own."""
    monkeypatch.setenv("LATE_ONCE", str(tmp_path / "late"))
    results = judged(path_of("LateOnce"), "faults")
    assert (tmp_path / "late").exists()
    assert [result for result in results.values() if result.broken] == []
