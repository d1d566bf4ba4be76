"""A flow through a buffer that drops: how its sender finds a loss and sends the bytes again, in order for the receiver.

The bytes of a dropped segment stay with the link. Their sender finds the loss in one of two ways:

- by the acknowledgement of a segment that was sent later, which RFC 8985 (RACK) and RFC 6675 permit where nothing is
  reordered. That is one round trip, and the wait in the buffer, after that segment was sent.
- by a time-out (RFC 6298), if nothing that was sent later arrives: after the last round trip that was seen and 200 ms,
  Linux's least one, from the last acknowledgement on. It doubles with each further time-out.

Then the bytes are sent again, before all that waits. The receiver holds back what arrived after the gap until then: TCP
delivers bytes in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from clientlab.link.congestion_window import LEAST_VARIATION, SEGMENT
from clientlab.link.flow import Flow
from clientlab.link.one_way import OneWay


class _Dropped(NamedTuple):
    """Bytes that the buffer had no room for: `offset` in the stream, and the window's count when they were sent."""

    offset: int
    piece: bytes | memoryview
    sent_bytes: int


class LossyFlow(Flow):
    """One direction of a connection through a direction that has a buffer."""

    __slots__ = (
        "_again", "_all_acknowledged", "_backoff", "_early", "_end_at", "_expected", "_found", "_missing", "_next",
        "_round_trip", "_time_out_at",
    )  # fmt: skip

    def __init__(self, direction: OneWay, clock: Callable[[], float], arrived_end: Callable[[], None]) -> None:
        super().__init__(direction, clock, arrived_end)
        self._next = 0  # offset of the next new byte
        self._missing: list[_Dropped] = []  # nothing that was sent later is under way
        self._found: deque[list[_Dropped]] = deque()  # an acknowledgement under way will show their loss
        self._again: deque[tuple[int, bytes | memoryview]] = deque()  # to be sent again
        self._round_trip = direction.rtt  # the last one, with its wait in the buffer
        self._all_acknowledged = 0.0  # when all that is under way will be
        self._time_out_at = 0.0
        self._backoff = 1
        self._expected = 0  # offset of the next byte to deliver
        self._early: dict[int, bytes | memoryview] = {}  # arrived after a gap
        self._end_at: int | None = None  # offset of the end, once it has arrived

    def drop(self) -> None:
        """Forget what waits: the connection was reset."""
        super().drop()
        self._missing.clear()
        self._found.clear()
        self._again.clear()
        self._direction.held -= sum(map(len, self._early.values()))
        self._early.clear()

    def _send(self, at: float) -> None:
        """Let leave what may, unless an acknowledgement is awaited.

        If this process is late, many acknowledgements are due when bytes are read. Their alarms let bytes leave at the
        times at which they were due. All at once, they would be a burst that the buffer has no room for.
        """
        if self._blocked:
            self._go_on(at)
        else:
            self._leave(at)

    def _leave(self, at: float) -> None:
        """Let leave what handshake, receiver and window permit: first what was lost."""
        while self._open and not self._stalled and (self._again or self._waiting):
            room = self._direction.room(self._window, at)
            if room < self._least():
                self._await_acknowledgement()
                break
            most = min(self._direction.piece, room - room % SEGMENT or room)
            offset, piece = self._take_again(most) if self._again else self._take_new(most)
            self._transmit(offset, piece, at)
        self._go_on(at)

    def _least(self) -> int:
        """Bytes for which there has to be room: a segment, or all there is, so that none is sent in splinters."""
        return min(SEGMENT, len(self._again[0][1]) if self._again else self._size)

    def _await_acknowledgement(self) -> None:
        """Go on with the next one. Where none is under way, the time-out goes on."""
        if not self._blocked and not self._window.idle:
            self._blocked = True
            self._direction.alarms.add(self._window.next_acknowledgement(), self._wake)

    def _take_again(self, most: int) -> tuple[int, bytes | memoryview]:
        offset, piece = self._again.popleft()
        if len(piece) > most:
            view = memoryview(piece)
            self._again.appendleft((offset + most, view[most:]))
            piece = view[:most]
        return offset, piece

    def _take_new(self, most: int) -> tuple[int, bytes | memoryview]:
        offset, piece = self._next, self._take(most)
        self._next += len(piece)
        return offset, piece

    def _transmit(self, offset: int, piece: bytes | memoryview, at: float) -> None:
        """Send what the buffer accepts, and keep what it drops."""
        size = len(piece)
        accepted = self._direction.accepted(size, at)
        if accepted:
            self._pass(offset, piece if accepted == size else memoryview(piece)[:accepted], at)
        if accepted < size:
            self._window.dropped(size - accepted)
            if not self._missing:
                self._time_out_at = max(at, self._all_acknowledged)
                self._time_out_at += self._backoff * (self._round_trip + LEAST_VARIATION)
                self._direction.alarms.add(self._time_out_at, self._time_out)
            lost = memoryview(piece)[accepted:]
            self._missing.append(_Dropped(offset + accepted, lost, self._window.sent_bytes))

    def _pass(self, offset: int, piece: bytes | memoryview, at: float) -> None:
        """Send what was accepted. Its acknowledgement shows what was dropped before."""
        self._direction.held += len(piece)
        left = self._direction.send(len(piece), at, self._arrive_at, (offset, piece))
        self._window.sent(len(piece), left)
        self._note_acknowledgement(at, left)

    def _note_acknowledgement(self, at: float, left: float) -> None:
        self._all_acknowledged = left + self._direction.rtt
        self._round_trip = self._all_acknowledged - at
        self._backoff = 1
        if self._missing:
            self._found.append(self._missing)
            self._missing = []
            self._direction.alarms.add(self._all_acknowledged, self._find)

    def _find(self, due: float, _: None) -> None:
        """Send again what was dropped before a segment that is acknowledged now."""
        if not self._found:
            return  # the connection was reset
        lost = self._found.popleft()
        self._window.room(due)  # the acknowledgement itself
        self._window.lost(sum(len(one.piece) for one in lost), lost[-1].sent_bytes)
        self._again.extend((one.offset, one.piece) for one in lost)
        self._leave(due)

    def _time_out(self, due: float, _: None) -> None:
        """Send again what was dropped, if nothing that was sent later has shown its loss."""
        if not self._missing or due < self._time_out_at:
            return
        self._window.room(due)
        self._window.timed_out(sum(len(one.piece) for one in self._missing))
        self._backoff *= 2
        self._again.extend((one.offset, one.piece) for one in self._missing)
        self._missing = []
        self._leave(due)

    def _arrive_at(self, due: float, arrived: tuple[int, bytes | memoryview]) -> None:
        """Deliver bytes in order; hold back what arrives after a gap."""
        offset, piece = arrived
        if offset != self._expected:
            if self._open:
                self._early[offset] = piece
            else:
                self._direction.held -= len(piece)  # the connection was reset
            return
        while piece:
            self._expected += len(piece)
            self._arrive(due, piece)
            piece = self._early.pop(self._expected, b"")
        self._deliver_end(due)

    def _send_end(self, at: float) -> None:
        """The end is a segment too: its acknowledgement shows what was dropped before."""
        left = self._direction.send(0, at, self._end_arrives, self._next)
        self._note_acknowledgement(at, left)

    def _end_arrives(self, due: float, offset: int) -> None:
        self._end_at = offset
        self._deliver_end(due)

    def _deliver_end(self, due: float) -> None:
        if self._end_at == self._expected:
            self._end_at = None
            self._arrive_end(due, None)


def flow_of(direction: OneWay, clock: Callable[[], float], arrived_end: Callable[[], None]) -> Flow:
    """A flow through that direction: one that sends again what is dropped, if it has a buffer."""
    return (Flow if direction.buffer is None else LossyFlow)(direction, clock, arrived_end)
