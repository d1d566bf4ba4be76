"""An open load's requests at the moment of their send: those that are too late are dropped, and recorded as such."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

from clientlab.errors import DROPPED
from clientlab.executors.interfaces import AsyncCaller, Caller
from clientlab.executors.pacing import PacedNumbers
from clientlab.measuring.recording import Recording
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.load import most_late


class Admission:
    """Decides whether a request is still sent. Off the clock: a request's own time begins when it is sent."""

    def __init__(self, recording: Recording, schedule: Arrivals) -> None:
        self._recording = recording
        self._start_of = schedule.start_of
        self._most_late = most_late(recording.context.workload)
        self._began = 0.0

    def admits(self, number: int) -> bool:
        """Whether to send the request now. A request that is not sent is recorded: it took no time, at this moment."""
        began = self._began
        if not began:
            began = self._began = self._recording.log.schedule_began
        if number < 0 or not began:  # the warm-up has no schedule
            return True
        now = perf_counter()
        late = now - began - self._start_of(number)
        if late <= self._most_late:
            return True
        log = self._recording.log
        code = log.error_code(DROPPED, f"not sent: {late:.3f} s behind its planned start")
        log.write_late(number, now, 0.0, 0, 0, code)
        return False


class PacedCaller:
    """A blocking caller that sends what its admission admits."""

    def __init__(self, caller: Caller, admission: Admission) -> None:
        self._caller = caller
        self._admits = admission.admits

    @property
    def client(self) -> Any:
        return self._caller.client

    def __call__(self, number: int) -> None:
        if self._admits(number):
            self._caller(number)

    def send_all(self, numbers: Iterable[int]) -> None:
        self._caller.send_all(filter(self._admits, numbers))

    def close(self) -> None:
        self._caller.close()


class PacedAsyncioCaller:
    """An asyncio caller that sends what its admission admits, and awaits the planned start of each request."""

    def __init__(self, caller: AsyncCaller, admission: Admission) -> None:
        self._caller = caller
        self._admits = admission.admits

    async def __call__(self, number: int) -> None:
        if self._admits(number):
            await self._caller(number)

    async def send_all(self, numbers: Iterable[int]) -> None:
        if not isinstance(numbers, PacedNumbers):
            await self._caller.send_all(filter(self._admits, numbers))
            return
        async for number in numbers:
            if self._admits(number):
                await self._caller.send_all((number,))
            else:
                await numbers.rest()

    async def close(self) -> None:
        await self._caller.close()
