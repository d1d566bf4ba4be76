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
from clientlab.workload.load import most_late, requests_in
from clientlab.workload.making import requests_of
from clientlab.workload.shard_workload import ShardWorkload
from clientlab.workload.workload import Workload, varies

_GUESSED_RATE = 20_000
"""Requests per second, for the size of the log of a trial that a duration ends."""

_logs: dict[tuple[int, str], tuple[SampleLog, int]] = {}
"""The logs that are not closed, each with the number of its recordings: threads may have a client each.

By process id, because a fork changes it, and by folder.
"""
_opening = threading.Lock()


def preallocate(context: TrialContext) -> None:
    """Make this process's log before the clock starts: making its files costs as much as some requests.

    `Recording` takes it. In a parent process whose children send the requests, it stays unused.
    """
    _logs[os.getpid(), context.folder] = _log_of(context), 0


class Recording:
    """A caller's part of a trial. `client` is made and not yet open; it may hold `connections_limit` connections.

    `request` makes request k. `same` is the one request of a workload whose requests are all alike, or None.
    """

    def __init__(self, context: TrialContext, connections_limit: int) -> None:
        plugins.admit([context.strategy.client])  # a process of a pool may be a fresh one
        spec = strategies.client_spec(context.strategy.client)
        client_class = strategies.load(spec.import_path)
        self.context = context
        self.log = _begun(context)
        usage.keep_status_open()
        self.errors: ErrorTable = (*getattr(client_class, "errors", ()), (json.JSONDecodeError, "protocol"))
        self.request = requests_of(context.workload, context.base_url, awaited=spec.kind == "asyncio")
        self.same = None if varies(context.workload) else self.request(0)
        self._counts = not spec.quirks.uncounted
        settings = strategies.chosen(context.strategy, spec.import_path)
        self.client: Any = client_class(_budget(context, connections_limit), self.log.connected, **settings)

    def failed(self, error: Exception) -> int:
        """The log's code of an exception. Counts a connection that was attempted and not opened.

        Raises a PluginError again: the client's code is wrong, and no request can succeed.
        """
        if isinstance(error, PluginError):
            raise error
        kind = kind_of(error, self.errors)
        if self._counts and unopened(error, kind):
            self.log.unopened()
        if (known := self.log.known_code(kind)) is not None:
            return known
        return self.log.error_code(kind, f"{type(error).__name__}: {error}")

    def refused(self, status: int) -> int:
        """The log's code of an error status (4xx, 5xx); 0 for all others."""
        kind = status_kind(status)
        return 0 if kind is None else self.log.error_code(kind, f"status {status}")

    def close(self) -> None:
        """Finish this caller's records, and with the last caller those of this process. No record may follow."""
        key = os.getpid(), self.context.folder
        with _opening:
            log, recordings = _logs.pop(key)
            if recordings > 1:
                _logs[key] = log, recordings - 1
                return
        connections.count_into(None, NOWHERE)
        log.close(usage.peak_rss())


def _budget(context: TrialContext, connections_limit: int) -> Budget:
    """The client's limits. The pool holds `connections_limit` connections, unless a setting of the strategy differs."""
    settings = context.strategy.settings
    pool = None if settings.get("library_defaults") else settings.get("pool", connections_limit) or 0
    return Budget(pool, context.workload.timeout, context.ca_file, context.workload.chunk_size)


def _begun(context: TrialContext) -> SampleLog:
    """This process's log, which counts the connections of the process from now on."""
    key = os.getpid(), context.folder
    with _opening:
        log, recordings = _logs.get(key) or (_log_of(context), 0)
        log.begin()
        connections.count_into(log, context.address)
        _logs[key] = log, recordings + 1
    return log


def _log_of(context: TrialContext) -> SampleLog:
    """This process's log, in the file of the whole trial."""
    whole, own = context.whole or context, context.workload
    shard, warm_up = own.index if context.whole and isinstance(own, ShardWorkload) else 0, whole.warm_up * whole.shards
    return SampleLog(Path(context.folder), -warm_up, warm_up + _expected(whole.workload), shard, whole.shards)


def _expected(workload: Workload) -> int:
    """Number of records to make room for; a guess where a duration ends the trial."""
    if (requests := requests_in(workload)) is not None:
        return requests
    return int((workload.duration or 0.0) * _GUESSED_RATE) + 1


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
