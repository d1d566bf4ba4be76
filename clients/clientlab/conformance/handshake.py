"""The scenario of a hostile TLS handshake: connection k gets the k-th answer to its ClientHello."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
from functools import partial

from clientlab.conformance.accepting import accepting
from clientlab.conformance.evidence import Evidence, measure
from clientlab.conformance.hostile import TIMEOUT, permitted
from clientlab.conformance.scenario import Check, Scenario
from clientlab.conformance.server import Reset
from clientlab.conformance.tls import CA_FILE
from clientlab.strategies import Strategy
from clientlab.workload.workload import Workload

_RECORD = b"\x16\x03\x03"  # a handshake record of TLS 1.2
_ANSWERS = {
    "TLS: garbage": bytes(range(1, 256)) * 8,
    "TLS: an answer of HTTP": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "TLS: an alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "TLS: a record of 16 KiB without meaning": _RECORD + struct.pack(">H", 16384) + bytes(16384),
    "TLS: half a record": _RECORD + b"\x40\x00" + bytes(10),
    "TLS: closed in the handshake": b"",
    "TLS: reset in the handshake": Reset(),
}
"""Name → the bytes after a ClientHello. The server then closes the connection."""

_KINDS = frozenset({"tls", "connect"})
_PATIENCE = 5.0


def _do(strategy: Strategy) -> Evidence:
    answers = itertools.chain(_ANSWERS.values(), itertools.repeat(b""))
    workload = Workload(path="/{k}", requests=len(_ANSWERS), concurrency=1, warmup=0, timeout=TIMEOUT)
    with accepting(lambda connection: _greet(connection, next(answers))) as port:
        return measure(strategy, workload, f"https://127.0.0.1:{port}", ca_file=CA_FILE)


def _greet(connection: socket.socket, answer: bytes) -> None:
    with contextlib.suppress(OSError), connection:
        connection.settimeout(_PATIENCE)
        connection.recv(1 << 16)
        connection.sendall(answer)
        if isinstance(answer, Reset):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _kind(found: Evidence, check: str) -> str | None:
    return found.kind(list(_ANSWERS).index(check)) if check in _ANSWERS else None


_CHECKS: dict[str, Check[Evidence]] = {name: partial(permitted, number, _KINDS) for number, name in enumerate(_ANSWERS)}

HANDSHAKE = Scenario("hostile TLS handshake", _do, _CHECKS, frozenset({"library"}), kind=_kind)
