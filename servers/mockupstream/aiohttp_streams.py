"""Streams of events on aiohttp: each event is written straight to the connection when its moment comes.

No task wakes up for an event, only a function is called: all streams of a worker share one core, and a late event
makes the next ones late. aiohttp's own way, `await response.write(...)` in a task for each stream, took about a fifth
more CPU time for an event, most of which is the kernel's.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http import HttpVersion11

if TYPE_CHECKING:
    from mockupstream.alarm import Alarm
    from mockupstream.ledger import Ledger
    from mockupstream.streams import EventStream

_LOOK = 1.0
"""Seconds after which a stream that waits for its next moment looks whether its client is still there."""
_RETRY = 0.01
"""Seconds after which a stream tries again whose client has not read what was sent."""
_LAST_CHUNK = b"0\r\n\r\n"


class EventResponse(web.StreamResponse):
    """A response whose head aiohttp sends at once, and whose body an EventWriter sends to its very end."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the body has been ended."""


class EventWriter:
    """Writes the events of one stream into its connection."""

    def __init__(self, request: web.Request, stream: EventStream, alarm: Alarm, ledger: Ledger) -> None:
        """Take a request whose response's head was sent."""
        self._protocol = request.protocol
        self._chunked = request.version >= HttpVersion11 and not stream.sized
        self._stream = stream
        self._alarm = alarm
        self._ledger = ledger
        self._written = 0
        self._left = False

    async def run(self, read: float) -> None:
        """Return after the end of the body, or soon after the client has left. The request was read at `read`."""
        self._moments = self._stream.moments(read)
        self._due = next(self._moments)
        self._ended = asyncio.get_running_loop().create_future()
        self._ledger.stream_opened()
        try:
            self._sleep()
            await self._ended
        finally:
            self._ended.cancel()  # a stop of the server ends the stream too
            self._ledger.stream_closed(left=self._left)

    def _sleep(self) -> None:
        now = time.monotonic()
        self._alarm.at(self._due if self._due - now < _LOOK else now + _LOOK, self._step)

    def _step(self) -> None:
        """Write what is due, and sleep again."""
        if self._ended.done():
            return
        transport = self._protocol.transport
        if transport is None or transport.is_closing():
            self._left = True
            self._ended.set_result(None)
        elif self._protocol.writing_paused:
            self._alarm.at(time.monotonic() + _RETRY, self._step)
        elif time.monotonic() < self._due:
            self._sleep()
        elif self._written == self._stream.events:
            self._end(transport)
        else:
            self._event(transport)

    def _event(self, transport: asyncio.Transport) -> None:
        stream, number = self._stream, self._written
        nanoseconds = time.monotonic_ns()
        late = max(0.0, nanoseconds / 1e9 - self._due)
        event = stream.format.piece(number, nanoseconds, late)
        transport.write(self._framed(event))
        self._ledger.event(late, len(event))
        self._written = number + 1
        if stream.pings_after(number):
            self._write(transport, stream.format.ping)
        if self._written < stream.events:
            self._due = next(self._moments)
            self._sleep()
        else:
            self._close(transport)

    def _close(self, transport: asyncio.Transport) -> None:
        """Write the closing events, right behind the last one."""
        closing, end = self._stream.format.closing, self._stream.end
        if end is None:
            self._ledger.sent(len(closing))
            transport.write(self._framed(closing) + (_LAST_CHUNK if self._chunked else b""))
            self._ended.set_result(None)
            return
        self._write(transport, closing)
        if pause := end.draw(self._stream.source):
            self._due += pause
            self._sleep()
        else:
            self._end(transport)

    def _end(self, transport: asyncio.Transport) -> None:
        if self._chunked:
            transport.write(_LAST_CHUNK)
        self._ended.set_result(None)

    def _write(self, transport: asyncio.Transport, data: bytes) -> None:
        self._ledger.sent(len(data))
        transport.write(self._framed(data))

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data
