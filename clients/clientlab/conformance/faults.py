"""Faults of a server and of connecting: every strategy records the same kind of error,
and sends no request again.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clientlab.conformance import checks, server
from clientlab.conformance.checks import (
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
from clientlab.strategies import Strategy, executor_spec
from clientlab.trial.process_handle import TrialStalled
from clientlab.workload.workload import Workload

# Seconds after the time limit from which a client is late; far more than a busy machine
# needs.
SLACK = 2.0
_TIMEOUT, _CONNECT_TIMEOUT = 0.5, 1.5
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Fault(NamedTuple):
    """A fault of a server and the kind of error to record; ``none`` for an answer that
    is not an error.
    """

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
_IN_HTTP2_TOO = {
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
    http2 = speaks_http2(strategy)
    known = [fault for fault in FAULTS if not http2 or fault.name in _IN_HTTP2_TOO]
    new = 0 if http2 else 2
    parts = [
        *known[:new],
        *(part for fault in known[new:] for part in (GOOD, fault)),
        GOOD,
    ]
    found, stalled = _send_each(strategy, parts)
    kinds = {fault.name: fault.kind for fault in parts} | dict(
        found.client.quirks.fault_kinds
    )
    spoiled, silent = "", stalled
    for number, fault in enumerate(parts):
        message, cause, kind = found.judge_kind(number, kinds[fault.name])
        if fault is GOOD:
            spoiled = spoiled or (
                message and f"the request after {parts[number - 1].name!r}: {message}"
            )
            continue
        if isinstance(fault.answer, Stall):
            seconds = found.server.let_go.get(f"/{number}", PATIENCE)
            if not silent and seconds > _TIMEOUT + SLACK:
                silent = (
                    f"the time limit is {_TIMEOUT:g} s; {fault.name!r} was waited for"
                    f" {seconds:.1f} s"
                )
            message, cause = stalled or message, cause and checks.NO_TIME_LIMIT
        elif not _used_kept_connection(number, fault, found):
            message = (
                "a new connection was opened after a good answer, although the policy"
                " is to keep connections"
            )
            cause = checks.NOT_KEPT
        yield CheckResult(fault.name, message, cause, kind)
    yield judge("goes on after a fault", not spoiled, spoiled, checks.SPOILED)
    count = Counter(seen.target for seen in found.server.seen)
    twice = [
        fault.name for number, fault in enumerate(parts) if count[f"/{number}"] > 1
    ]
    again = [name for name in twice if name not in found.client.quirks.resends_after]
    message = (
        f"{count.total()} requests reached the server for {len(parts)}: sent again"
        f" after {', '.join(again)}"
    )
    yield judge("nothing sent again", not again, message, checks.RETRIES)
    yield judge(
        "redirect not followed",
        not count["/elsewhere"],
        "the redirect was followed",
        checks.REDIRECTS,
    )
    others = {seen.method for seen in found.server.seen} - {"GET"}
    message = f"the method is GET, and {', '.join(others)} reached the server"
    yield judge("method GET", not others, message, checks.METHOD)
    yield judge("time limit kept", not silent, silent, checks.NO_TIME_LIMIT)


def _send_each(strategy: Strategy, parts: Sequence[Fault]) -> tuple[Evidence, str]:
    """Send a request for each part.

    If silence stalls the trial, return why, and repeat it without silence.
    """
    many, limit = (
        len(parts),
        PATIENCE + 5,
    )  # clients without a time limit wait for the whole silence, or repeatedly
    workload = Workload(
        path="/{k}",
        requests=many,
        concurrency=1,
        warmup=0,
        timeout=_TIMEOUT,
        request_limit=limit,
    )

    def answer(seen: Seen) -> ServerAnswer:
        number = seen.target.removeprefix("/")
        return parts[int(number)].answer if number.isdigit() else ok()

    def answer_at_once(seen: Seen) -> ServerAnswer:
        return ok() if isinstance(found := answer(seen), Stall) else found

    try:
        found = measure_against(answer, strategy, workload)
        # On a busy machine any answer can be late, and a client that opens connections
        # ahead may use a new one. A client that is always too slow, or keeps no
        # connection, fails again.
        for number, fault in enumerate(parts):
            is_late = found.kinds.get(number, "").startswith(
                "timeout"
            ) and not fault.kind.startswith("timeout")
            if is_late or not _used_kept_connection(number, fault, found):
                return measure_against(answer, strategy, workload), ""
    except TrialStalled as failure:
        return (
            measure_against(answer_at_once, strategy, workload),
            f"the trial failed: {failure}",
        )
    return found, ""


def _used_kept_connection(number: int, fault: Fault, found: Evidence) -> bool:
    """Return whether a fault met the connection of the request before it, if the
    strategy keeps connections.
    """
    needless = (
        found.strategy.policy == "per call"
        or executor_spec(found.strategy.executor).concurrent
    )
    on = {seen.target: seen.connection for seen in reversed(found.server.seen)}
    return (
        needless
        or not fault.name.startswith("used")
        or on.get(f"/{number}") == on.get(f"/{number - 1}")
    )


def check_certificates(strategy: Strategy) -> Iterator[CheckResult]:
    """Check TLS.

    The first connection meets a certificate of another CA, the second one for another
    name.
    """
    version = "h2" if speaks_http2(strategy) else "http/1.1"
    names = server.OTHER_CA, server.OTHER_NAME, server.SOUND
    other_ca, other_name, sound = (
        server.server_context(name, version) for name in names
    )
    workload = Workload(
        path="/item/{k}", method="DELETE", requests=6, concurrency=1, warmup=0
    )
    # Some clients open a connection ahead, so there are more good certificates than
    # requests.
    with server.counting_server(tls=[other_ca, other_name, *[sound] * 8]) as target:
        found = measure(strategy, workload, target)
    sent_to_other_ca, sent_to_other_name = (
        other_ca in target.spoken_to,
        other_name in target.spoken_to,
    )
    cause = (
        checks.UNVERIFIED
        if sent_to_other_ca
        else checks.ANY_NAME
        if sent_to_other_name
        else None
    )
    message = "bytes were sent to a server with a certificate "
    yield judge(
        "certificate of another CA",
        not sent_to_other_ca,
        message + "that another CA has signed",
        cause,
    )
    yield judge(
        "certificate of another name",
        not sent_to_other_name,
        message + "for another name",
        cause,
    )
    kinds = Counter(found.kinds.values())
    recorded = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
    message = (
        "two certificates are wrong, which must give two errors of kind tls; recorded"
        f" are: {recorded}"
    )
    likely = cause or (
        checks.UNTRUSTED
        if not target.seen
        else checks.ERRORS
        if kinds
        else checks.SWALLOWED
    )
    yield judge(
        "certificates verified",
        kinds == {"tls": 2},
        message,
        likely,
        next(iter(kinds), "none"),
    )
    methods = {seen.method for seen in target.seen}
    each_once = len({seen.target for seen in target.seen}) == len(target.seen) == 4
    message = (
        f"4 requests (DELETE) must reach the server over TLS; {len(target.seen)} did:"
        f" {methods}"
    )
    likely = checks.METHOD if methods - {"DELETE"} else cause or checks.UNTRUSTED
    yield judge(
        "requests over TLS", each_once and methods == {"DELETE"}, message, likely
    )
    by_lab, accepted = found.outcome.connections_begun, target.accepted
    message = f"the lab counted {by_lab} connections over TLS, the server {accepted}"
    yield judge(
        "connections over TLS counted", by_lab == accepted, message, checks.COUNTS
    )


def check_refused(strategy: Strategy) -> Iterator[CheckResult]:
    """Check that a refused connection is an error, and counts as begun but not as
    opened.
    """
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        found = _connect(strategy, held)
    yield CheckResult("connection refused", *found.judge_kind(0, "connect"))
    begun, opened = found.outcome.connections_begun, found.outcome.connections_opened
    right = (begun, opened) == (1, 0) or (
        begun == 0 and found.client.url_only
    )  # it connects outside Python
    message = (
        f"one connection must be begun, and none opened; the lab counted {begun} begun"
        f" and {opened} opened"
    )
    cause = checks.ERRORS if begun == opened == 1 else checks.COUNTS
    yield judge("refused connection not opened", right, message, cause)


def check_unanswered(strategy: Strategy) -> Iterator[CheckResult]:
    """Check the time limit of connecting to a port whose queue is full: Linux does not
    answer further attempts.
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
        found = _connect(strategy, listener)
    yield CheckResult(
        "connecting not answered", *found.judge_kind(0, "timeout-connect")
    )
    took = max(found.samples.records["seconds"].tolist(), default=0.0)
    message = f"the time limit is {_CONNECT_TIMEOUT:g} s; connecting took {took:.1f} s"
    yield judge(
        "time limit of connecting",
        took < _CONNECT_TIMEOUT + SLACK,
        message,
        checks.NO_TIME_LIMIT,
    )


def _connect(strategy: Strategy, listener: socket.socket) -> Evidence:
    target = CountingServer(
        "https" if speaks_http2(strategy) else "http", listener.getsockname()[1]
    )
    return measure(
        strategy,
        Workload(requests=1, concurrency=1, warmup=0, timeout=_CONNECT_TIMEOUT),
        target,
    )
