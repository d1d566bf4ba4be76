"""One direction of a connection through the link: what waits for its window, and what happens to its end.

Buffers are bounded. At most `READ_AHEAD` bytes and one read wait for the window; then the socket is no longer read, and
the peer's own kernel stops it. Bytes in flight are bounded by the window, and those of all connections together by
`MOST_HELD` (one_way). If the receiver does not read, nothing leaves any more, as with a receive window of 0, once
`UNREAD` bytes wait for it in this process.
"""

from __future__ import annotations

from asyncio import Transport
from collections import deque
from collections.abc import Callable

from clientlab.link.faults import Writer
from clientlab.link.one_way import OneWay

READ_AHEAD = 128 * 1024
UNREAD = 4 * 2**20
"""Bytes, as many as Linux's largest send buffer has by default (tcp_wmem)."""


class Flow:
    """One direction. Its user sets `source` and `target` while the sockets are open, and None afterwards.

    `arrived_end()` is called when the end of the bytes has arrived.
    """

    __slots__ = (
        "_arrived_end", "_blocked", "_clock", "_direction", "_ended", "_open", "_paused", "_size", "_stalled",
        "_untaken", "_waiting", "_window", "source", "target",
    )  # fmt: skip

    def __init__(self, direction: OneWay, clock: Callable[[], float], arrived_end: Callable[[], None]) -> None:
        self.source: Transport | None = None
        self.target: Transport | Writer | None = None
        self._direction = direction
        self._clock = clock
        self._arrived_end = arrived_end
        self._window = direction.new_window()
        self._waiting: deque[bytes | memoryview] = deque()
        self._size = 0  # of all that waits
        self._open = False  # from the end of the handshake on
        self._stalled = False  # the receiver does not read
        self._untaken = 0  # bytes that arrived while it did not
        self._blocked = False  # the window is full, and an alarm is set
        self._paused = False  # the source is not read
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Take bytes that were read from the source."""
        at_once = self._open and not (self._stalled or self._waiting)
        if at_once and self._direction.instant:
            if self.target is not None:
                self.target.write(data)
            return
        now, size = self._clock(), len(data)
        if at_once and size <= self._direction.at_once and size <= self._direction.room(self._window, now):
            # Most messages are small, and nothing waits: they need no queue.
            self._direction.held += size
            self._window.sent(size, self._direction.send(size, now, self._arrive, data))
            return
        self._waiting.append(data)
        self._size += size
        self._send(now)
        if self._size > READ_AHEAD and not self._paused and self.source is not None:
            self._paused = True
            self.source.pause_reading()

    def end(self) -> None:
        """Note that the source sends no more."""
        self._ended = True
        self._send(self._clock())

    def open(self, at: float) -> None:
        """Let bytes leave: the handshake is done."""
        self._open = True
        self._send(at)

    def stall(self) -> None:
        """Let no more bytes leave: the receiver does not read."""
        self._stalled = True

    def resume(self) -> None:
        """Let bytes leave again."""
        self._taken()
        self._send(self._clock())

    def drop(self) -> None:
        """Forget what waits: the connection was reset."""
        self._waiting.clear()
        self._size = 0
        self._open = False
        self._taken()

    def _send(self, at: float) -> None:
        """Let leave what handshake, receiver and window permit."""
        while self._waiting and self._open and not (self._stalled or self._blocked):
            most = self._direction.piece
            if not self._direction.instant:
                most = min(most, self._direction.room(self._window, at))
            if most > 0:
                self._send_piece(self._take(most), at)
            else:
                self._blocked = True
                self._direction.alarms.add(self._window.next_acknowledgement(), self._wake)
        self._go_on(at)

    def _go_on(self, at: float) -> None:
        """Read the source again if little waits, and let the end leave after the last byte."""
        if self._paused and self._size <= READ_AHEAD // 2 and self.source is not None:
            self._paused = False
            self.source.resume_reading()
        if self._ended and self._open and not self._waiting:
            self._ended = False  # sent once
            self._send_end(at)

    def _send_end(self, at: float) -> None:
        self._direction.send(0, at, self._arrive_end)

    def _send_piece(self, piece: bytes | memoryview, at: float) -> None:
        size = len(piece)
        self._direction.held += size
        left = self._direction.send(size, at, self._arrive, piece)
        if not self._direction.instant:
            self._window.sent(size, left)

    def _take(self, most: int) -> bytes | memoryview:
        """The next bytes, without a copy."""
        piece = self._waiting.popleft()
        if len(piece) > most:
            view = memoryview(piece)
            self._waiting.appendleft(view[most:])
            piece = view[:most]
        self._size -= len(piece)
        return piece

    def _wake(self, due: float, _: None) -> None:
        """Go on after an acknowledgement."""
        self._blocked = False
        self._send(due)

    def _arrive(self, _due: float, piece: bytes | memoryview) -> None:
        if self._stalled:
            self._untaken += len(piece)
        else:
            self._direction.held -= len(piece)
        if self.target is not None:
            self.target.write(piece)

    def _taken(self) -> None:
        """The receiver reads again, or never will."""
        self._stalled = False
        self._direction.held -= self._untaken
        self._untaken = 0

    def _arrive_end(self, _due: float, _nothing: None) -> None:
        if self.target is not None:
            self.target.write_eof()
        self._arrived_end()
