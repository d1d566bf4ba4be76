"""Streams of events on Flask: a generator that a thread of the server waits in."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mockupstream.ledger import Ledger
    from mockupstream.streams import EventStream

_LOOK = 1.0
"""Seconds after which a stream that waits for its next moment looks whether its client is still there."""


class EventBody:
    """The body of one stream. The server writes each piece in a chunk of its own."""

    def __init__(self, stream: EventStream, read: float, ledger: Ledger, connection: socket.socket) -> None:
        """Take the connection on which the server answers. The request was read at `read`."""
        self._stream = stream
        self._read = read
        self._ledger = ledger
        self._connection = connection
        self._left = True
        # Not all servers do so: without it, an event would wait until the client has acknowledged the one before.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ledger.stream_opened()

    def __iter__(self) -> Iterator[bytes]:
        """Yield pieces, each when its moment has come; none after the client has left."""
        yield b""  # the server sends the head with the first piece, and an empty one sends nothing else
        stream, due = self._stream, self._read
        for number, due in enumerate(stream.moments(self._read)):
            if not self._reached(due):
                return
            nanoseconds = time.monotonic_ns()
            late = max(0.0, nanoseconds / 1e9 - due)
            event = stream.format.piece(number, nanoseconds, late)
            yield event
            self._ledger.event(late, len(event))
            if stream.pings_after(number):
                yield self._counted(stream.format.ping)
        if stream.end is None:
            self._hold()
        yield self._counted(stream.format.closing)
        pause = 0.0 if stream.end is None else stream.end.draw(stream.source)
        self._left = bool(pause) and not self._reached(due + pause)

    def close(self) -> None:
        """Send what is held, and count the stream's end. The server calls it in any case, as WSGI promises."""
        if self._stream.end is None:
            self._hold(held=False)
        self._ledger.stream_closed(left=self._left)
        self._ledger.end()

    def _reached(self, moment: float) -> bool:
        """Wait until `moment`. Return False, perhaps earlier, if the client has left."""
        while (left := moment - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK))
            if left > _LOOK and self._client_left():
                return False
        return not self._client_left()

    def _client_left(self) -> bool:
        try:
            return not self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:  # nothing has arrived
            return False
        except OSError:
            return True

    def _hold(self, *, held: bool = True) -> None:
        """Have the kernel hold what is written, so that the server's last chunk goes out with the closing events.

        Only Linux can. Elsewhere the last chunk comes at once behind them.
        """
        if hasattr(socket, "TCP_CORK") and self._connection.fileno() >= 0:
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, held)

    def _counted(self, data: bytes) -> bytes:
        self._ledger.sent(len(data))
        return data
