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
        """Close the connection as it is: the default would send its end before a reset."""
        request.close()


@contextlib.contextmanager
def serving(serve: Serve) -> Iterator[tuple[str, int]]:
    """Call `serve` with each connection, which is closed afterwards. Yields the address."""

    def take(connection: socket.socket, *_: object) -> None:
        with contextlib.suppress(ConnectionError):  # a link that is stopped resets it
            connection.settimeout(PATIENCE)
            serve(connection)

    with _Server(("127.0.0.1", 0), take) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield server.server_address
        server.shutdown()


def answer(connection: socket.socket) -> None:
    """For each line with a number, send so many bytes; at the end of the lines, end too."""
    with connection.makefile("rb") as lines:
        for line in lines:
            connection.sendall(bytes(int(line)))


def connect(port: int) -> socket.socket:
    """A connection through the link."""
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def exchange(connection: socket.socket, size: int, began: float | None = None) -> float:
    """Ask for so many bytes. Seconds from now, or from `began`, until the last of them."""
    began = began or time.monotonic()
    connection.sendall(b"%d\n" % size)
    read(connection, size)
    return time.monotonic() - began


def first_exchange(port: int, size: int) -> float:
    """Ask for so many bytes on a new connection. Seconds from the connection's begin until the last of them.

    The link accepts while `connect` still runs. A client that was suspended then would miss a part of the handshake.
    """
    began = time.monotonic()
    with connect(port) as connection:
        return exchange(connection, size, began)


def read(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes."""
    found = bytearray()
    while len(found) < size:
        chunk = connection.recv(size - len(found))
        assert chunk, f"the connection ended after {len(found):,} of {size:,} bytes"
        found += chunk
    return bytes(found)
