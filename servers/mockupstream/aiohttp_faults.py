"""Faults on aiohttp: bytes written past the framework, and connections that end as a fault says."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    import asyncio

    from mockupstream.alarm import Alarm
    from mockupstream.fault_scripts import FaultScript

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 s
_LOOK_SECONDS = 0.05


class _WrittenFault(web.StreamResponse):
    """A response that was written already."""

    def __init__(self, *, kept: bool) -> None:
        super().__init__()
        self._kept = kept

    @property
    def keep_alive(self) -> bool:
        return self._kept

    async def prepare(self, request: web.BaseRequest) -> None:  # noqa: ARG002 - aiohttp's interface
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        pass


async def misbehave(request: web.Request, script: FaultScript, alarm: Alarm) -> web.StreamResponse:
    """Write the pieces, and end the connection. Raises ConnectionResetError where the client has left meanwhile."""
    due = time.monotonic()
    for piece in script.pieces:
        due += piece.pause
        while (now := time.monotonic()) < due:
            _transport(request)
            await alarm.until(min(due, now + _LOOK_SECONDS))
        _transport(request).write(piece.data)
    transport = _transport(request)
    if script.ending == "reset":
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()
    elif script.ending == "close":
        transport.close()
    return _WrittenFault(kept=script.ending == "keep")


def _transport(request: web.Request) -> asyncio.Transport:
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError
    return transport
