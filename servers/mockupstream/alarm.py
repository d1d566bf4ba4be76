"""Timers for coroutines that never wake too early, and at most some tens of
microseconds late.

libuv, and with it uvloop, counts time in whole milliseconds: asyncio.sleep(0.050) ends
between 0.9 ms early and 1 ms late. Linux has timerfd, a timer with nanoseconds that an
event loop can watch like a socket. One is enough for all requests of a worker. Python
has os.timerfd_create only since 3.13.
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import itertools
import math
import os
import struct
import sys
import time

_CLOCK_MONOTONIC, _TFD_TIMER_ABSTIME = 1, 1
_SECOND = 1_000_000_000
_TIMER_SPECIFICATION = struct.Struct("@4l").pack
"""C's `struct itimerspec`: interval and moment, each in seconds and nanoseconds."""


class LoopAlarm:
    """Wakes coroutines with timers of the event loop, which are up to some milliseconds
    late.
    """

    async def until(self, moment: float) -> None:
        """Return when time.monotonic() has reached `moment`."""
        while (left := moment - time.monotonic()) > 0:  # noqa: ASYNC110 - no event signals the passing of time
            # At least a millisecond: uvloop rounds less down to 0 and would spin.
            await asyncio.sleep(max(left, 0.001))

    def close(self) -> None:
        """Do nothing: the loop holds the timers."""


class KernelAlarm:
    """Wakes coroutines with one timerfd of Linux, which is always set to the earliest
    moment they wait for.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer: int = self._libc.timerfd_create(
            _CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC
        )
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._timer, self._ring)
        self._numbers = (
            itertools.count()
        )  # order equal moments, since futures cannot be compared
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    async def until(self, moment: float) -> None:
        """Return when time.monotonic() has reached `moment`."""
        future = self._loop.create_future()
        heapq.heappush(self._sleepers, (moment, next(self._numbers), future))
        if self._sleepers[0][2] is future:
            self._set(moment)
        await future

    def close(self) -> None:
        """Close the timer."""
        self._loop.remove_reader(self._timer)
        os.close(self._timer)

    def _ring(self) -> None:
        now, sleepers = time.monotonic(), self._sleepers
        while sleepers and sleepers[0][0] <= now:
            future = heapq.heappop(sleepers)[2]
            if not future.done():  # done already if its request was cancelled
                future.set_result(None)
        # Setting the timer also makes it unreadable again, so that it need not be read.
        # Zero switches it off.
        self._set(sleepers[0][0] if sleepers else 0.0)

    def _set(self, moment: float) -> None:
        # Rounded up: waking a nanosecond early would be useless.
        specification = _TIMER_SPECIFICATION(
            0, 0, *divmod(math.ceil(moment * _SECOND), _SECOND)
        )
        self._libc.timerfd_settime(self._timer, _TFD_TIMER_ABSTIME, specification, None)


Alarm = KernelAlarm if sys.platform == "linux" else LoopAlarm
"""The most precise alarm of this platform, for the running event loop."""
