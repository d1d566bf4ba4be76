"""The servers of a link, and its connections: the client's socket, the upstream's, TCP's handshake, and how one ends.

The kernel has finished the client's handshake with this process before the link can know of it. So `connect()` returns
at once, and the round trip of the handshake is paid by the first bytes. With t, the time at which the link accepted,
and rtt, the round-trip time:

    t + rtt / 2      the SYN arrives: the link connects to the upstream
    t + rtt          the SYN-ACK is back: the client's bytes may leave (and arrive at t + 1.5 rtt)
    t + 1.5 rtt      the ACK arrives: a server that sends first may do so (and is heard at t + 2 rtt)

A connection that was opened a round trip before it is used pays nothing later, as in a network.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
import weakref
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from clientlab.link.addresses import HostPort
from clientlab.link.agenda import Agenda, precise_timer
from clientlab.link.faults import BlackHole, FaultDraws, Refusing, ResetAfter, Slices, Writer, reset
from clientlab.link.flow import UNREAD, Flow
from clientlab.link.lossy_flow import flow_of
from clientlab.link.one_way import OneWay
from clientlab.workload.faults import WantedFault
from clientlab.workload.link import Link


@dataclass(frozen=True)
class Directions:
    """What all connections of a link share: its two directions, and the clock."""

    up: OneWay
    down: OneWay
    agenda: Agenda
    faults: FaultDraws | None = None

    @classmethod
    def of(cls, link: Link, agenda: Agenda) -> Directions:
        """Both directions have the link's round-trip time and bandwidth."""
        up, down = (OneWay(agenda, link.rtt, link.bandwidth, link.buffer) for _ in range(2))
        return cls(up, down, agenda, None if link.faults is None else FaultDraws(link.faults))


class RelayedConnection:
    """One connection. `client` is the protocol of the accepted socket; both sides are None once they are closed."""

    def __init__(self, directions: Directions, target: HostPort, fault: WantedFault | None = None) -> None:
        clock = directions.agenda.clock
        up, down = (flow_of(way, clock, self._arrived_end) for way in (directions.up, directions.down))
        self.client: Side | None = Side(self, reads=up, writes=down, fault=fault)
        self._upstream: Side | None = Side(self, reads=down, writes=up)
        self._directions = directions
        self._target = target
        self._answered = self._connected = False
        self._flows_to_end = 2
        self._connecting: asyncio.Task[None] | None = None  # the loop itself holds no reference

    def opened(self, side: Side) -> None:
        """Go on with the handshake: the client was accepted, or the upstream is connected."""
        now = self._directions.agenda.clock()
        if side is self.client:
            self._directions.up.send(0, now, self._syn_arrives)
            return
        self._connected = True
        if self._answered:  # the upstream took longer than half a round trip
            self._establish(now)

    def reset(self) -> None:
        """Reset both sockets, as in an outage."""
        for side in (self.client, self._upstream):
            if side is not None:
                side.reset()

    def was_reset(self, side: Side) -> None:
        """Reset the other socket too, once the reset of this one has crossed the link."""
        now = self._directions.agenda.clock()
        if side is self.client and self._upstream is not None:
            self._directions.up.send(0, now, self._upstream.reset)
        elif side is self._upstream and self.client is not None:
            self._directions.down.send(0, now, self.client.reset)

    def closed(self, side: Side) -> None:
        """Let go of a closed socket, so that reference counts free the connection."""
        if side is self.client:
            self.client = None
        else:
            self._upstream = None

    def _syn_arrives(self, due: float, _: None) -> None:
        self._connecting = asyncio.ensure_future(self._connect(due))
        self._directions.down.send(0, due, self._syn_ack_arrives)

    def _syn_ack_arrives(self, due: float, _: None) -> None:
        self._answered = True
        if self._connected:
            self._establish(due)

    def _establish(self, at: float) -> None:
        if self.client is not None:
            self.client.reads.open(at)
        self._directions.up.send(0, at, self._ack_arrives)

    def _ack_arrives(self, due: float, _: None) -> None:
        if self._upstream is not None:
            self._upstream.reads.open(due)

    async def _connect(self, began: float) -> None:
        """Connect to the upstream. If that fails, reset the client when a refusal would have arrived there."""
        side, (host, port) = self._upstream, self._target
        if side is None:
            return
        try:
            await asyncio.get_running_loop().create_connection(lambda: side, host, port)
        except OSError as error:
            if not isinstance(error, ConnectionRefusedError):
                sys.stderr.write(f"no connection to {host}:{port}: {error}\n")
            self._upstream = None
            if self.client is not None:
                self._directions.down.send(0, began, self.client.reset)

    def _arrived_end(self) -> None:
        """Close both sockets once the last byte of both directions has arrived."""
        self._flows_to_end -= 1
        if not self._flows_to_end:
            for side in (self.client, self._upstream):
                if side is not None:
                    side.close()


