"""A server for tests of the link: raw sockets, a thread for each connection."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

PATIENCE = 30.0

Serve = Callable[[socket.socket], None]


@contextlib.contextmanager
def serving(serve: Serve) -> Iterator[tuple[str, int]]:
    """Call `serve` with each connection, which is closed afterwards. Yields the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stopping = threading.Event()

        def take(connection: socket.socket) -> None:
            with connection, contextlib.suppress(ConnectionError):  # a link that is stopped resets it
                connection.settimeout(PATIENCE)
                serve(connection)

        def accept() -> None:
            while True:
                connection, _ = listener.accept()
                if stopping.is_set():
                    connection.close()
                    return
                threading.Thread(target=take, args=[connection], daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            stopping.set()
            socket.create_connection(listener.getsockname()).close()
            thread.join(PATIENCE)


def answer(connection: socket.socket) -> None:
    """For each line with a number, send so many bytes; at the end of the lines, end too."""
    with connection.makefile("rb") as lines:
        for line in lines:
            connection.sendall(bytes(int(line)))


def connect(port: int) -> socket.socket:
    """A connection through the link."""
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def exchange(connection: socket.socket, size: int) -> float:
    """Ask for so many bytes. Seconds until the last of them."""
    began = time.monotonic()
    ask(connection, size)
    return time.monotonic() - began


def first_exchange(port: int, size: int) -> float:
    """Ask for so many bytes on a new connection. Seconds from the connection's begin until the last of them.

    The link accepts while `connect` still runs. A client that was suspended then would miss a part of the handshake.
    """
    began = time.monotonic()
    with connect(port) as connection:
        ask(connection, size)
        return time.monotonic() - began


def ask(connection: socket.socket, size: int) -> None:
    """Ask for so many bytes, and read them."""
    connection.sendall(b"%d\n" % size)
    read(connection, size)


def read(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes."""
    found = bytearray()
    while len(found) < size:
        chunk = connection.recv(size - len(found))
        assert chunk, f"the connection ended after {len(found):,} of {size:,} bytes"
        found += chunk
    return bytes(found)


def reset(connection: socket.socket) -> None:
    """Close with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
