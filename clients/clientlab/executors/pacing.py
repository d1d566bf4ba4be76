"""The numbers of an open load: each is passed on at the planned start of its request, and never before.

A thread waits in the iterator, a task in the asynchronous iterator, and an executor with a poll of its own watches
`next_start`. Several threads or tasks may share the numbers; processes share a counter.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from clientlab.executors.interfaces import RequestNumbers
from clientlab.executors.timers import Pacer, pacer_here, wait_until
from clientlab.workload.arrivals import Arrivals


class PacedNumbers(RequestNumbers):
    """The numbers of a schedule that began at `began` (`time.perf_counter`). They have no count and no deadline.

    `take`: the source of the numbers, from 0 on; None for one of their own. Processes of one trial pass a counter that
    they share: with every P-th number for each of P processes, the requests of a slow process would wait for it.
    """

    def __init__(self, schedule: Arrivals, began: float, take: Callable[[], int] | None = None) -> None:
        super().__init__(None)
        self.began = began
        self._schedule = schedule
        self._take = itertools.count().__next__ if take is None else take
        self._held: int | None = None
        self._pacer: Pacer | None = None

    def __iter__(self) -> PacedNumbers:
        if _runs_in_a_loop():
            raise TypeError("the numbers of an open load would block the event loop; iterate them with `async for`")
        return self

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
            await self._pacer_here().until(moment)
        return number

    def split(self, parts: int) -> list[PacedNumbers]:
        """The numbers for so many event loops. They share the source, and each has a timer of its own."""
        return [PacedNumbers(self._schedule, self.began, self._take) for _ in range(parts)]

    @property
    def next_start(self) -> float | None:
        """When the next number is due, for an executor with one thread that polls; None behind the last one."""
        if self._held is None:
            self._held = self._take()
        return self._start_of(self._held) if self._held < self._schedule.count else None

    def take_due(self) -> int | None:
        """The next number if it is due; None before, and behind the last one."""
        start = self.next_start
        if start is None or start > time.perf_counter():
            return None
        number, self._held = self._held, None
        return number

    def _start_of(self, number: int) -> float:
        return self.began + self._schedule.start_of(number)

    async def rest(self) -> None:
        """Let other tasks run: a task that drops many requests would hold the event loop."""
        await self._pacer_here().rest()

    def _pacer_here(self) -> Pacer:
        """The timer of the running event loop."""
        if self._pacer is None:
            self._pacer = pacer_here()
        return self._pacer


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


def _runs_in_a_loop() -> bool:
    """Whether this thread runs an event loop. asyncio is not imported for the answer."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
