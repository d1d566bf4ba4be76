"""The checks themselves: each finds what it is there for, in a client that breaks that one thing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clientlab.conformance import scenarios_of
from clientlab.conformance.hostile import ENDLESS, LIMIT, SLACK, WITHOUT_END, EndlessOutcome
from clientlab.strategies import find, plugins
from clients.conformance.conftest import judge

pytestmark = pytest.mark.slow

HERE = Path(__file__).with_name("broken.py")


WORKERS = {"KeepsSlots", "EndsLate"}
POOLS = {"KeepsMore": 1, "OpensAnew": 2}
EXECUTORS = {"IgnoresTheEnd", "LeavesOneOut", "OneMore", "LeavesAProcess"}


def path_of(name):
    """How a class of the file is asked for."""
    if name in EXECUTORS:
        return f"http.client@{HERE.with_name('broken_executors.py')}:{name}"
    if name in POOLS:
        return f"{HERE}:{name}@threads?pool={POOLS[name]}"
    if name in WORKERS:
        return f"{HERE}:{name}@workers"
    if name == "KeepsNoneAlone":
        return f"{HERE}:KeepsNothing"
    return f"{HERE}:{name}@threads" if name in {"OneAtATime", "KeepsNothing"} else f"{HERE}:{name}"


BROKEN = [
    ("SendsTwice", "budget", "1,000 requests", "of 1000 requests, 2000 reached .*: 1000 sent more than once"),
    ("SendsTwice", "one", "one request", "of 1 request, 2 reached the server"),
    ("SendsTwice", "seven", "seven requests", "of 7 requests, 14 reached the server"),
    ("OneAtATime", "seven", "seven requests", "7 are to be in flight at once; never more than 1 were"),
    ("OtherMethod", "seven", "method HEAD", "the method is HEAD, and GET reached the server"),
    ("OtherMethod", "seven", "seven requests", "the method is HEAD, and GET reached the server"),
    ("OtherMethod", "one", "method PUT", "the method is PUT, and POST reached the server"),
    ("OtherMethod", "tls", "method DELETE", "the method is DELETE, and GET reached the server"),
    ("OtherMethod", "faults", "method GET", "the method is GET, and POST reached the server"),
    ("Skips", "budget", "1,000 requests", "100 never sent, as /item/"),
    ("OtherMethod", "budget", "method, headers, body", "the method is POST, and PUT reached the server"),
    ("LosesHeaders", "budget", "method, headers, body", "header x-mine: yes reached the server as None"),
    ("ChangesBody", "budget", "method, headers, body", "is not an object with 'data' of 300 characters"),
    ("ReadsPart", "budget", "whole body read", "the answer to request 0 has .* bytes, and 12 were read"),
    ("KeepsNothing", "budget", "connection policy", "at most 7 are to be opened; 1000 were"),
    ("KeepsMore", "budget", "connection policy", "its pool of 1 throws connections away, .*: for 7 in flight, 7 were"),
    ("OpensAnew", "budget", "connection policy", "its pool of 2 lets requests wait; 1000 connections were opened"),
    ("KeepsAll", "budget", "connection policy", "a connection for each of 1000 requests is its policy; 1 "),
    ("CountsTwice", "budget", "connections counted", "the lab counted 2 connections, the server 1"),
    ("OneAtATime", "budget", "as many in flight", "7 are to be in flight at once; never more than 1 were"),
    ("OneMore", "budget", "never more in flight", "7 may be in flight at once; 8 were"),
    ("LeavesAProcess", "stop", "no process left", r"[12] of [23] processes are left after SIGTERM"),
    ("LeavesOneOut", "seven", "seven requests", "of 7 requests, 6 reached the server: 1 never sent, as /item/6"),
    ("LeavesOneOut", "budget", "recorded once", "1000 requests are to be recorded once each; 999 were"),
    ("Swallows", "faults", "answer 503", "its kind is status-5xx, and it is recorded as none"),
    ("Swallows", "faults", "truncated body", "its kind is protocol, and it is recorded as none"),
    ("Unverified", "tls", "certificate of another CA", "bytes were sent to a server with a certificate that another"),
    ("Unverified", "tls", "certificates verified", "two errors of kind tls; recorded are: none"),
    ("AnyName", "tls", "certificate of another name", "bytes were sent to a server with a certificate for another"),
    ("AnyName", "tls", "certificates verified", "two errors of kind tls; recorded are: 1 tls"),
    ("SendsTwice", "tls", "requests over TLS", "4 requests are to reach the server .*; 8 did"),
    ("CountsTwice", "tls", "connections over TLS counted", "the lab counted 4 connections over TLS, the server 3"),
    ("CountsTwice", "refused", "refused connection not opened", "the lab counted 2 begun and 1 opened"),
    ("Swallows", "refused", "connection refused", "its kind is connect, and it is recorded as none"),
    ("KnowsNoKinds", "faults", "reset in the body", "its kind is reset, and it is recorded as other:ProtocolError"),
    ("KnowsNoKinds", "unanswered", "connecting not answered", "recorded as other:ConnectTimeoutError"),
    ("Retries", "faults", "nothing sent again", "was sent again after: closed before an answer, reset before"),
    ("Retries", "faults", "nothing sent again", "used connection closed, used connection reset"),
    ("KeepsNoneAlone", "faults", "used connection closed", "a new connection was opened after a good answer"),
    ("Follows", "faults", "redirect not followed", "the redirect was followed"),
    ("IsPatient", "faults", "time limit kept", r"the time limit is 0.5 s; 'no answer' was waited for 3\.\d s"),
    ("IsPatient", "unanswered", "time limit of connecting", r"the time limit is 1.5 s; connecting took 4.\d s"),
    ("ReusesSpoiled", "faults", "goes on after a fault", "the request after '.*': its kind is none"),
    ("IgnoresTheEnd", "duration", "ends on time", r"after 0.4 s none is to begin; one began at 2.\d s"),
    ("KeepsSlots", "cancelled", "slots of cancelled requests", "of 4 slots are lost behind cancelled requests"),
    ("EndsLate", "cancelled", "ends when it is cancelled", "is cancelled, and it is recorded as none"),
    ("SendsTwiceH2", "seven", "seven requests", "of 7 requests, 14 reached .*: 7 sent more than once"),
    ("SendsTwiceH2", "faults over HTTP/2", "nothing sent again", "sent again after: .*, answer 404, .*, answer 503"),
    ("FallsBack", "seven", "seven requests", "HTTP/2 is to be spoken, and HTTP/1.1 was"),
    ("PatientH2", "faults over HTTP/2", "time limit kept", r"'no answer' was waited for 3\.\d s"),
    ("Swallows", "hostile server", "negative Content-Length", "its kind is protocol, and it is recorded as none"),
    ("KnowsNoKinds", "hostile server", "half a status line", "recorded as other:ProtocolError"),
    ("ReadsPart", "hostile server", "goes on after a hostile answer", "to get 2 bytes, and got an answer of 12 bytes"),
    ("Follows", "hostile server", "redirect to itself not followed", "a redirect to itself was followed"),
    ("KnowsNoKinds", "hostile TLS handshake", "TLS: garbage", "recorded as other:SSLError"),
    ("SwallowsH2", "hostile server over HTTP/2", "HTTP/2: garbage", "and it is recorded as none"),
    ("Swallows", "answers without an end", "headers without an end", "an answer without an end is a success"),
    ("KnowsNoKinds", "answers without an end", "headers without an end", "its kind is unknown: other:ProtocolError"),
    ("HoldsEvents", "streams", "events handed over as they are written", "event 0 of stream 0 was handed over after"),
    ("LosesEvents", "streams", "every event once, in order", r"stream 0 has the events .*; .* were \[1, 1, 2, 3, 4\]"),
    ("ForgivesCuts", "streams", "a stream that is cut", "its kind is protocol, and it is recorded as none"),
    ("ForgivesCuts", "streams", "an event that is an error", "its kind is event-error, and it is recorded as none"),
    ("SendsStreamsTwice", "streams", "streams sent once", "10 requests are to be sent, each once; 19 reached"),
    ("AddsHeaders", "streams", "headers of streams", "it sends headers that others do not send: x-own"),
    ("ReadsOn", "streams that are left", "the server sees that a stream is left", "stream 0, .*, is still open"),
    ("Raises", "one", "one request", r"the trial failed: Fault: broken.py can't be opened \(.*broken.py:\d+\)"),
    ("Raises", "stop", "no process left", "the trial failed: "),
]  # fmt: skip


plugins.admit([path_of("Sound"), *map(path_of, EXECUTORS)])


@pytest.mark.timeout(300)  # the first waits for the trials of all that stand before it
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        pytest.param((path_of(name), scenario, check), says, id=f"{name}: {check}")
        for name, scenario, check, says in BROKEN
    ],
)
def test_a_strategy_that_breaks_something_is_found(asked, says, judged):
    """The check of that thing says so in a sentence."""
    strategy, scenario, check = asked
    found = judged(strategy, scenario, check).broken
    assert re.search(says, found), found


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param((path_of(name), scenario.name, check), id=f"{name}: {check}")
        for name in ("Sound", "SoundH2")
        for scenario in scenarios_of(find(path_of(name)))
        for check in scenario.checks
        if (name, check) != ("SoundH2", "the server sees that a stream is left")
    ],
)
def test_a_users_own_strategy_that_breaks_nothing_passes(asked, judged):
    """Every check, as for the lab's own."""
    strategy, scenario, check = asked
    assert judged(strategy, scenario, check).broken == ""


@pytest.mark.parametrize(("seconds", "how"), [(None, "not at all"), (LIMIT + SLACK + 0.1, r"after 4\.1 s")])
def test_a_client_that_holds_on_to_an_answer_without_an_end_is_found(seconds, how):
    """The lab ends such trials itself, so that no client can break this check; its evidence is made up."""
    found = {mode: EndlessOutcome("timeout-read", 1.0) for mode in ENDLESS} | {
        "a body byte by byte": EndlessOutcome("none", seconds)
    }
    assert re.search(how, WITHOUT_END.checks["answers without an end: limit kept"](found))


@pytest.mark.parametrize("name", ["LateOnce", "UnsentOnce"])
def test_an_answer_that_is_late_once_is_asked_for_again(name, tmp_path, monkeypatch):
    """The machine may have been busy; what is late in two trials is the strategy's own."""
    monkeypatch.setenv("LATE_ONCE", str(tmp_path / "late"))
    results = judge(path_of(name), "faults")
    assert (tmp_path / "late").exists()
    assert [result.check for result in results if result.broken] == []
