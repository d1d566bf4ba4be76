"""A server on raw sockets that shares no code with the lab. It records each request as it came."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO


@contextlib.contextmanager
def accepting(take: Callable[[socket.socket], None]) -> Iterator[int]:
    """A free port of loopback. `take` is called with each connection, one after the other."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # closed below
            take(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


PATIENCE = 10.0
"""Seconds that the server waits for a client to close a silent connection."""


class Last(bytes):
    """An answer after which the server closes the connection, whatever the headers state."""

    __slots__ = ()


class Reset(Last):
    """An answer after which the server resets the connection (RST)."""

    __slots__ = ()


class Stall(Last):
    """The start of an answer. Nothing follows until the client closes the connection."""

    __slots__ = ()


@dataclass(frozen=True)
class Endless:
    """The start of an answer, then `block` again and again, every `pause` seconds, until the client closes.

    The server gives up after `PATIENCE`.
    """

    start: bytes
    block: bytes
    pause: float = 0.0


ServerAnswer = bytes | Endless | None
"""The raw bytes to send back; None closes the connection without an answer."""


@dataclass(frozen=True)
class Seen:
    """One request, as received."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class CountingServer:
    """What the server has received so far.

    `connections`: those that a request came on, `accepted`: all. `in_flight`: requests read and not yet answered,
    `most_in_flight`: at once. `let_go`: for each target whose answer stalled or had no end, the seconds from its
    request to the client's closing of the connection.
    """

    port: int = 0
    connections: int = 0
    accepted: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    seen: list[Seen] = field(default_factory=list)
    let_go: dict[str, float] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        """Forget everything except requests in flight."""
        self.connections = self.accepted = self.most_in_flight = 0
        self.seen = []
        self.let_go = {}


def ok(body: bytes = b'{"ok": true}', status: str = "200 OK") -> bytes:
    """A whole answer after which the connection stays open."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@contextlib.contextmanager
def counting_server(
    answer: Callable[[Seen], ServerAnswer] = lambda _: ok(),
    hold: float = 0.0,
) -> Iterator[CountingServer]:
    """A server on a free port of loopback that holds each request for `hold` seconds and then answers."""
    state = CountingServer()
    service = _Service(state, answer, hold)
    try:
        with accepting(service.take) as state.port:
            yield state
    finally:
        service.close()


class _Service:
    def __init__(self, state: CountingServer, answer: Callable[[Seen], ServerAnswer], hold: float) -> None:
        self._state = state
        self._answer = answer
        self._hold = hold
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

    def take(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._state.accepted += 1
            self._open.add(connection)
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(ConnectionError), connection:
            self._converse(connection)
        with self._lock:
            self._open.discard(connection)

    def _converse(self, connection: socket.socket) -> None:
        """Answer the requests of a connection until either side closes it."""
        number = None
        with connection.makefile("rb") as stream:
            while (request := _read(stream)) is not None:
                if number is None:
                    with self._lock:
                        self._state.connections += 1
                        number = self._state.connections
                seen, began = Seen(*request, connection=number), time.monotonic()
                answer = self._note(seen)
                if isinstance(answer, Endless):
                    _pour(connection, answer)
                elif isinstance(answer, Stall):
                    _stall(connection, answer)
                elif answer is not None:
                    connection.sendall(answer)
                if isinstance(answer, Stall | Endless):
                    self._state.let_go[seen.target] = time.monotonic() - began
                if isinstance(answer, Reset):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if answer is None or isinstance(answer, Last | Endless):
                    break

    def _note(self, seen: Seen) -> ServerAnswer:
        with self._lock:
            self._state.seen.append(seen)
            self._state.in_flight += 1
            self._state.most_in_flight = max(self._state.most_in_flight, self._state.in_flight)
        if self._hold:
            time.sleep(self._hold)  # the server's work, not a wait for a condition
        answer = self._answer(seen)
        with self._lock:
            # Before the answer is out: the client may send its next at once.
            self._state.in_flight -= 1
        return answer


def _pour(connection: socket.socket, answer: Endless) -> None:
    """Send an answer without an end until the client closes the connection, or for `PATIENCE`."""
    connection.settimeout(PATIENCE)
    until = time.monotonic() + PATIENCE
    with contextlib.suppress(OSError):  # closed by the client, or out of patience
        connection.sendall(answer.start)
        while time.monotonic() < until:
            connection.sendall(answer.block)
            time.sleep(answer.pause)


def _stall(connection: socket.socket, answer: bytes) -> None:
    """Send the start of an answer, and wait until the client closes the connection, or for `PATIENCE`."""
    connection.settimeout(PATIENCE)
    with contextlib.suppress(OSError):  # reset by the client, or out of patience
        connection.sendall(answer)
        while connection.recv(65536):
            continue


def _read(stream: BinaryIO) -> tuple[str, str, dict[str, str], bytes] | None:
    line = stream.readline()
    if not line:
        return None
    method, target, _ = line.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (header := stream.readline()) not in (b"\r\n", b""):
        name, value = (part.strip() for part in header.decode("latin-1").split(":", 1))
        known = headers.get(name.lower())
        headers[name.lower()] = value if known is None else f"{known}, {value}"  # as RFC 9110 joins repeated ones
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return method, target, headers, b"".join(_chunks(stream))
    return method, target, headers, stream.read(int(headers.get("content-length", 0)))


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while size := int(stream.readline().split(b";")[0], 16):
        yield stream.read(size)
        stream.readline()
    stream.readline()
