"""Timers of the link: the one of Linux, and that of other systems."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import time

import pytest

from clientlab.link.agenda import LoopTimer, TimerDescriptor, precise_timer


@pytest.mark.parametrize(
    "make",
    [
        LoopTimer,
        pytest.param(TimerDescriptor, marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux has timerfd")),
        precise_timer,
    ],
)
def test_a_timer_calls_once_at_the_time_that_was_set_last(make):
    """An earlier setting, and a stopped one, have no effect."""

    async def times():
        loop = asyncio.get_running_loop()
        found, called = [], asyncio.Event()

        def callback():
            found.append(time.monotonic())
            timer.set(math.inf)
            called.set()

        with contextlib.closing(make(loop)) as timer:
            timer.start(callback)
            timer.set(time.monotonic())
            timer.set(math.inf)
            timer.set(due := time.monotonic() + 0.02)
            await asyncio.wait_for(called.wait(), 30)
            await asyncio.sleep(0.01)
        return due, found

    due, found = asyncio.run(times())
    assert len(found) == 1
    assert found[0] >= due - 1e-6
