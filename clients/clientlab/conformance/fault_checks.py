"""Faults of a server and of connecting.

Every strategy records the same kind of error, and sends no request again.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from clientlab.conformance import checking, server
from clientlab.conformance.checking import (
    Cause,
    CheckResult,
    Evidence,
    judge,
    measure,
    measure_against,
    speaks_http2,
)
from clientlab.conformance.server import (
    PATIENCE,
    CountingServer,
    Last,
    Reset,
    Seen,
    ServerAnswer,
    Stall,
    ok,
)
from clientlab.observing.process_handle import TrialStalled
from clientlab.strategies import Strategy, executor_spec
from clientlab.workload.workload import make_workload

# Seconds after the time limit from which a client is late; a busy machine needs less.
SLACK = 2.0
_TIMEOUT = 0.5
_CONNECT_TIMEOUT = 1.5
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Fault(NamedTuple):
    """A fault of a server and the kind of error to record, or ``none``."""

    name: str
    answer: ServerAnswer
    kind: str


GOOD = Fault("a good answer after a fault", ok(), "none")
FAULTS = (
    Fault("closed before an answer", None, "reset"),
    Fault("reset before an answer", Reset(), "reset"),
    Fault("used connection closed", None, "reset"),
    Fault("used connection reset", Reset(), "reset"),
    Fault("reset in the body", Reset(ok()[:-5]), "reset"),
    Fault("no answer", Stall(), "timeout-read"),
    Fault("silence in the headers", Stall(ok()[:40]), "timeout-read"),
    Fault("silence in the body", Stall(ok()[:-5]), "timeout-read"),
    Fault("truncated body", Last(ok()[:-5]), "protocol"),
    Fault("truncated chunk", Last(_CHUNKED + b"10\r\nabc"), "protocol"),
    Fault("malformed chunk", Last(_CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"), "protocol"),
    Fault(
        "malformed status line", b"\x00\xff\xfe this is\r\nnot HTTP\r\n\r\n", "protocol"
    ),
    Fault("answer 404", ok(status="404 Not Found"), "status-4xx"),
    Fault("answer 503", ok(status="503 Service Unavailable"), "status-5xx"),
    Fault(
        "redirect",
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        "none",
    ),
)
IN_HTTP2_TOO = {
    "no answer",
    "silence in the body",
    "truncated body",
    "answer 404",
    "answer 503",
    "redirect",
}


def check_server_faults(strategy: Strategy) -> Iterator[CheckResult]:
    """Check all faults in one trial.

    The first two meet new connections, the others follow a good answer.
    """
    faults = list(FAULTS)
    parts = []
    if speaks_http2(strategy):
        faults = [fault for fault in FAULTS if fault.name in IN_HTTP2_TOO]
    else:
        parts = [faults.pop(0), faults.pop(0)]
    for fault in faults:
        parts += [GOOD, fault]
    parts.append(GOOD)
    evidence, stalled = _send_each(strategy, parts)
    other_kinds = dict(evidence.client.quirks.fault_kinds)
    spoiled = ""
    silent = stalled
    for number, fault in enumerate(parts):
        kind = other_kinds.get(fault.name, fault.kind)
        result = evidence.judge_kind(fault.name, number, kind)
        if fault is GOOD:
            if result.broken and not spoiled:
                previous = parts[number - 1].name
                spoiled = f"the request after {previous!r}: {result.broken}"
            continue
        if isinstance(fault.answer, Stall):
            seconds = evidence.server.let_go.get(f"/{number}", PATIENCE)
            if not silent and seconds > _TIMEOUT + SLACK:
                silent = (
                    f"the time limit is {_TIMEOUT:g} s; {fault.name!r} was waited for"
                    f" {seconds:.1f} s"
                )
            cause = checking.NO_TIME_LIMIT if result.cause else None
            result = replace(result, broken=stalled or result.broken, cause=cause)
        elif not _used_kept_connection(number, fault, evidence):
            message = (
                "a new connection was opened after a good answer, although the policy"
                " is to keep connections"
            )
            result = replace(result, broken=message, cause=checking.NOT_KEPT)
        yield result
    yield judge("goes on after a fault", not spoiled, spoiled, checking.SPOILED)
    yield from _judge_requests(evidence, parts)
    yield judge("time limit kept", not silent, silent, checking.NO_TIME_LIMIT)


def _judge_requests(
    evidence: Evidence, parts: Sequence[Fault]
) -> Iterator[CheckResult]:
    """Check that each request reached the server once, as a GET."""
    count = Counter(seen.target for seen in evidence.server.seen)
    again = [
        fault.name
        for number, fault in enumerate(parts)
        if count[f"/{number}"] > 1
        and fault.name not in evidence.client.quirks.resends_after
    ]
    message = (
        f"{count.total()} requests reached the server for {len(parts)}: sent again"
        f" after {', '.join(again)}"
    )
    yield judge("nothing sent again", not again, message, checking.RETRIES)
    yield judge(
        "redirect not followed",
        not count["/elsewhere"],
        "the redirect was followed",
        checking.REDIRECTS,
    )
    others = {seen.method for seen in evidence.server.seen} - {"GET"}
    message = f"the method is GET, and {', '.join(others)} reached the server"
    yield judge("method GET", not others, message, checking.METHOD)


def _send_each(strategy: Strategy, parts: Sequence[Fault]) -> tuple[Evidence, str]:
    """Send a request for each part.

    If silence stalls the trial, return why, and repeat it without silence.
    """
    workload = make_workload(
        path="/{k}",
        requests=len(parts),
        concurrency=1,
        warmup=0,
        timeout=_TIMEOUT,
        # Clients without a time limit wait for the whole silence, or repeatedly.
        request_limit=PATIENCE + 5,
    )

    def answer(seen: Seen) -> ServerAnswer:
        number = seen.target.removeprefix("/")
        return parts[int(number)].answer if number.isdigit() else ok()

    def answer_at_once(seen: Seen) -> ServerAnswer:
        planned = answer(seen)
        return ok() if isinstance(planned, Stall) else planned

    try:
        evidence = measure_against(answer, strategy, workload)
        # On a busy machine any answer can be late, and a client that opens connections
        # ahead may use a new one. A client that is always too slow, or keeps no
        # connection, fails again.
        for number, fault in enumerate(parts):
            timed_out = evidence.kinds.get(number, "").startswith("timeout")
            is_late = timed_out and not fault.kind.startswith("timeout")
            if is_late or not _used_kept_connection(number, fault, evidence):
                return measure_against(answer, strategy, workload), ""
    except TrialStalled as failure:
        evidence = measure_against(answer_at_once, strategy, workload)
        return evidence, f"the trial failed: {failure}"
    return evidence, ""


def _used_kept_connection(number: int, fault: Fault, evidence: Evidence) -> bool:
    """Return whether a fault met the connection of the request before it.

    Return True if it need not, or if the strategy keeps no connections.
    """
    if (
        not fault.name.startswith("used")
        or evidence.strategy.policy == "per call"
        or executor_spec(evidence.strategy.executor).concurrent
    ):
        return True
    used = {seen.target: seen.connection for seen in reversed(evidence.server.seen)}
    return used.get(f"/{number}") == used.get(f"/{number - 1}")


def check_certificates(strategy: Strategy) -> Iterator[CheckResult]:
    """Check TLS.

    The first connection meets a certificate of another CA, the second one for another
    name.
    """
    version = "h2" if speaks_http2(strategy) else "http/1.1"
    other_ca = server.server_context(server.OTHER_CA, version)
    other_name = server.server_context(server.OTHER_NAME, version)
    sound = server.server_context(server.SOUND, version)
    workload = make_workload(
        path="/item/{k}", method="DELETE", requests=6, concurrency=1, warmup=0
    )
    # Some clients open a connection ahead, so there are more good certificates than
    # requests.
    with server.counting_server(tls=[other_ca, other_name, *[sound] * 8]) as target:
        evidence = measure(strategy, workload, target)
    trusts_other_ca = other_ca in target.spoken_to
    trusts_other_name = other_name in target.spoken_to
    cause = None
    if trusts_other_ca:
        cause = checking.UNVERIFIED
    elif trusts_other_name:
        cause = checking.ANY_NAME
    message = "bytes were sent to a server with a certificate "
    yield judge(
        "certificate of another CA",
        not trusts_other_ca,
        message + "that another CA has signed",
        cause,
    )
    yield judge(
        "certificate of another name",
        not trusts_other_name,
        message + "for another name",
        cause,
    )
    yield from _judge_verified(evidence, cause)


def _judge_verified(evidence: Evidence, cause: Cause | None) -> Iterator[CheckResult]:
    """Check the errors, requests and connections of a trial with two bad certificates.

    `cause`: why bytes were sent in spite of them.
    """
    requests = evidence.server.seen
    kinds = Counter(evidence.kinds.values())
    recorded = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
    message = (
        "two certificates are wrong, which must give two errors of kind tls; recorded"
        f" are: {recorded}"
    )
    likely = checking.ERRORS if kinds else checking.SWALLOWED
    if not requests:
        likely = checking.UNTRUSTED
    yield judge(
        "certificates verified",
        kinds == {"tls": 2},
        message,
        cause or likely,
        next(iter(kinds), "none"),
    )
    methods = {seen.method for seen in requests}
    each_once = len({seen.target for seen in requests}) == len(requests) == 4
    message = (
        f"4 requests (DELETE) must reach the server over TLS; {len(requests)} did:"
        f" {methods}"
    )
    likely = checking.METHOD if methods - {"DELETE"} else cause or checking.UNTRUSTED
    yield judge(
        "requests over TLS", each_once and methods == {"DELETE"}, message, likely
    )
    by_lab = evidence.outcome.connections_begun
    accepted = evidence.server.accepted
    message = f"the lab counted {by_lab} connections over TLS, the server {accepted}"
    yield judge(
        "connections over TLS counted", by_lab == accepted, message, checking.COUNTS
    )


def check_refused(strategy: Strategy) -> Iterator[CheckResult]:
    """Check that a refused connection is an error: begun, but not opened."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        evidence = _connect(strategy, held)
    yield evidence.judge_kind("connection refused", 0, "connect")
    begun = evidence.outcome.connections_begun
    opened = evidence.outcome.connections_opened
    # A function may connect outside Python.
    right = (begun, opened) == (1, 0) or (begun == 0 and evidence.client.url_only)
    message = (
        f"one connection must be begun, and none opened; the lab counted {begun} begun"
        f" and {opened} opened"
    )
    cause = checking.ERRORS if begun == opened == 1 else checking.COUNTS
    yield judge("refused connection not opened", right, message, cause)


