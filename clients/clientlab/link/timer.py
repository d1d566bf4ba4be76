"""A timer that is precise to some ten microseconds, for an event loop whose own timers count milliseconds.

libuv (uvloop) and epoll_wait(2) round time-outs to milliseconds, which is too coarse for a link of 1 ms. On Linux, the
timer is a timerfd: a file descriptor that becomes readable at a time given in nanoseconds. On other systems, asyncio's
own loop waits by kqueue, which takes nanoseconds; there its own timer is enough.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Protocol

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_NANOSECONDS = 1_000_000_000


class Timer(Protocol):
    """A timer that calls one function."""

    def start(self, callback: Callable[[], None]) -> None:
        """Name the function. It has to set the timer again, or to stop it."""

    def set(self, due: float) -> None:
        """Call it at `due`, in seconds of `time.monotonic()`, and not at the time set before; infinite: never."""

    def close(self) -> None:
        """Give back what the timer holds."""


def precise_timer(loop: asyncio.AbstractEventLoop) -> Timer:
    """A timer of that loop, not set yet."""
    # A long holds the seconds of struct itimerspec on systems with 64 bits.
    if sys.platform == "linux" and ctypes.sizeof(ctypes.c_long) == 8:
        return TimerDescriptor(loop)
    return LoopTimer(loop)


class TimerDescriptor:
    """timerfd_create(2). Python has it from 3.13 on (`os.timerfd_create`)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._loop = loop
        self._set_time = libc.timerfd_settime
        self._descriptor: int = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._spec = (ctypes.c_long * 4)()  # struct itimerspec: seconds, nanoseconds of the interval; of the time

    def start(self, callback: Callable[[], None]) -> None:
        self._loop.add_reader(self._descriptor, callback)

    def set(self, due: float) -> None:
        """Also makes the descriptor unreadable again, so nothing has to read it."""
        at = 0 if due == math.inf else max(1, int(due * _NANOSECONDS))  # 0 stops the timer
        self._spec[2], self._spec[3] = divmod(at, _NANOSECONDS)
        if self._set_time(self._descriptor, _ABSOLUTE, self._spec, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)


class LoopTimer:
    """The loop's own timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callback: Callable[[], None] = lambda: None
        self._handle: asyncio.TimerHandle | None = None

    def start(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def set(self, due: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        if due != math.inf:
            self._handle = self._loop.call_later(max(0.0, due - time.monotonic()), self._callback)

    def close(self) -> None:
        self.set(math.inf)
