"""Certificates of a CA of the tests' own, and a server that finishes no handshake."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import trustme

from clientlab.conformance.server import accepting

_PATIENCE = 10.0


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _leave(_connection: socket.socket) -> None:
    """Closed by the caller."""


def _say_nothing(connection: socket.socket) -> None:
    connection.settimeout(_PATIENCE)
    while connection.recv(1 << 16):
        continue


def _speak_http(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    connection.shutdown(socket.SHUT_WR)
    _say_nothing(connection)


HANDSHAKE_FAULTS = {_reset: "connect", _leave: "connect", _say_nothing: "timeout-connect", _speak_http: "tls"}
"""What a server does when the client has begun to shake hands, and the kind of error that it makes."""


@contextlib.contextmanager
def handshake_faults() -> Iterator[list[int]]:
    """A server whose connections meet these faults in turn: its port, and how many connections it has had."""
    found = [0, 0]
    faults = itertools.cycle(HANDSHAKE_FAULTS)

    def take(connection: socket.socket) -> None:
        found[1] += 1
        with contextlib.suppress(OSError), connection:
            connection.recv(1 << 16)
            next(faults)(connection)

    with accepting(take) as found[0]:
        yield found


class Authority:
    """A CA of its own and its files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._ca = trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        self._ca.cert_pem.write_to_path(self.ca_file)
        self.certificate, self.key = folder / "server.pem", folder / "server.key"
        ours = self._ca.issue_cert("127.0.0.1", "localhost")
        ours.cert_chain_pems[0].write_to_path(self.certificate)
        ours.private_key_pem.write_to_path(self.key)

    def context(self, *names: str) -> ssl.SSLContext:
        """Of a server that shows a certificate for these names, and speaks HTTP/1.1."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names).configure_cert(context)
        context.set_alpn_protocols(["http/1.1"])
        return context
