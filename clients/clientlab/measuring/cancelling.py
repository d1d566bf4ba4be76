"""Cancelling requests as their caller, and probing what cancelled requests leave of the client, in one process.

A probe sends as many requests as may be in flight, all at once. Each waits for the same time in the upstream, so the
requests that found a free slot of the pool are answered together, and the others later. A probe before the measured
part is what the one behind it is compared with.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from time import perf_counter
from typing import Any, cast

from clientlab.errors import CANCELLED, ERROR_OTHER, Fault
from clientlab.executors.executor_interface import Executor, RequestNumbers
from clientlab.measuring.context import TrialContext
from clientlab.measuring.recording import Recording
from clientlab.measuring.sending import AsyncSend
from clientlab.workload.cancelled_requests import PROBE_PATIENCE, cancellation_of, probe_seconds, probing
from clientlab.workload.cancels import Cancellation
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Request

_Sent = Coroutine[Any, Any, tuple[int, Any]]


class _Probing:
    """This process's probe. `loops`: the event loops of its callers. `moved`: when it began, or an answer last came."""

    is_on = False
    moved = 0.0
    loops: list[asyncio.AbstractEventLoop] = []  # noqa: RUF012 - one for the process


class Cancelling:
    """A caller's part of it: which requests to cancel, and the request of a probe."""

    def __init__(self, recording: Recording) -> None:
        context = recording.context
        self._cancellation_of = cancellation_of(context.workload)
        self._double = context.workload.cancel is not None and context.workload.cancel.double
        self._silence = probe_seconds(context.workload, context.concurrency) + PROBE_PATIENCE
        self._probe = requests_of(probing(context.workload, context.concurrency), context.base_url, awaited=True)(0)

    @staticmethod
    def watch_loop() -> None:
        """Count the tasks of the running loop in probes."""
        _Probing.loops.append(asyncio.get_running_loop())

    def of(self, numbers: Iterable[int]) -> CancellingSender:
        """Iterate over the numbers, and send the request of each."""
        return CancellingSender(self._cancellation_of, self._probed, numbers, double=self._double)

    async def _probed(self, send: AsyncSend) -> tuple[int, Any]:
        """Send a request of a probe. Raises a Fault where none of the probe is answered for too long.

        Requests without a slot wait for those that have one, however few slots there are. So silence ends a probe.
        """
        task = asyncio.get_running_loop().create_task(cast("_Sent", send(self._probe)))
        while (left := _Probing.moved + self._silence - time.monotonic()) > 0:
            if (await asyncio.wait({task}, timeout=left))[0]:
                _Probing.moved = time.monotonic()
                return task.result()
        task.cancel()
        await asyncio.wait({task})
        raise _given_up()


class CancellingSender:
    """Iterates over request numbers, and cancels those that are to be cancelled. Each send loop has its own."""

    def __init__(
        self,
        cancellation_of: Callable[[int], Cancellation | None],
        probed: Callable[[AsyncSend], Coroutine[Any, Any, tuple[int, Any]]],
        numbers: Iterable[int],
        *,
        double: bool,
    ) -> None:
        self._cancellation_of = cancellation_of
        self._probed = probed
        self._numbers = numbers
        self._number = 0
        self._double = double

    def __iter__(self) -> Iterator[int]:
        for number in self._numbers:
            self._number = number
            yield number

    def asending(self, send: AsyncSend) -> AsyncSend:
        """A send function that raises a Fault of kind `cancelled` for each request that was cancelled."""

        async def cancelling(request: Request) -> tuple[int, Any]:
            if self._number < 0:
                return await (self._probed(send) if _Probing.is_on else send(request))
            chosen = self._cancellation_of(self._number)
            if chosen is None:
                return await send(request)
            sent = cast("_Sent", send(request))
            if self._double:
                return await _cancelled_twice(sent, chosen)
            return await (_until(sent, chosen.after) if chosen.way == "timeout" else _cancelled(sent, chosen.after))

        return cancelling


def _given_up() -> Fault:
    return Fault(CANCELLED, "its caller gave it up")


def _cancelled_by_itself() -> Fault:
    return Fault(f"{ERROR_OTHER}:CancelledError", "the library cancelled it, and its caller had not")


async def _until(sent: _Sent, seconds: float) -> tuple[int, Any]:
    """The answer. Raises a Fault where it has not come within the time limit of the caller."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await sent
    except TimeoutError as error:
        if type(error) is TimeoutError and limit.expired():  # the library's own has another type, or came earlier
            raise _given_up() from None
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _cancelled_by_itself() from None


async def _cancelled(sent: _Sent, seconds: float) -> tuple[int, Any]:
    """The answer. Raises a Fault where the task that waited for it was cancelled before."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(sent)
    given_up: list[bool] = []
    timer = loop.call_later(seconds, lambda: given_up.append(task.cancel()))
    try:
        return await task
    except asyncio.CancelledError:
        raise (_given_up() if given_up else _cancelled_by_itself()) from None
    finally:
        timer.cancel()


async def _cancelled_twice(sent: _Sent, chosen: Cancellation) -> tuple[int, Any]:
    """The same, with a second cancellation as soon as the client handles the first one."""
    loop = asyncio.get_running_loop()
    moment = loop.time() + chosen.after
    task = loop.create_task(_until(sent, chosen.after) if chosen.way == "timeout" else sent)
    first = loop.call_at(moment, task.cancel) if chosen.way == "task" else None
    second = loop.call_at(moment, _two_passes_later, loop, task)
    try:
        return await task
    except asyncio.CancelledError:
        raise (_given_up() if loop.time() >= moment else _cancelled_by_itself()) from None
    finally:
        second.cancel()
        if first is not None:
            first.cancel()


def _two_passes_later(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    """Cancel the task. One pass delivers the first cancellation, whose timer may come behind this one."""
    loop.call_soon(lambda: loop.call_soon(task.cancel))


def probe(executor: Executor, context: TrialContext) -> dict[str, float]:
    """Send c requests at once and wait for their answers; when that began, and how many tasks are left behind it.

    Their records are those of a warm-up: they have numbers below 0.
    """
    began, _Probing.is_on, _Probing.moved = perf_counter(), True, time.monotonic()
    executor.run(RequestNumbers(context.concurrency, first=-context.concurrency))
    _Probing.is_on = False
    return {"began": began, "tasks": sum(len(asyncio.all_tasks(loop)) for loop in _Probing.loops)}
