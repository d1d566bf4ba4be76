"""A listener on loopback, and a thread that accepts its connections."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator


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
