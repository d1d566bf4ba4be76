"""Faults of the link: which connection has which, and what becomes of it; and outages.

A connection is drawn when it is accepted, by its number since the beginning of a trial's measured part. Between trials,
and in their warm-up, the link makes no faults.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol, cast

from clientlab import units
from clientlab.workload.delays import seconds
from clientlab.workload.faults import Faults, WantedFault

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 s
SLICE_PAUSE = 1e-3
"""Seconds between two slices: nearer ones would be read together."""


class Outages(Protocol):
    """The servers of a link, which an outage takes down."""

    def down(self) -> None:
        """Refuse new connections, and reset those that are open."""

    def up(self) -> None:
        """Accept connections again."""


class FaultDraws:
    """The faults of a link, from `begin` on. `made`: how many it has made since its start, by kind."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._drawn: Callable[[int], WantedFault | None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._number = 0
        self.outages: Outages | None = None
        self.made = Counter[str]()

    def begin(self, seed: int | None) -> None:
        """Make the faults of this seed from now on; None: make none. Outages count their moments from now."""
        for timer in self._timers:
            timer.cancel()
        if self._timers and self.outages is not None:
            self.outages.up()
        self._timers.clear()
        self._number = 0
        self._drawn = None if seed is None else self._faults.of_connections(seed)
        for fault in () if seed is None else self._faults.each:
            if fault.kind.value == "outage":
                self._plan(fault)

    def next(self) -> WantedFault | None:
        """The fault of the connection that was just accepted. It counts as made."""
        if self._drawn is None:
            return None
        fault = self._drawn(self._number)
        self._number += 1
        if fault is not None:
            self.made[fault.kind.name] += 1
        return fault

    def _plan(self, fault: WantedFault) -> None:
        length, _, moment = fault.value.partition("@")
        loop, begins = asyncio.get_running_loop(), seconds(moment)
        self._timers += [
            loop.call_later(begins, self._down, fault.kind.name),
            loop.call_later(begins + seconds(length), self._up),
        ]

    def _down(self, kind: str) -> None:
        self.made[kind] += 1
        if self.outages is not None:
            self.outages.down()

    def _up(self) -> None:
        if self.outages is not None:
            self.outages.up()


class Refusing(asyncio.Protocol):
    """Resets its connection at once. The kernel has accepted it, so the client's attempt to connect has succeeded."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        reset(cast("asyncio.Transport", transport))


class BlackHole(asyncio.Protocol):
    """Takes all bytes and answers none, until the client closes the connection."""


class Writer(Protocol):
    """What a flow of the link needs of the socket that it writes to."""

    def write(self, data: bytes | memoryview) -> None: ...

    def write_eof(self) -> None: ...


class ResetAfter:
    """Writes so many bytes, and then resets the connection."""

    def __init__(self, transport: asyncio.Transport, fault: WantedFault) -> None:
        self._transport = transport
        self._left = units.bytes_of(fault.value, unit="B")

    def write(self, data: bytes | memoryview) -> None:
        self._transport.write(data[: self._left])
        self._left -= min(self._left, len(data))
        if not self._left:
            reset(self._transport)

    def write_eof(self) -> None:
        self._transport.write_eof()


class Slices:
    """Writes slices of so many bytes, with a pause between two of them. `idle()` is called when none waits."""

    def __init__(self, transport: asyncio.Transport, fault: WantedFault) -> None:
        self._transport = transport
        self._size = units.bytes_of(fault.value, unit="B")
        self._waiting: deque[bytes | memoryview] = deque()
        self._sleeps = False
        self._after: list[Callable[[], None]] = []

    def write(self, data: bytes | memoryview) -> None:
        self._waiting += [data[start : start + self._size] for start in range(0, len(data), self._size)]
        self._go_on()

    def write_eof(self) -> None:
        self.afterwards(self._transport.write_eof)

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do it when all slices were written."""
        self._after.append(action)
        self._go_on()

    def _go_on(self) -> None:
        if self._sleeps:
            return
        if self._waiting:
            self._sleeps = True
            self._transport.write(self._waiting.popleft())
            asyncio.get_running_loop().call_later(SLICE_PAUSE, self._wake)
            return
        while self._after:
            self._after.pop(0)()

    def _wake(self) -> None:
        self._sleeps = False
        if not self._transport.is_closing():
            self._go_on()


def reset(transport: asyncio.Transport) -> None:
    """Close with a reset, and forget what was written."""
    if not transport.is_closing():
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()
