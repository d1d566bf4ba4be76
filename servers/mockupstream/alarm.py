"""Timers of an event loop: they fire never too early, and some tens of microseconds late.

libuv, and with it uvloop, counts its timers and its clock in whole milliseconds: asyncio.sleep(0.050) ends anywhere
from 0.9 ms early to 1 ms late. A mock upstream must not serve earlier than asked, and what it serves late is measured
as the client's. Linux has a timer of nanoseconds that an event loop can watch like a socket, timerfd; one is enough
for all requests of a worker.
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import itertools
import math
import os
import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_CLOCK_MONOTONIC = 1  # the clock of time.monotonic()
_TFD_TIMER_ABSTIME = 1
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC if sys.platform != "win32" else 0
_SECOND = 1_000_000_000


class Alarm(Protocol):
    """Calls functions and wakes coroutines of one event loop."""

    def at(self, moment: float, callback: Callable[[], object]) -> None:
        """Call `callback` in the event loop when time.monotonic() has reached `moment`, in seconds; never before."""
        ...

    async def until(self, moment: float) -> None:
        """Return when time.monotonic() has reached `moment`, in seconds."""
        ...

    def close(self) -> None:
        """Release the resources of the alarm. Nothing is called or woken afterwards."""
        ...


def make_alarm() -> Alarm:
    """Return the most precise alarm of this platform for the running event loop."""
    return KernelAlarm() if sys.platform == "linux" else LoopAlarm()


class LoopAlarm:
    """Uses the timers of the event loop, which are up to some milliseconds late."""

    def __init__(self) -> None:
        """Take the running event loop."""
        self._loop = asyncio.get_running_loop()

    def at(self, moment: float, callback: Callable[[], object]) -> None:
        """Call `callback` when time.monotonic() has reached `moment`."""
        left = moment - time.monotonic()
        if left <= 0:
            self._loop.call_soon(callback)
        else:
            # At least a millisecond: uvloop rounds less down to 0 and would spin.
            self._loop.call_later(max(left, 0.001), self.at, moment, callback)

    async def until(self, moment: float) -> None:
        """Return when time.monotonic() has reached `moment`."""
        await _reached(self, self._loop, moment)

    def close(self) -> None:
        """Do nothing: the loop holds the timers."""


class _TimerSpecification(ctypes.Structure):
    """C's `struct itimerspec`: an interval (unused), then the moment."""

    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class KernelAlarm:
    """Uses one timerfd of Linux, always set to the earliest moment at which a call is due.

    By ctypes, since Python has os.timerfd_create only from 3.13.
    """

    def __init__(self) -> None:
        """Open the timer and have the running loop watch it; OSError where the kernel has no timer left."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer: int = self._libc.timerfd_create(_CLOCK_MONOTONIC, _FLAGS)
        if self._timer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._timer, self._ring)
        # The running number orders equal moments, since functions cannot be compared.
        self._numbers = itertools.count()
        self._calls: list[tuple[float, int, Callable[[], object]]] = []
        self._ringing = False

    def at(self, moment: float, callback: Callable[[], object]) -> None:
        """Call `callback` when time.monotonic() has reached `moment`."""
        call = (moment, next(self._numbers), callback)
        heapq.heappush(self._calls, call)
        if self._calls[0] is call and not self._ringing:
            self._set(moment)

    async def until(self, moment: float) -> None:
        """Return when time.monotonic() has reached `moment`."""
        await _reached(self, self._loop, moment)

    def close(self) -> None:
        """Close the timer."""
        self._loop.remove_reader(self._timer)
        os.close(self._timer)

    def _ring(self) -> None:
        now = time.monotonic()
        calls = self._calls
        self._ringing = True
        try:
            while calls and calls[0][0] <= now:
                heapq.heappop(calls)[2]()
        finally:
            self._ringing = False
            # Setting it also makes the timer unreadable again, so that it need not be read; zero switches it off.
            self._set(calls[0][0] if calls else 0.0)

    def _set(self, moment: float) -> None:
        # Rounded up: waking a nanosecond early would be useless.
        seconds, nanoseconds = divmod(math.ceil(moment * _SECOND), _SECOND)
        specification = _TimerSpecification(0, 0, seconds, nanoseconds)
        self._libc.timerfd_settime(self._timer, _TFD_TIMER_ABSTIME, ctypes.byref(specification), None)


async def _reached(alarm: Alarm, loop: asyncio.AbstractEventLoop, moment: float) -> None:
    future = loop.create_future()

    def wake() -> None:
        if not future.done():  # done already if its request was cancelled
            future.set_result(None)

    alarm.at(moment, wake)
    await future
