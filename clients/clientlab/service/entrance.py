"""The entrance of the service: a connection gets in when the head of its first request is there.

A connection in uvicorn costs a tenth of a millisecond or two before a byte of it is read. Clients that send half a
request wait here, for a fraction of that, and are let go again by the thousand. Python's event loop is not left to
accept connections: without a file descriptor, it logs a failed `accept` up to a thousand times, and accepts nobody for
a second (CPython issue 151615).
"""

from __future__ import annotations

import asyncio
import re
import resource
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clientlab.service.connections import BoundedProtocol, Connections, Phase

MOST_WAITING = 2048
"""Connections that have not sent the head of a request, and others that have, and are not in yet: a thousand workers
may come at once."""

LISTEN_QUEUE = 4096
"""Connections that the kernel keeps until they are accepted. Beyond it, a client's attempt is repeated after 1 s."""

_ACCEPTED_AT_ONCE = 64
_ADMITTED_AT_ONCE = 8
"""In one turn of the event loop, so that those who are in are answered before others get in."""

_MOST_HEAD = 16 << 10
_BLOCK = 1 << 16
_PAUSE = 0.1
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_FIRST = (re.compile(rb"GET /healthz "), re.compile(rb"[^\0]*\nauthorization:", re.IGNORECASE))
"""Health checks, then workers with a token, right or wrong: they get in before others."""


@dataclass(eq=False)
class _Waiting:
    """A connection whose request has no whole head yet."""

    socket: socket.socket
    since: float
    received: bytearray = field(default_factory=bytearray)


class Entrance:
    """Accepts connections of some listening sockets in the running event loop.

    `protocol`: makes the protocol of one that gets in. `inside`: those that are in; it sums up who was dropped.
    """

    def __init__(
        self, listeners: Sequence[socket.socket], protocol: Callable[[], BoundedProtocol], inside: Connections
    ) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = MOST_WAITING if soft == resource.RLIM_INFINITY else max(1, min(MOST_WAITING, soft // 8))
        self._listeners = listeners
        self._protocol = protocol
        self._inside = inside
        self._waiting: dict[_Waiting, None] = {}  # the oldest first
        # Those with a head; the first queue goes first.
        self._queues: tuple[deque[_Waiting], ...] = tuple(deque() for _ in range(len(_FIRST) + 1))
        self._admissions: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def open(self) -> None:
        """Begin to accept."""
        for listener in self._listeners:
            listener.setblocking(False)
            listener.listen(LISTEN_QUEUE)
            self._loop.add_reader(listener, self._accept, listener)

    def close(self) -> None:
        """Stop accepting connections, and close those whose request head is incomplete."""
        for listener in self._listeners:
            self._loop.remove_reader(listener)
        for waiting in list(self._waiting):
            self._drop(waiting)
        for one in self._queues:
            while one:
                one.popleft().socket.close()

    def look(self) -> None:
        """Close connections whose request head has taken too long."""
        latest = time.monotonic() - Phase.HEAD.seconds
        for waiting in list(self._waiting):
            if waiting.since > latest:
                return
            self._inside.late += bool(waiting.received)  # browsers open connections that they may need
            self._drop(waiting)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _address = listener.accept()
            except ConnectionAbortedError:
                continue
            except BlockingIOError:
                return
            except OSError:  # no file descriptor is left
                self._pause(listener)
                return
            accepted.setblocking(False)
            waiting = _Waiting(accepted, time.monotonic())
            if not self._read(waiting):
                self._keep(waiting)

    def _pause(self, listener: socket.socket) -> None:
        """Drop the oldest one, and accept others in a moment."""
        self._make_room()
        self._loop.remove_reader(listener)
        self._loop.call_later(_PAUSE, self._resume, listener)

    def _resume(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0:  # else the service has ended meanwhile
            self._loop.add_reader(listener, self._accept, listener)

    def _keep(self, waiting: _Waiting) -> None:
        if len(self._waiting) >= self._most:
            self._make_room()
        self._waiting[waiting] = None
        self._loop.add_reader(waiting.socket, self._go_on, waiting)

    def _make_room(self) -> None:
        if oldest := next(iter(self._waiting), None):
            self._inside.crowded += 1
            self._drop(oldest)

    def _drop(self, waiting: _Waiting) -> None:
        self._let_go(waiting)
        waiting.socket.close()

    def _let_go(self, waiting: _Waiting) -> None:
        del self._waiting[waiting]
        self._loop.remove_reader(waiting.socket)

    def _go_on(self, waiting: _Waiting) -> None:
        if waiting in self._waiting and self._read(waiting):  # else it was dropped in this turn
            del self._waiting[waiting]

    def _read(self, waiting: _Waiting) -> bool:
        """Read what is there; whether the connection need not wait any more: it gets in, or has ended."""
        try:
            block = waiting.socket.recv(_BLOCK)
        except BlockingIOError:
            return False
        except OSError:
            block = b""
        waiting.received += block
        too_long = len(waiting.received) > _MOST_HEAD  # uvicorn refuses it
        if block and not too_long and not _END_OF_HEAD.search(waiting.received):
            return False
        self._loop.remove_reader(waiting.socket)
        if not block:
            waiting.socket.close()
            return True
        self._enqueue(waiting)
        return True

    def _enqueue(self, waiting: _Waiting) -> None:
        if not any(self._queues):
            self._loop.call_soon(self._admit_some)
        matched = (index for index, pattern in enumerate(_FIRST) if pattern.match(waiting.received))
        wanted = self._queues[next(matched, len(_FIRST))]
        if len(wanted) >= self._most:
            self._inside.crowded += 1
            wanted.popleft().socket.close()
        wanted.append(waiting)

    def _admit_some(self) -> None:
        for _ in range(_ADMITTED_AT_ONCE):
            if not any(self._queues):
                return
            admission = self._loop.create_task(self._admit(next(filter(None, self._queues)).popleft()))
            self._admissions.add(admission)
            admission.add_done_callback(self._admissions.discard)
        if any(self._queues):
            self._loop.call_soon(self._admit_some)

    async def _admit(self, waiting: _Waiting) -> None:
        protocol = self._protocol()
        protocol.received = bytes(waiting.received)
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, waiting.socket)
        except OSError:  # the client has gone away
            waiting.socket.close()
