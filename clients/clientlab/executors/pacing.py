"""The numbers of an open load: each is passed on at its planned time, by timers that end neither early nor late.

Medians of 400 waits, measured on two busy cores in one run: asyncio.sleep ends 0.7 ms late, because the selector waits
for whole milliseconds. uvloop's timers end up to 1.3 ms early, because libuv's clock has whole milliseconds. Linux has
a timer of nanoseconds that can be watched like a socket, timerfd: 0.07 ms late under both loops. time.sleep: 0.08 ms.

A thread waits in the iterator, a task in the asynchronous iterator, and an executor with a poll of its own watches
`next_start`. Several threads or tasks may share the numbers; processes share a counter.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import os
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from clientlab.executors.executor_interface import RequestNumbers
from clientlab.workload.arrivals import Arrivals

if TYPE_CHECKING:
    import asyncio  # it imports ssl, which gevent has to patch first


_CLOCK_MONOTONIC = 1  # the clock of time.perf_counter() on Linux
_ABSOLUTE = 1
_SECOND = 1_000_000_000
_SHORTEST = 0.001
_SETTING = struct.Struct("@4l").pack
"""C's `struct itimerspec`: an interval, which stays 0, then the moment, each in seconds and nanoseconds."""


def wait_until(moment: float) -> None:
    """Block this thread until `moment`, in seconds of `time.perf_counter`. gevent patches `time.sleep`."""
    while (left := moment - time.perf_counter()) > 0:
        time.sleep(left)


class KernelTimer:
    """A timerfd: a file descriptor that is readable from the moment on to which it was set.

    By ctypes, since Python has `os.timerfd_create` only from 3.13 on. Raises OSError if no descriptor is left.
    """

    def __init__(self) -> None:
        import ctypes  # noqa: PLC0415 - memory that no trial of a closed load needs

        self._libc = _libc()
        self.descriptor: int = self._libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def set(self, moment: float | None) -> None:
        """Set it, or switch it off. It is unreadable then until `moment`, in seconds of `time.perf_counter`."""
        # Rounded up: to end a nanosecond early would be useless. 0 switches it off.
        seconds, nanoseconds = divmod(math.ceil((moment or 0.0) * _SECOND), _SECOND)
        self._libc.timerfd_settime(self.descriptor, _ABSOLUTE, _SETTING(0, 0, seconds, nanoseconds), None)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


def has_kernel_timer() -> bool:
    """Return whether this system has a timerfd."""
    return sys.platform == "linux"


@functools.cache
def _libc() -> Any:
    import ctypes  # noqa: PLC0415 - memory that no trial of a closed load needs

    return ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    """Load what timers need, before a schedule begins: the imports would hold up its first requests."""
    if has_kernel_timer():
        _libc()


class TrioPacer:
    """A timerfd for each task of trio that waits; trio's own timers count whole milliseconds, as epoll does."""

    def __init__(self) -> None:
        import trio  # noqa: PLC0415 - only its executor needs it

        self._trio = trio
        self._free: list[KernelTimer] = []

    async def until(self, moment: float) -> None:
        """Return when `time.perf_counter` has reached `moment`."""
        if not has_kernel_timer():
            while (left := moment - time.perf_counter()) > 0:
                await self._trio.sleep(left)
            return
        timer = self._free.pop() if self._free else KernelTimer()
        timer.set(moment)
        await self._trio.lowlevel.wait_readable(timer.descriptor)
        self._free.append(timer)

    async def rest(self) -> None:
        """Let other tasks run."""
        await self._trio.lowlevel.checkpoint()


