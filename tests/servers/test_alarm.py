"""Timers for coroutines."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from mockupstream.alarm import Alarm, KernelAlarm, LoopAlarm

KINDS = [
    pytest.param(
        KernelAlarm,
        marks=pytest.mark.skipif(sys.platform != "linux", reason="timerfd is Linux's"),
    ),
    LoopAlarm,
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_sleeper_wakes_early(kind: type[KernelAlarm | LoopAlarm]) -> None:
    """With the kernel's timer, sleepers also wake in the order of their moments."""

    async def sleep_all() -> list[float]:
        alarm = kind()
        start = time.monotonic()
        woken: list[float] = []

        async def sleep(seconds: float) -> None:
            await alarm.until(start + seconds)
            assert time.monotonic() >= start + seconds
            woken.append(seconds)

        await asyncio.gather(
            *(sleep(seconds) for seconds in (0.05, 0.0, 0.02, -1.0, 0.0501, 0.02, 0.01))
        )
        alarm.close()
        return woken

    woken = asyncio.run(sleep_all())
    assert sorted(woken) == [-1.0, 0.0, 0.01, 0.02, 0.02, 0.05, 0.0501]
    if kind is KernelAlarm:
        assert woken == sorted(woken)


def test_a_cancelled_sleeper_does_not_disturb_the_others() -> None:

    async def sleep_both() -> None:
        alarm = Alarm()
        moment = time.monotonic() + 0.02
        cancelled = asyncio.create_task(alarm.until(moment - 0.01))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait_for(alarm.until(moment), timeout=5)
        assert time.monotonic() >= moment
        assert cancelled.cancelled()
        alarm.close()

    asyncio.run(sleep_both())