class Side(asyncio.Protocol):
    """One socket. `reads`: the flow of the bytes that it receives; `writes`: of those that it sends."""

    def __init__(
        self, connection: RelayedConnection, reads: Flow, writes: Flow, fault: WantedFault | None = None
    ) -> None:
        self.reads = reads
        self._fault = fault
        self._slices: Slices | None = None
        self.data_received = reads.feed  # type: ignore[method-assign] # one call less for each read
        self._connection = connection
        self._writes = writes
        self._transport: asyncio.Transport | None = None
        self._reset_at_once = self._closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(UNREAD, UNREAD // 2)
        self.reads.source = self._writes.target = self._transport
        if self._fault is not None:
            self._writes.target = self._faulty(self._transport, self._fault)
        if self._reset_at_once:
            self.reset()
        else:
            self._connection.opened(self)

    def eof_received(self) -> bool:
        """Keep the socket open for the other direction."""
        self.reads.end()
        return True

    def pause_writing(self) -> None:
        self._writes.stall()

    def resume_writing(self) -> None:
        self._writes.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class names it
        self._transport = self.reads.source = self._writes.target = None
        self.reads.drop()
        self._writes.drop()
        if not self._closing:
            self._connection.was_reset(self)
        self._connection.closed(self)

    def close(self) -> None:
        """Close, after all that was written."""
        self._closing = True
        if self._slices is not None and self._transport is not None:
            self._slices.afterwards(self._transport.close)
        elif self._transport is not None:
            self._transport.close()

    def _faulty(self, transport: asyncio.Transport, fault: WantedFault) -> Writer:
        if fault.kind.name == "reset-after":
            return ResetAfter(transport, fault)
        self._slices = Slices(transport, fault)
        return self._slices

    def reset(self, _due: float = 0.0, _: None = None) -> None:
        """Close with a reset, and forget what was written."""
        if self._transport is None:
            self._reset_at_once = True  # it is still being connected, or is closed already
            return
        self._closing = True
        reset(self._transport)


_BACKLOG = 65_535
"""Connections that may wait to be accepted, if the system permits so many (net.core.somaxconn)."""


@dataclass(frozen=True)
class Forward:
    """Connections to `listener`, a bound socket, lead to `target`."""

    listener: socket.socket
    target: HostPort


@contextlib.asynccontextmanager
async def serving(link: Link, forwards: Sequence[Forward]) -> AsyncIterator[Directions]:
    """Accept connections, which share the directions. The listeners are closed in the end."""
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        timer = stack.enter_context(contextlib.closing(precise_timer(loop)))
        agenda = Agenda(time.monotonic, timer.set)
        timer.start(agenda.run)
        directions = Directions.of(link, agenda)
        servers = [_Listening(forward, directions) for forward in forwards]
        for server in servers:
            await server.open(forward_socket=True)
            stack.callback(server.close)
        if directions.faults is not None:
            directions.faults.outages = _Servers(servers)
        yield directions


class _Listening:
    """A listener and its connections. They are known only if the link makes faults, because an outage resets them."""

    def __init__(self, forward: Forward, directions: Directions) -> None:
        self._forward, self._directions = forward, directions
        self._address = forward.listener.getsockname()
        self._holder: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._connections = weakref.WeakSet[RelayedConnection]()

    async def open(self, *, forward_socket: bool = False) -> None:
        """Accept connections."""
        if forward_socket:
            listener = self._forward.listener
            if self._directions.faults is not None:
                self._holder = _bound(listener.family, self._address)  # keeps the port while nothing listens
        else:
            listener = _bound(self._forward.listener.family, self._address)
        accept = self._accept if self._directions.faults is None else self._draw
        self._server = await asyncio.get_running_loop().create_server(accept, sock=listener, backlog=_BACKLOG)

    def close(self) -> None:
        """Accept none, so that the kernel refuses them."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def reset(self) -> None:
        """Reset all connections."""
        for connection in list(self._connections):
            connection.reset()

    @property
    def is_open(self) -> bool:
        return self._server is not None

    def _accept(self) -> asyncio.Protocol:
        return _client_of(RelayedConnection(self._directions, self._forward.target))

    def _draw(self) -> asyncio.Protocol:
        fault = None if self._directions.faults is None else self._directions.faults.next()
        if fault is not None and fault.kind.name in _WITHOUT_UPSTREAM:
            return _WITHOUT_UPSTREAM[fault.kind.name]()
        connection = RelayedConnection(self._directions, self._forward.target, fault)
        self._connections.add(connection)
        return _client_of(connection)


_WITHOUT_UPSTREAM: dict[str, type[asyncio.Protocol]] = {"refuse": Refusing, "blackhole": BlackHole}


class _Servers:
    """All listeners of a link, in an outage or not."""

    def __init__(self, servers: Sequence[_Listening]) -> None:
        self._servers = servers
        self._opening: list[asyncio.Task[None]] = []

    def down(self) -> None:
        for server in self._servers:
            server.close()
            server.reset()

    def up(self) -> None:
        closed = [server for server in self._servers if not server.is_open]
        self._opening = [asyncio.ensure_future(server.open()) for server in closed]


def _bound(family: int, address: Any) -> socket.socket:
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(address)
    return found


def _client_of(connection: RelayedConnection) -> Side:
    assert connection.client is not None  # noqa: S101 - it was just made
    return connection.client
