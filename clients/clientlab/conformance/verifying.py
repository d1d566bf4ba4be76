"""The scenario of TLS: a client sends no request to a server whose certificate is wrong."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass

from clientlab.conformance.evidence import Evidence, measure, speaks_http2
from clientlab.conformance.h2_proxy import h2_proxy
from clientlab.conformance.scenario import Check, Scenario
from clientlab.conformance.server import CountingServer, counting_server
from clientlab.conformance.tls import CA_FILE, OTHER_CA, OTHER_NAME, SOUND, Relay, server_context, tls_relay
from clientlab.strategies import Strategy
from clientlab.workload.workload import Workload

GOOD = 4
"""Requests that may arrive: all except one for each wrong certificate."""

_BAD = (OTHER_CA, OTHER_NAME)
_VERIFIED = "certificates verified"


@dataclass(frozen=True)
class Verified:
    """What was recorded, and what reached the server and the TLS relay in front of it."""

    evidence: Evidence
    server: CountingServer
    relay: Relay


def _do(strategy: Strategy) -> Verified:
    """The first connection meets a certificate of another CA, the second one of another name, others a correct one."""
    version = "h2" if speaks_http2(strategy) else "http/1.1"
    bad = [server_context(certificate, version) for certificate in _BAD]
    contexts = [*bad, *[server_context(SOUND, version)] * 2 * GOOD]  # twice: some open one ahead
    workload = Workload(path="/item/{k}", method="DELETE", requests=len(_BAD) + GOOD, concurrency=1, warmup=0)
    with counting_server() as server, contextlib.ExitStack() as stack:
        behind = server.port
        if speaks_http2(strategy):
            behind = stack.enter_context(h2_proxy(server.port)).plain
        relay = stack.enter_context(tls_relay(behind, contexts))
        found = measure(strategy, workload, relay.url, ca_file=CA_FILE)
        return Verified(found, server, relay)


def _nothing_sent(turn: int, whose: str, found: Verified) -> str:
    sent = found.relay.passed[turn]
    return f"{sent} bytes were sent to a server with a certificate {whose}" if sent else ""


def _refused(found: Verified) -> str:
    kinds = Counter(found.evidence.kinds.values())
    if kinds == {"tls": len(_BAD)}:
        return ""
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
    return f"two certificates do not fit, which are two errors of kind tls; recorded are: {told}"


def _arrived(found: Verified) -> str:
    targets = {seen.target for seen in found.server.seen}
    if len(targets) == len(found.server.seen) == GOOD:
        return ""
    return f"{GOOD} requests are to reach the server over TLS, once each; {len(found.server.seen)} did"


def _deleted(found: Verified) -> str:
    others = {seen.method for seen in found.server.seen} - {"DELETE"}
    return f"the method is DELETE, and {', '.join(sorted(others))} reached the server" if others else ""


def _counted(found: Verified) -> str:
    by_lab, accepted = found.evidence.outcome.connections_begun, found.relay.accepted
    return "" if by_lab == accepted else f"the lab counted {by_lab} connections over TLS, the server {accepted}"


def _kind(found: Verified, check: str) -> str | None:
    if check != _VERIFIED:
        return None
    return next(iter(found.evidence.kinds.values()), "none")


CHECKS: dict[str, Check[Verified]] = {
    "certificate of another CA": lambda found: _nothing_sent(0, "that another CA has signed", found),
    "certificate of another name": lambda found: _nothing_sent(1, "for another name", found),
    _VERIFIED: _refused,
    "requests over TLS": _arrived,
    "connections over TLS counted": _counted,
    "method DELETE": _deleted,
}

TLS = Scenario("tls", _do, CHECKS, kind=_kind)
