"""A server for tests of the link: raw sockets, a thread for each connection."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator

PATIENCE = 30.0

Serve = Callable[[socket.socket], None]


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def shutdown_request(self, request: socket.socket) -> None:
        """Only close the connection. The default would send its end before a reset."""
        request.close()


@contextlib.contextmanager
def serving(serve: Serve) -> Iterator[tuple[str, int]]:
    """Call `serve` with each connection, then close it. Yield the address."""

    def take(connection: socket.socket, *_: object) -> None:
        with contextlib.suppress(ConnectionError):  # a link that is stopped resets it
            connection.settimeout(PATIENCE)
            serve(connection)

    with _Server(("127.0.0.1", 0), take) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield server.server_address
        server.shutdown()


def answer(connection: socket.socket) -> None:
    """For each line with a number, send that many bytes. End with the last line."""
    with connection.makefile("rb") as lines:
        for line in lines:
            connection.sendall(bytes(int(line)))


def connect(port: int) -> socket.socket:
    """Return a connection through the link."""
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def exchange(connection: socket.socket, size: int, began: float | None = None) -> float:
    """Ask for `size` bytes.

    Return the seconds from now, or from `began`, until the last one arrives.
    """
    began = began or time.monotonic()
    connection.sendall(b"%d\n" % size)
    read(connection, size)
    return time.monotonic() - began


def first_exchange(port: int, size: int) -> float:
    """Ask for `size` bytes on a new connection.

    Return the seconds from its beginning until the last byte arrives.

    The link accepts while `connect` still runs, so a client that is suspended meanwhile
    would miss a part of the time.
    """
    began = time.monotonic()
    with connect(port) as connection:
        return exchange(connection, size, began)


def read(connection: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes."""
    found = bytearray()
    while len(found) < size:
        chunk = connection.recv(size - len(found))
        assert chunk, f"the connection ended after {len(found):,} of {size:,} bytes"
        found += chunk
    return bytes(found)