class LoopPacer:
    """One timerfd for an event loop of asyncio, always set to the earliest moment that a task waits for.

    Without timerfd, the timers of the event loop: some milliseconds late.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio  # noqa: PLC0415 - gevent has to patch ssl before asyncio imports it

        self._asyncio, self._loop = asyncio, loop
        self._numbers = itertools.count()  # orders equal moments, since futures cannot be compared
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        if has_kernel_timer():
            self._timer = KernelTimer()
            loop.add_reader(self._timer.descriptor, self._ring)

    async def until(self, moment: float) -> None:
        if not has_kernel_timer():
            while (left := moment - time.perf_counter()) > 0:
                await self._asyncio.sleep(max(left, _SHORTEST))  # uvloop rounds less down to 0 and would spin
            return
        future = self._loop.create_future()
        heapq.heappush(self._sleepers, (moment, next(self._numbers), future))
        if self._sleepers[0][2] is future:
            self._timer.set(moment)
        await future

    async def rest(self) -> None:
        """Let other tasks run."""
        await self._asyncio.sleep(0)

    def _ring(self) -> None:
        now, sleepers = time.perf_counter(), self._sleepers
        while sleepers and sleepers[0][0] <= now:
            future = heapq.heappop(sleepers)[2]
            if not future.done():  # done already if its task was cancelled
                future.set_result(None)
        # Setting it also makes it unreadable again, so that nobody has to read it.
        self._timer.set(sleepers[0][0] if sleepers else None)


class PacedNumbers(RequestNumbers):
    """The numbers of a schedule that began at `began` (`time.perf_counter`). They have no count and no deadline.

    `take`: the source of the numbers, from 0 on; None for one of their own. Processes of one trial share a counter:
    with every P-th number for each of P processes, the requests of a slow process would wait for it.
    """

    def __init__(self, schedule: Arrivals, began: float, take: Callable[[], int] | None = None) -> None:
        super().__init__(None)
        self.began = began
        self._schedule = schedule
        self._take = itertools.count().__next__ if take is None else take
        self._held: int | None = None

    def __next__(self) -> int:
        number = self._take()
        if number >= self._schedule.count:
            raise StopIteration
        wait_until(self._start_of(number))
        return number

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        number = self._take()
        if number >= self._schedule.count:
            raise StopAsyncIteration
        moment = self._start_of(number)
        if moment > time.perf_counter():
            await self._pacer.until(moment)
        return number

    def split(self, parts: int) -> list[PacedNumbers]:
        """Return the numbers for so many event loops. They share the source, and each has a timer of its own."""
        return [PacedNumbers(self._schedule, self.began, self._take) for _ in range(parts)]

    @property
    def next_start(self) -> float | None:
        """When the next number is due, for an executor with one thread that polls; None after the last one."""
        if self._held is None:
            self._held = self._take()
        return self._start_of(self._held) if self._held < self._schedule.count else None

    def take_due(self) -> int | None:
        """Return the next number if it is due, or None before that and after the last one."""
        start = self.next_start
        if start is None or start > time.perf_counter():
            return None
        number, self._held = self._held, None
        return number

    def _start_of(self, number: int) -> float:
        return self.began + self._schedule.start_of(number)

    async def rest(self) -> None:
        """Let other tasks run: a task that drops many requests would hold the event loop."""
        await self._pacer.rest()

    @functools.cached_property
    def _pacer(self) -> TrioPacer | LoopPacer:
        """The timer of the running event loop, of asyncio or of trio."""
        asyncio = sys.modules.get("asyncio")  # a loop of it that runs has imported it
        try:
            loop = None if asyncio is None else asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        return TrioPacer() if loop is None else LoopPacer(loop)


async def spawn_each(numbers: PacedNumbers, send: Callable[[int], Awaitable[Any]]) -> None:
    """Start a task for each request when it is due, as a service does for each that it receives; end with the last."""
    import asyncio  # noqa: PLC0415 - gevent has to patch ssl before asyncio imports it

    async def one(number: int) -> None:
        await send(number)

    async with asyncio.TaskGroup() as group:
        async for number in numbers:
            group.create_task(one(number))
            # The task begins now, also where the next request is due already: this loop alone would never let it.
            await asyncio.sleep(0)
