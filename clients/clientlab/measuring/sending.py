"""The function that a caller uses to send a request: the client's `send`, or a variant that the workload needs.

A caller binds it once, so the timed lines are the same for all workloads. It returns a status and an object with a
length.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from clientlab.clients.client_interface import AsyncStreaming, AsyncTiming, StatusAndBody, Streaming, Timing
from clientlab.samples.log import SampleLog
from clientlab.workload.workload import Request, Workload

Send = Callable[[Request], tuple[int, Any]]
AsyncSend = Callable[[Request], Awaitable[tuple[int, Any]]]

_GATHERING_SECONDS = 5.0


class DiscardedBody:
    """A body of which only the length is kept."""

    __slots__ = ("_length",)

    def __init__(self) -> None:
        self._length = 0

    def __call__(self, chunk: bytes) -> None:
        self._length += len(chunk)

    def __len__(self) -> int:
        return self._length


def send_of(client: Any, workload: Workload) -> Send:
    """The send function of a blocking client for this workload. That of streams of events depends on the request."""
    if workload.stream is not None:
        return _no_send
    return _streaming(client) if workload.read == "chunks" else client.send


def asend_of(client: Any, workload: Workload) -> AsyncSend:
    """The send function of an asyncio client for this workload."""
    if workload.stream is not None:
        return _no_send
    return _astreaming(client) if workload.read == "chunks" else client.send


def _no_send(_request: Request) -> Any:
    raise NotImplementedError("EventRecorder makes the send function of each stream")


class StartGate:
    """Holds the first request of each of `threads` threads until all of them have one, so that every thread is warm.

    If fewer threads come, the waiting ends after 5 s.
    """

    def __init__(self, threads: int) -> None:
        self.is_open = False
        self._barrier = threading.Barrier(threads, self._open)

    def before(self, send: Send) -> Send:
        """`send`, behind the gate."""

        def waiting(request: Request) -> tuple[int, Any]:
            if not self.is_open:
                with contextlib.suppress(threading.BrokenBarrierError):
                    self._barrier.wait(_GATHERING_SECONDS)
            return send(request)

        return waiting

    def _open(self) -> None:
        self.is_open = True


def _streaming(client: Streaming) -> Send:
    stream = client.stream

    def send(request: Request) -> tuple[int, DiscardedBody]:
        body = DiscardedBody()
        return stream(request, body), body

    return send


def _astreaming(client: AsyncStreaming) -> AsyncSend:
    stream = client.stream

    async def send(request: Request) -> tuple[int, DiscardedBody]:
        body = DiscardedBody()
        return await stream(request, body), body

    return send


class ElapsedRecorder:
    """Iterates over request numbers and writes the library's own seconds of each request to the log.

    It writes them before the record is done, so that a record that is done is complete.
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
        """A send function that also writes the library's seconds."""

        def send(request: Request) -> StatusAndBody:
            status, body, seconds = client.timed(request)
            self._log.write_elapsed(self._number, seconds)
            return status, body

        return send

    def asending(self, client: AsyncTiming) -> AsyncSend:
        """A send function for asyncio that also writes the library's seconds."""

        async def send(request: Request) -> StatusAndBody:
            status, body, seconds = await client.timed(request)
            self._log.write_elapsed(self._number, seconds)
            return status, body

        return send
