"""TLS on raw sockets in front of a plain server, with a certificate of its own for each connection."""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clientlab.conformance.server import accepting

CERTIFICATES = Path(__file__).with_name("certificates")
"""Certificates of a CA and of servers, valid until 2120. The keys of the CAs were deleted."""

CA_FILE = str(CERTIFICATES / "ca.pem")
SOUND, OTHER_NAME, OTHER_CA = "server", "other-name", "other-ca"
"""A server's certificates: a correct one; one with another name; one of a CA that no client trusts."""


def server_context(certificate: str, version: str = "http/1.1") -> ssl.SSLContext:
    """The context of a server with one of these certificates, which offers this HTTP version."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{certificate}.pem")
    context.set_alpn_protocols([version])
    return context


@dataclass
class Relay:
    """What the relay has received so far.

    `resumed`: of each finished handshake, whether it resumed a session. `passed`: for each context, the bytes of
    clients that came through it.
    """

    passed: list[int]
    port: int = 0
    accepted: int = 0
    resumed: list[bool] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@contextlib.contextmanager
def tls_relay(behind: int, contexts: Sequence[ssl.SSLContext]) -> Iterator[Relay]:
    """A relay to the plain server at port `behind`. Connections use the contexts in turn."""
    relay = Relay([0] * len(contexts))
    turns = itertools.cycle(enumerate(contexts))

    def take(connection: socket.socket) -> None:
        relay.accepted += 1
        words = (relay, connection, *next(turns), behind)
        threading.Thread(target=_relay, args=words, daemon=True).start()

    with accepting(take) as relay.port:
        yield relay


def _relay(relay: Relay, connection: socket.socket, turn: int, context: ssl.SSLContext, behind: int) -> None:
    """One connection, until either side closes it. The other is then closed without close_notify."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError), connection, context.wrap_socket(connection, server_side=True) as client:
        relay.resumed.append(bool(client.session_reused))
        with socket.create_connection(("127.0.0.1", behind)) as server, selectors.DefaultSelector() as both:
            for side in (client, server):
                both.register(side, selectors.EVENT_READ)
            while True:
                readable = [client] if client.pending() else [key.fileobj for key, _ in both.select()]
                for source in (client, server):
                    if source not in readable:
                        continue
                    block = source.recv(1 << 16)
                    if not block:
                        return
                    if source is client:
                        relay.passed[turn] += len(block)
                    (server if source is client else client).sendall(block)
