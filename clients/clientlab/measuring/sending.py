"""What a caller calls to send a request: the client's `send`, or what a workload asks for in its place.

Bound once for a caller, so that the measuring itself stays as it is: it takes a status and something that
has a length.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from clientlab.clients.shape import AsyncStreaming, AsyncTiming, Reply, Streaming, Timing
from clientlab.sample import SampleLog
from clientlab.workload import Request, Workload

Send = Callable[[Request], tuple[int, Any]]
AsyncSend = Callable[[Request], Awaitable[tuple[int, Any]]]

_GATHERING_SECONDS = 5.0


class Passed:
    """A body of which nothing is kept but its length."""

    __slots__ = ("_length",)

    def __init__(self) -> None:
        self._length = 0

    def __call__(self, chunk: bytes) -> None:
        self._length += len(chunk)

    def __len__(self) -> int:
        return self._length


def send_of(client: Any, workload: Workload) -> Send:
    """How the workload wants a blocking client to send."""
    return _streaming(client) if workload.read == "chunks" else client.send


def asend_of(client: Any, workload: Workload) -> AsyncSend:
    """How the workload wants a client of asyncio to send."""
    return _astreaming(client) if workload.read == "chunks" else client.send


def all_at_once(send: Send, threads: int, all_are_there: Callable[[Send], None]) -> Send:
    """`send`, where the first of each of so many threads wait for each other: so that all are there, and warm.

    The last to come hands `send` itself to `all_are_there`. Where so many never come, they go on after a while.
    """
    gate = threading.Barrier(threads, lambda: all_are_there(send))

    def waiting(request: Request) -> tuple[int, Any]:
        with contextlib.suppress(threading.BrokenBarrierError):
            gate.wait(_GATHERING_SECONDS)
        return send(request)

    return waiting


def _streaming(client: Streaming) -> Send:
    stream = client.stream

    def send(request: Request) -> tuple[int, Passed]:
        body = Passed()
        return stream(request, body), body

    return send


def _astreaming(client: AsyncStreaming) -> AsyncSend:
    stream = client.stream

    async def send(request: Request) -> tuple[int, Passed]:
        body = Passed()
        return await stream(request, body), body

    return send


class Turn:
    """Numbers on their way through one drain, and where the library's own seconds of each are put.

    They are written before the record is done, so that what is done is whole.
    """

    def __init__(self, log: SampleLog, numbers: Iterable[int]) -> None:
        self._log = log
        self._numbers = numbers
        self._number = 0

    def __iter__(self) -> Iterator[int]:
        for number in self._numbers:
            self._number = number
            yield number

    def sending(self, client: Timing) -> Send:
        """The client's `send`, with its library's seconds noted."""

        def send(request: Request) -> Reply:
            status, body, seconds = client.timed(request)
            self._log.write_elapsed(self._number, seconds)
            return status, body

        return send

    def asending(self, client: AsyncTiming) -> AsyncSend:
        """The same for asyncio."""

        async def send(request: Request) -> Reply:
            status, body, seconds = await client.timed(request)
            self._log.write_elapsed(self._number, seconds)
            return status, body

        return send
