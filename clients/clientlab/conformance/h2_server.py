"""A server of HTTP/2 on raw frames (RFC 9113) over TLS, for answers that no correct server sends."""

from __future__ import annotations

import contextlib
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from socket import socket
from typing import BinaryIO

from clientlab.conformance.server import Endless, Last, ServerAnswer, accepting, pour
from clientlab.conformance.tls import SOUND, server_context

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PADDED, PRIORITY = 8, 32

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

Paths = Callable[[bytes], str]
"""The path in a block of headers. It remembers the connection's earlier blocks."""


@dataclass
class H2Server:
    """What the server has received so far: its requests' paths; the seconds until a client left an endless answer."""

    port: int = 0
    seen: list[str] = field(default_factory=list)
    let_go: dict[str, float] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name: bytes, value: bytes) -> bytes:
    """A header field of fewer than 127 bytes each, literal and not indexed (RFC 7541, 6.2.2)."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


@contextlib.contextmanager
def h2_server(answer: Callable[[str, int], ServerAnswer], paths: Callable[[], Paths]) -> Iterator[H2Server]:
    """A server on a free port of loopback. `answer` returns the frames for a path on a stream.

    `paths` makes the reader of a connection's headers. After an answer that is `Last`, `Endless` or None, the server
    closes the connection.
    """
    state, context, held = H2Server(), server_context(SOUND, "h2"), set[socket]()

    def serve(connection: socket) -> None:
        with contextlib.suppress(OSError), connection, context.wrap_socket(connection, server_side=True) as client:
            held.add(client)
            _converse(client, answer, paths(), state)

    def take(connection: socket) -> None:
        threading.Thread(target=serve, args=(connection,), daemon=True).start()

    try:
        with accepting(take) as state.port:
            yield state
    finally:
        for client in held:
            with contextlib.suppress(OSError):
                client.shutdown(2)


def _converse(
    client: ssl.SSLSocket, answer: Callable[[str, int], ServerAnswer], path_of: Paths, state: H2Server
) -> None:
    client.sendall(frame(SETTINGS, 0, 0))
    with client.makefile("rb") as stream:
        if stream.read(len(_PREFACE)) != _PREFACE:
            return
        for number, block in _requests(stream, client):
            path, began = path_of(block), time.monotonic()
            state.seen.append(path)
            found = answer(path, number)
            if isinstance(found, Endless):
                pour(client, found)
                state.let_go[path] = time.monotonic() - began
            elif isinstance(found, bytes):
                client.sendall(found)
            if found is None or isinstance(found, Last | Endless):
                return


def _requests(stream: BinaryIO, client: ssl.SSLSocket) -> Iterator[tuple[int, bytes]]:
    """Stream and block of headers of each request. Settings are acknowledged; bodies are skipped."""
    block = b""
    while len(head := stream.read(9)) == 9:
        kind, flags, number = struct.unpack(">BBI", head[3:])
        payload = stream.read(int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK:
            client.sendall(frame(SETTINGS, ACK, 0))
        if kind in {HEADERS, CONTINUATION}:
            block += _fragment(flags, payload) if kind == HEADERS else payload
            if flags & END_HEADERS:
                yield number, block
                block = b""


def _fragment(flags: int, payload: bytes) -> bytes:
    """The block of a HEADERS frame without padding and priority."""
    if flags & PADDED:
        payload = payload[1 : len(payload) - payload[0]]
    return payload[5:] if flags & PRIORITY else payload
