"""Connections through the link: sockets, flows, TCP's handshake, and the end.

The link does not read a socket while `READ_AHEAD` bytes wait for the window or the
bandwidth. Nothing leaves while `UNREAD` bytes wait for a receiver that does not read.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import cast

from clientlab.link.path import CongestionWindow, OneWay

READ_AHEAD = 128 * 2**10
UNREAD = 4 * 2**20  # the size of Linux's largest send buffer (tcp_wmem)
# Clients work for tens of milliseconds between `connect` and their first byte. Pools
# keep a connection that was opened ahead of its use for seconds. Between the two, a
# wrong guess costs one round trip in a second.
_OPENED_AHEAD = 1.0  # seconds of silence
HostPort = tuple[str, int]
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 s


class Flow:
    """One direction of a connection.

    `source`, `target` and `arrived_end` are set while their sockets are open.
    """

    def __init__(self, way: OneWay) -> None:
        self.way = way
        self.source: asyncio.Transport | None = None
        self.target: asyncio.Transport | None = None
        self.arrived_end: Callable[[], None] | None = None  # called after the last byte
        # The time of the source's first byte or end.
        self.first_sent: asyncio.Future[float] | None = None
        self._window = CongestionWindow(way.rtt)
        self._waiting: deque[bytes | memoryview] = deque()
        self._size = 0  # bytes that wait
        self._open = False  # the handshake is done, and the connection was not reset
        self._stalled = False  # the receiver does not read
        # An alarm is set for the next acknowledgement, or for the next turn.
        self._held = False
        self._paused = False  # the source is not read
        self._ended = False  # the source sends no more, but its end has not left yet

    def feed(self, data: bytes) -> None:
        way = self.way
        size = len(data)
        # Most messages are small and skip the queue.
        if self._open and not self._stalled and not self._waiting:
            if way.instant:
                self._arrive(0.0, data)
                return
            now = way.clock()
            fits = size <= way.piece and size <= self._window.room(now)
            if fits and not way.is_full(now):
                left = way.send(size, now, self._arrive, data)
                self._window.sent(size, left)
                return
        self._waiting.append(data)
        self._size += size
        self._send_new()
        if self._size > READ_AHEAD and not self._paused and self.source is not None:
            self._paused = True
            self.source.pause_reading()

    def end(self) -> None:
        self._ended = True
        self._send_new()

    def open(self, at: float, _: None = None) -> None:
        """Let bytes leave: the handshake is done."""
        self._open = True
        self._send(at)

    def stall(self) -> None:
        """Hold all bytes back: the receiver does not read."""
        self._stalled = True

    def resume(self) -> None:
        self._stalled = False
        self._send(self.way.clock())

    def drop(self) -> None:
        """Forget the waiting bytes: the connection was reset."""
        self._waiting.clear()
        self._size = 0
        self._open = False
        if self.first_sent is not None:
            self.first_sent.cancel()

    def _send_new(self) -> None:
        """Send what has just come from the source, and note when it was the first."""
        now = self.way.clock()
        if self.first_sent is not None and not self.first_sent.done():
            self.first_sent.set_result(now)
        self._send(now)

    def _send(self, at: float) -> None:
        """Send what handshake, receiver, window and bandwidth permit.

        Read the source again if few bytes wait.
        """
        while self._waiting and self._open and not (self._stalled or self._held):
            room = self._window.room(at)
            if room <= 0:
                acknowledged, _ = self._window.in_flight[0]
                self._hold(acknowledged)
            elif self.way.is_full(at):
                self._hold(self.way.next_turn())
            else:
                self._send_piece(at, min(self.way.piece, room))
        if self._paused and self._size <= READ_AHEAD // 2 and self.source is not None:
            self._paused = False
            self.source.resume_reading()
        if self._ended and self._open and not self._waiting:
            self._ended = False
            self.way.send(0, at, self._arrive_end)

    def _send_piece(self, at: float, most: int) -> None:
        piece = self._waiting.popleft()
        if len(piece) > most:
            self._waiting.appendleft(memoryview(piece)[most:])
            piece = memoryview(piece)[:most]
        self._size -= len(piece)
        left = self.way.send(len(piece), at, self._arrive, piece)
        self._window.sent(len(piece), left)

    def _hold(self, until: float) -> None:
        self._held = True
        self.way.add_alarm(until, self._go_on)

    def _go_on(self, due: float, _: None) -> None:
        self._held = False
        self._send(due)

    def _arrive(self, _due: float, piece: bytes | memoryview) -> None:
        if self.target is not None:
            self.target.write(piece)

    def _arrive_end(self, _due: float, _: None) -> None:
        if self.arrived_end is not None:
            self.arrived_end()


class Side(asyncio.Protocol):
    """One of the two sockets of a connection.

    `reads`: the flow of received bytes; `writes`: of sent bytes.
    """

    def __init__(self, reads: Flow, writes: Flow) -> None:
        self.reads = reads
        self._writes = writes
        # The flows' own methods save a call per read.
        self.data_received = reads.feed  # type: ignore[method-assign]
        self.pause_writing = writes.stall  # type: ignore[method-assign]
        self.resume_writing = writes.resume  # type: ignore[method-assign]
        self.other: Side | None = None
        # The loop itself holds no reference.
        self.handshake: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._ends_left = 2  # directions that have not ended
        self._reset_at_once = False
        self._closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        opened = cast("asyncio.Transport", transport)
        opened.set_write_buffer_limits(UNREAD, UNREAD // 2)
        self._transport = self.reads.source = self._writes.target = opened
        self._writes.arrived_end = self._write_end
        if self._reset_at_once:
            self.reset()

    def eof_received(self) -> bool:
        self._ends_left -= 1
        self._closing = not self._ends_left
        self.reads.end()
        return not self._closing  # otherwise, the transport closes itself

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Forget the socket. A reset crosses the link to the other socket."""
        self._transport = self.reads.source = self._writes.target = None
        self._writes.arrived_end = None
        self._writes.drop()
        if not self._closing:
            self.reads.drop()
            if self.other is not None:
                way = self.reads.way
                way.send(0, way.clock(), self.other.reset)
        self.other = None

    def reset(self, _due: float = 0.0, _: None = None) -> None:
        """Close with a reset, and drop unsent bytes."""
        self._reset_at_once = True  # in case it is still being connected
        if self._transport is not None:
            self._closing = True
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._transport.abort()

    def _write_end(self) -> None:
        self._ends_left -= 1
        if self._transport is not None:
            self._transport.write_eof()
            if not self._ends_left:
                self._closing = True
                self._transport.close()


