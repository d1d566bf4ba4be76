"""The drill of TLS: certificates that do not fit are errors, and nothing is sent to whoever shows them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from clientlab.conformance.drill import Check, Drill
from clientlab.conformance.evidence import Evidence, measure
from clientlab.conformance.server import CountingServer, counting_server
from clientlab.conformance.tls import CA_FILE, OTHER_CA, OTHER_NAME, SOUND, Relay, server_context, tls_relay
from clientlab.strategies import Strategy, client_row
from clientlab.workload import Workload

GOOD = 4
"""Requests that may arrive: as many as there are after one for each certificate that does not fit."""

_BAD = (OTHER_CA, OTHER_NAME)
_VERIFIED = "certificates verified"


@dataclass(frozen=True)
class Verified:
    """What was recorded, and what reached the server and the relay before it, which speaks TLS."""

    evidence: Evidence
    server: CountingServer
    relay: Relay

    @property
    def good(self) -> int:
        """Requests that are to arrive."""
        return (self.evidence.workload.requests or 0) - len(_BAD)


def _do(strategy: Strategy) -> Verified:
    """The first connection meets the certificate of another CA, the second that of another name, all others a good one.

    A client of HTTP/2 meets those two only: the other drills have it speak TLS.
    """
    good = GOOD if client_row(strategy.client).http == "1.1" else 0
    bad = [server_context(certificate) for certificate in _BAD]
    contexts = [*bad, *[server_context(SOUND)] * 2 * good]  # twice: some open one ahead
    workload = Workload(path="/item/{k}", method="DELETE", requests=len(_BAD) + good, concurrency=1, warmup=0)
    with counting_server() as server, tls_relay(server.port, contexts) as relay:
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
    if len(targets) == len(found.server.seen) == found.good:
        return ""
    return f"{found.good} requests are to reach the server over TLS, once each; {len(found.server.seen)} did"


def _deleted(found: Verified) -> str:
    others = {seen.method for seen in found.server.seen} - {"DELETE"}
    return f"the method is DELETE, and {', '.join(sorted(others))} reached the server" if others else ""


def _kind(found: Verified, check: str) -> str | None:
    if check != _VERIFIED:
        return None
    return next(iter(found.evidence.kinds.values()), "none")


CHECKS: dict[str, Check[Verified]] = {
    "certificate of another CA": lambda found: _nothing_sent(0, "that another CA has signed", found),
    "certificate of another name": lambda found: _nothing_sent(1, "for another name", found),
    _VERIFIED: _refused,
    "requests over TLS": _arrived,
    "method DELETE": _deleted,
}

TLS = Drill("tls", _do, CHECKS, kind=_kind)
