"""A caller's part of a trial, apart from the clock: its sample log, client, requests, error codes, and admission."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.errors import DROPPED, ErrorTable, PluginError, kind_of, status_kind, unopened
from clientlab.executors.executor_interface import AsyncCaller, Caller
from clientlab.executors.pacing import PacedNumbers
from clientlab.measuring import connections, usage
from clientlab.measuring.connections import NOWHERE
from clientlab.measuring.context import TrialContext
from clientlab.samples.log import SampleLog
from clientlab.strategies import plugins
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.load import arrivals_of, most_late, requests_in
from clientlab.workload.making import requests_of
from clientlab.workload.shard_workload import ShardWorkload
from clientlab.workload.workload import varies

_GUESSED_RATE = 20_000
"""Requests per second, for the size of the log of a trial that a duration ends."""

_logs: dict[tuple[int, str], tuple[SampleLog, int]] = {}
"""(Process id, which a fork changes, folder) → open log and the number of its recordings: threads may have one each."""
_opening = threading.Lock()


def preallocate(context: TrialContext) -> None:
    """Make this process's log before the clock starts, for `Recording`: its files cost as much as some requests.

    In a parent process whose children send the requests, it stays unused.
    """
    _logs[os.getpid(), context.folder] = _make_log(context), 0


class Recording:
    """A caller's part of a trial. `client` is made, but not yet open; it may hold `connections_limit` connections.

    `request` makes request k. `same`: the request of a workload whose requests are all alike, or None. `admission`:
    None in a closed load.
    """

    def __init__(self, context: TrialContext, connections_limit: int) -> None:
        plugins.admit([context.strategy.client])  # a process of a pool may be a fresh one
        spec = strategies.client_spec(context.strategy.client)
        client_class = strategies.load(spec.import_path)
        self.context = context
        self.log = _begin(context)
        usage.keep_status_open()
        self.errors: ErrorTable = (*getattr(client_class, "errors", ()), (json.JSONDecodeError, "protocol"))
        self.request = requests_of(context.workload, context.base_url, awaited=spec.kind == "asyncio")
        self.same = None if varies(context.workload) else self.request(0)
        self._counts = not spec.quirks.uncounted
        settings = context.strategy.settings
        pool = None if settings.get("library_defaults") else settings.get("pool", connections_limit) or 0
        budget = Budget(pool, context.workload.timeout, context.ca_file, context.workload.chunk_size)
        chosen = strategies.chosen(context.strategy, spec.import_path)
        self.client: Any = client_class(budget, self.log.connected, **chosen)
        schedule = arrivals_of(context.workload)
        self.admission = None if schedule is None else Admission(self.log, schedule, most_late(context.workload))

    def failed(self, error: Exception) -> int:
        """Return the log's code of an exception, and count a connection that was attempted and not opened.

        Raise a PluginError again: the client's code is wrong, and no request can succeed.
        """
        if isinstance(error, PluginError):
            raise error
        kind = kind_of(error, self.errors)
        if self._counts and unopened(error, kind):
            self.log.unopened()
        if (known := self.log.codes.get(kind)) is not None:
            return known
        return self.log.error_code(kind, f"{type(error).__name__}: {error}")

    def refused(self, status: int) -> int:
        """Return the log's code of an error status (4xx, 5xx); 0 for any other."""
        kind = status_kind(status)
        return 0 if kind is None else self.log.error_code(kind, f"status {status}")

    def close(self) -> None:
        """Finish this caller's records; the last caller closes the log of this process."""
        key = os.getpid(), self.context.folder
        with _opening:
            log, recordings = _logs.pop(key)
            if recordings > 1:
                _logs[key] = log, recordings - 1
                return
        connections.count_into(None, NOWHERE)
        log.close(usage.peak_rss())


def _begin(context: TrialContext) -> SampleLog:
    """Return this process's log, which counts the connections of the process from now on."""
    key = os.getpid(), context.folder
    with _opening:
        log, recordings = _logs.get(key) or (_make_log(context), 0)
        log.begin()
        connections.count_into(log, context.address)
        _logs[key] = log, recordings + 1
    return log


def _make_log(context: TrialContext) -> SampleLog:
    """Return this process's writer of the log of the whole trial, with room for the expected number of requests."""
    whole, own = context.whole or context, context.workload
    shard, warm_up = own.index if context.whole and isinstance(own, ShardWorkload) else 0, whole.warm_up * whole.shards
    expected = requests_in(whole.workload)
    if expected is None:
        expected = int((whole.workload.duration or 0.0) * _GUESSED_RATE) + 1
    return SampleLog(Path(context.folder), -warm_up, warm_up + expected, shard, whole.shards)


class Admission:
    """Decides whether a request of an open load is still sent, before its own time begins."""

    def __init__(self, log: SampleLog, schedule: Arrivals, most_seconds_late: float) -> None:
        self._log = log
        self._start_of = schedule.start_of
        self._most_late = most_seconds_late
        self._began = 0.0

    def admits(self, number: int) -> bool:
        """Return whether to send the request now. Record a request that is not sent: it takes no time."""
        began = self._began
        if not began:
            began = self._began = self._log.schedule_began
        if number < 0 or not began:  # the warm-up has no schedule
            return True
        now = perf_counter()
        late = now - began - self._start_of(number)
        if late <= self._most_late:
            return True
        code = self._log.error_code(DROPPED, f"not sent: {late:.3f} s behind its planned start")
        self._log.write_late(number, now, 0.0, 0, 0, code)
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
