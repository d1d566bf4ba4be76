"""Bounds of the service's connections: how many there are, and how long a client may take for each phase of a request.

uvicorn has a time limit for idle connections only. Without more, a client that sends half a request holds a connection
for ever, and a thousand of them take all file descriptors. A connection counts once its first request head is complete
(see `entrance`).

If there are too many connections, those go first that have not sent a whole request, the oldest before the others. A
health check sends its request at once, and a worker's connection that has shown the token is never dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import resource
import socket
import struct
import time
from enum import Enum
from typing import Any, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 4096
"""Of one service. A thousand workers have two each; browsers and Prometheus have a few."""

_OPEN_FILES = 4 * MOST_CONNECTIONS
"""Connections take half of them at most, and those that are not in yet a fourth."""

MOST_BUFFERED = 64 << 20
"""Bytes of answers that clients have not taken, over all connections."""

_MOST_DISCARDED = 4 << 20
_SUMMARY_SECONDS = 10.0
_SHARE_DROPPED = 8  # an eighth at once: to look for the oldest one anew for each connection would take too long

_log = logging.getLogger("clientlab.service.connections")


class Phase(Enum):
    """What a connection waits for, in the order in which connections are dropped, and the seconds that it may take."""

    HEAD = (0, 5.0)  # a whole request line with its headers
    UNREAD = (1, 2.0)  # the rest of a request that was answered before its end
    ANSWER = (2, 30.0)  # the client to take the answer
    BODY = (3, 15.0)  # the rest of a request; the application's own limit is shorter, and answers
    WORK = (4, math.inf)  # the application, which may keep a worker waiting for its assignment

    def __init__(self, rank: int, seconds: float) -> None:
        self.rank = rank
        self.seconds = seconds


_RESET = struct.pack("ii", 1, 0)  # linger for no second: close with a reset (socket(7))
_OF_REQUEST = (Phase.BODY, Phase.WORK, Phase.ANSWER)


def raise_open_files() -> None:
    """Let this process open more files, if the system permits. The default limit of many systems is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # macOS permits less than it states
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Connections:
    """The open connections of a service. `crowded`: those that were dropped for lack of room; `late`: as too slow."""

    def __init__(self) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, soft // 2))
        self._open: dict[BoundedProtocol, None] = {}
        self.crowded = self.late = 0
        self._summed_up = -math.inf

    def __len__(self) -> int:
        return len(self._open)

    def protocol(self) -> type[BoundedProtocol]:
        """The class of their protocol, for uvicorn."""
        return type("Protocol", (BoundedProtocol,), {"bounds": self})

    def add(self, connection: BoundedProtocol) -> None:
        """Keep a new connection, and drop others where there are too many."""
        self._open[connection] = None
        if len(self._open) <= self._most:
            return
        now = time.monotonic()
        ranked = [(*other.place(now), other) for other in self._open if other is not connection]
        found = sorted((one for one in ranked if one[0] < math.inf), key=lambda one: one[:2])
        lowest = [other for rank, _, other in found if rank == found[0][0]][: max(1, self._most // _SHARE_DROPPED)]
        for other in lowest or [connection]:
            self.crowded += 1
            other.drop()

    def discard(self, connection: BoundedProtocol) -> None:
        """Forget a connection that has ended."""
        self._open.pop(connection, None)

    def look(self) -> None:
        """Drop those that are too slow. To be called at least every second."""
        now, buffered = time.monotonic(), 0
        for connection in list(self._open):
            phase, since = connection.observed(now)
            waiting = connection.waiting_bytes()
            if now - since > phase.seconds or (buffered and buffered + waiting > MOST_BUFFERED):
                self.late += not connection.idle()
                connection.drop()
            else:
                buffered += waiting
        if (self.crowded or self.late) and now - self._summed_up >= _SUMMARY_SECONDS:
            self._sum_up(now)

    def _sum_up(self, now: float) -> None:
        """One line for all connections that were dropped since the last one: an attack must not fill the log."""
        line = "dropped %d connections for lack of room, and %d that took too long"
        _log.warning(line, self.crowded, self.late)
        self.crowded = self.late = 0
        self._summed_up = now


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol of one connection, with bounds. `Connections.protocol` makes its classes."""

    bounds: ClassVar[Connections]
    received = b""
    """What the client had sent before the connection was made."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = cast("asyncio.Transport", _Transport(transport, self))
        self._real = transport
        self._seen: tuple[Phase, object] = (Phase.HEAD, None)
        self._since = time.monotonic()
        self._half_closed = False
        self._discarded = 0
        self.bounds.add(self)
        asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        received, self.received = self.received, b""
        if received and not self._real.is_closing():
            self.data_received(received)

    def connection_lost(self, exc: Exception | None) -> None:
        self.bounds.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._half_closed:
            super().data_received(data)
            return
        self._discarded += len(data)
        if self._discarded > _MOST_DISCARDED:
            self.drop()

    def observed(self, now: float) -> tuple[Phase, float]:
        """The present phase, and when it was seen first (monotonic)."""
        seen = self._phase(), self.cycle
        if seen != self._seen:
            self._seen, self._since = seen, now
        return seen[0], self._since

    def place(self, now: float) -> tuple[float, float]:
        """The connection's place among those that may be dropped; an infinite one for a connection that stays."""
        phase, since = self.observed(now)
        trusted = phase in _OF_REQUEST and self.cycle is not None and is_trusted(self.scope)
        return math.inf if trusted else phase.rank, since

    def idle(self) -> bool:
        """Whether nothing was received of a request: browsers open connections that they may need."""
        return self._phase() is Phase.HEAD and not self.conn.trailing_data[0]

    def waiting_bytes(self) -> int:
        """Bytes of the answer that the client has not taken."""
        return self._real.get_write_buffer_size()

    def answered_early(self) -> bool:
        """Whether the answer is complete and the request is not."""
        return self.conn.their_state is h11.SEND_BODY and self.cycle is not None and self.cycle.response_complete

    def close(self) -> None:
        """Close the connection. If the client still sends, it has to be let: a reset would destroy the answer."""
        if self._half_closed or not self.answered_early():
            self._real.close()
        else:
            self._half_closed = True
            self._real.write_eof()
            self._real.resume_reading()

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._half_closed or self._real.is_closing()

    def drop(self) -> None:
        """Close the connection at once, whatever is lost."""
        self.bounds.discard(self)
        if self.waiting_bytes():  # else the kernel would keep what it has of the answer until the client takes it
            self._real.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._real.abort()

    def _phase(self) -> Phase:
        if self._half_closed:
            return Phase.UNREAD
        if self._real.get_write_buffer_size():
            return Phase.ANSWER
        if self.cycle is None or self.conn.their_state is h11.IDLE:
            return Phase.HEAD
        if self.cycle.response_complete:
            return Phase.UNREAD if self.answered_early() else Phase.HEAD
        return Phase.BODY if self.conn.their_state is h11.SEND_BODY else Phase.WORK


class _Transport:
    """A connection's transport whose end is the protocol's decision."""

    def __init__(self, transport: asyncio.Transport, protocol: BoundedProtocol) -> None:
        self._transport = transport
        self.close = protocol.close
        self.is_closing = protocol.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def trust(scope: Any) -> None:
    """Note that a request has shown the token: its connection is not dropped for the sake of others."""
    scope.setdefault("state", {})["trusted"] = True


def is_trusted(scope: Any) -> bool:
    """Whether a request has shown the token."""
    return bool(scope.get("state", {}).get("trusted"))