def accept(up: OneWay, down: OneWay, target: HostPort) -> Side:
    """Return the protocol for a client's new connection.

    It begins the handshake with the target.
    """
    to_target = Flow(up)
    to_client = Flow(down)
    client = Side(to_target, to_client)
    upstream = Side(to_client, to_target)
    client.other = upstream
    upstream.other = client
    loop = asyncio.get_running_loop()
    first_sent = loop.create_future()
    to_target.first_sent = first_sent
    handshake = _shake_hands(client, upstream, target, up.clock(), first_sent)
    client.handshake = loop.create_task(handshake)
    return client


async def _shake_hands(
    client: Side,
    upstream: Side,
    target: HostPort,
    accepted: float,
    first_sent: asyncio.Future[float],
) -> None:
    """Connect to the target when the SYN arrives, and let bytes leave.

    They leave when they would over a network. There, `connect` takes a round trip, and
    the client works on its first bytes after it. Here, `connect` returns at once, so
    the first bytes wait for the SYN-ACK, and then for as long as the client's work
    took.
    """
    up = client.reads.way
    down = upstream.reads.way
    syn = await _cross(up, accepted)
    syn_ack = _cross(down, syn)
    try:
        await asyncio.get_running_loop().create_connection(lambda: upstream, *target)
    except OSError as error:
        if error.errno != errno.ECONNREFUSED:
            sys.stderr.write(f"no connection to {target}: {error}\n")
        client.reset(await syn_ack)
        return
    connected = up.clock()
    answered = await syn_ack
    ack = max(answered, connected)
    up.send(0, ack, upstream.reads.open)  # a server that sends first waits for the ACK
    sent = await first_sent
    work = sent - accepted
    if work >= _OPENED_AHEAD:
        work = 0.0
    leaves = max(answered + work, connected, sent)
    up.add_alarm(leaves, client.reads.open)


def _cross(way: OneWay, at: float) -> asyncio.Future[float]:
    """Return when a packet without payload arrives that leaves at `at`."""
    arrival: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    way.send(0, at, lambda due, _: arrival.set_result(due))
    return arrival
