"""Timers that end neither early nor late: for threads, for event loops, and for the poll of an executor.

Medians of 400 waits, measured on two busy cores in one run: asyncio.sleep ends 0.7 ms late, because the selector waits
for whole milliseconds. uvloop's timers end up to 1.3 ms early, because libuv's clock has whole milliseconds. Linux has
a timer of nanoseconds that can be watched like a socket, timerfd: 0.07 ms late under both loops. time.sleep: 0.08 ms.
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
from typing import TYPE_CHECKING, Any, Protocol

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

    By ctypes, since Python has `os.timerfd_create` only from 3.13 on. Raises OSError where no descriptor is left.
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
    """Whether this system has a timerfd."""
    return sys.platform == "linux"


@functools.cache
def _libc() -> Any:
    import ctypes  # noqa: PLC0415 - memory that no trial of a closed load needs

    return ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    """Load what timers need, before a schedule begins: the imports would hold up its first requests."""
    if has_kernel_timer():
        _libc()


class Pacer(Protocol):
    """Wakes the tasks of one event loop."""

    async def until(self, moment: float) -> None:
        """Return when `time.perf_counter` has reached `moment`."""

    async def rest(self) -> None:
        """Let other tasks run."""


def pacer_here() -> Pacer:
    """The most precise timer for the running loop, of asyncio or of trio. It lives as long as the loop."""
    asyncio = sys.modules.get("asyncio")  # a loop of it that runs has imported it
    try:
        loop = None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    if loop is None:
        return TrioPacer()
    return KernelPacer(loop) if has_kernel_timer() else LoopPacer()


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
    """The timers of the event loop, some milliseconds late."""

    async def until(self, moment: float) -> None:
        """Return when `time.perf_counter` has reached `moment`."""
        import asyncio  # noqa: PLC0415 - gevent has to patch ssl before asyncio imports it

        while (left := moment - time.perf_counter()) > 0:  # noqa: ASYNC110 - no event signals the passing of time
            await asyncio.sleep(max(left, _SHORTEST))  # uvloop rounds less down to 0 and would spin

    async def rest(self) -> None:
        """Let other tasks run."""
        await _rest()


class KernelPacer:
    """One timerfd, always set to the earliest moment that a task waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer = KernelTimer()
        loop.add_reader(self._timer.descriptor, self._ring)
        self._numbers = itertools.count()  # orders equal moments, since futures cannot be compared
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    async def until(self, moment: float) -> None:
        """Return when `time.perf_counter` has reached `moment`."""
        future = self._loop.create_future()
        heapq.heappush(self._sleepers, (moment, next(self._numbers), future))
        if self._sleepers[0][2] is future:
            self._timer.set(moment)
        await future

    async def rest(self) -> None:
        """Let other tasks run."""
        await _rest()

    def _ring(self) -> None:
        now, sleepers = time.perf_counter(), self._sleepers
        while sleepers and sleepers[0][0] <= now:
            future = heapq.heappop(sleepers)[2]
            if not future.done():  # done already if its task was cancelled
                future.set_result(None)
        # Setting it also makes it unreadable again, so that nobody has to read it.
        self._timer.set(sleepers[0][0] if sleepers else None)


async def _rest() -> None:
    import asyncio  # noqa: PLC0415 - gevent has to patch ssl before asyncio imports it

    await asyncio.sleep(0)