def check_unanswered(strategy: Strategy) -> Iterator[CheckResult]:
    """Check the time limit of connecting.

    Linux does not answer attempts to connect to a port whose queue is full.
    """
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(4):  # a queue of length 0 holds one or two
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        probe = stack.enter_context(socket.socket())
        probe.settimeout(0.05)
        if probe.connect_ex(listener.getsockname()) != errno.EWOULDBLOCK:
            yield CheckResult(
                "connecting not answered",
                unchecked="this system does not leave connections unanswered",
            )
            return
        evidence = _connect(strategy, listener)
    yield evidence.judge_kind("connecting not answered", 0, "timeout-connect")
    took = max(evidence.samples.records["seconds"].tolist(), default=0.0)
    message = f"the time limit is {_CONNECT_TIMEOUT:g} s; connecting took {took:.1f} s"
    yield judge(
        "time limit of connecting",
        took < _CONNECT_TIMEOUT + SLACK,
        message,
        checking.NO_TIME_LIMIT,
    )


def _connect(strategy: Strategy, listener: socket.socket) -> Evidence:
    scheme = "https" if speaks_http2(strategy) else "http"
    target = CountingServer(scheme, listener.getsockname()[1])
    workload = make_workload(
        requests=1, concurrency=1, warmup=0, timeout=_CONNECT_TIMEOUT
    )
    return measure(strategy, workload, target)
