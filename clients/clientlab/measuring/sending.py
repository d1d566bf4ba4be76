"""The function that sends a request: the client's `send`, or a variant that the workload needs.

A caller chooses it once, so the timed lines are the same for all workloads. It returns a status and an object with a
length.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

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
    """Return the send function of a blocking client for this workload."""
    if workload.read != "chunks":
        whole: Send = client.send
        return whole
    stream: Callable[[Request, DiscardedBody], int] = client.stream

    def send(request: Request) -> tuple[int, DiscardedBody]:
        body = DiscardedBody()
        return stream(request, body), body

    return send


def asend_of(client: Any, workload: Workload) -> AsyncSend:
    """Return the send function of an asyncio client for this workload."""
    if workload.read != "chunks":
        whole: AsyncSend = client.send
        return whole
    stream: Callable[[Request, DiscardedBody], Awaitable[int]] = client.stream

    async def send(request: Request) -> tuple[int, DiscardedBody]:
        body = DiscardedBody()
        return await stream(request, body), body

    return send


def all_at_once(send: Send, threads: int, all_are_there: Callable[[Send], None]) -> Send:
    """Return a `send` whose first request in each of `threads` threads waits for the others, so that all are warm.

    The last thread calls `all_are_there` with `send` itself. If fewer threads come, the wait ends after 5 s.
    """
    gate = threading.Barrier(threads, lambda: all_are_there(send))

    def waiting(request: Request) -> tuple[int, Any]:
        with contextlib.suppress(threading.BrokenBarrierError):
            gate.wait(_GATHERING_SECONDS)
        return send(request)

    return waiting


class Current:
    """The number of the request that is being sent."""

    number = 0

    def follow(self, numbers: Iterable[int]) -> Iterator[int]:
        """Yield the numbers, and remember the last one."""
        for number in numbers:
            self.number = number
            yield number
