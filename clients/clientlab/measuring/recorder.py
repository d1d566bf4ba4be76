"""The recorder owns the clock: every request of every strategy is timed by the few lines of this file.

The span is the same for all: from just before the send to the whole body read (and parsed, where the
workload says so; and the payload encoded, where it says "each"). Building the request is off the clock.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from clientlab import strategies
from clientlab.clients.shape import AsyncClient, AsyncTiming, Budget, Client, Timing
from clientlab.measuring import connections, loops
from clientlab.measuring.driving import Driven
from clientlab.measuring.recording import Recording
from clientlab.measuring.sending import AsyncSend, Send, Turn, all_at_once, asend_of, send_of
from clientlab.sample import RECORD_SIZE, write_record
from clientlab.workload import Request, Workload, encodes_each


@dataclass(frozen=True)
class TrialBench:
    """All that a process needs to open a caller. Small and plain, so that it can be sent to others.

    `folder` takes a sample log a process. `address` tells the upstream's connections from others.
    `ca_file`: the PEM file of the CA that all clients trust, where it is not one of those they know.
    """

    strategy: strategies.Strategy
    workload: Workload
    base_url: str
    folder: str
    address: connections.Address
    ca_file: str | None = None

    @property
    def warm_up(self) -> int:
        """Requests that warm the connections up; they are numbered from below zero, up to -1."""
        return max(self.workload.warmup, self.concurrency) if self.warm else 0

    @property
    def warm(self) -> bool:
        return self.workload.connections == "warm"

    @property
    def concurrency(self) -> int:
        return self.strategy.in_flight(self.workload.concurrency, self.workload.requests)

    def open(self, connections: int) -> BlockingCaller:
        return (TimedCaller if self.workload.elapsed else BlockingCaller)(self, connections)

    def record(self, connections: int) -> SteppedCaller:
        return SteppedCaller(self, connections)

    def drive(self) -> Driven:
        return Driven(Path(self.folder), *_begun(self, self.concurrency))

    def loop_factory(self, name: str) -> loops.LoopFactory:
        """Makes the event loops of that name; see `loops`."""
        return loops.factory(name)

    async def aopen(self, connections: int) -> AsyncioCaller:
        caller = (AsyncioTimedCaller if self.workload.elapsed else AsyncioCaller)(self, connections)
        await caller.open()
        return caller


class BlockingCaller:
    """Sends requests with a blocking client and records them. Raises only what is the lab's own failure."""

    def __init__(self, bench: TrialBench, connections: int) -> None:
        self._recording, client = _begun(bench, connections)
        self.client: Client = client
        self.client.open()
        self._send = send_of(self.client, bench.workload)
        if bench.warm and connections > 1:
            self._send = all_at_once(self._send, connections, self._send_at_will)
        self._encodes = encodes_each(bench.workload)
        self._parses = bench.workload.parse
        self._tell = getattr(self.client, "tell", None)

    def __call__(self, number: int) -> None:
        self.drain((number,))

    def drain(self, numbers: Iterable[int], send: Send | None = None) -> None:
        """The measuring itself. Its names are at hand, since every request pays for each look-up."""
        recording, send = self._recording, send or self._send
        log, request_of, same = recording.log, recording.request, recording.same
        buffer, base, no_room = log.buffer, log.base, struct.error
        encodes, parses = self._encodes, self._parses
        for number in numbers:
            request = same or (None if encodes else request_of(number))
            start = perf_counter()
            try:
                status, body = send(request or request_of(number))
                if parses and status < 400:
                    json.loads(body)
            except Exception as error:  # noqa: BLE001 - whatever a client raises is a result
                seconds = perf_counter() - start
                status, body, code = 0, b"", recording.failed(error)
            else:
                seconds = perf_counter() - start
                code = recording.refused(status) if status >= 400 else 0
            try:
                write_record(buffer, number * RECORD_SIZE + base, start, seconds, len(body), status, code, 1)
            except no_room:
                buffer = log.write_late(number, start, seconds, len(body), status, code)
            body = b""  # or it is held while the next is read, and twice its size is in the peak
        if self._tell is not None:
            self._tell()

    def close(self) -> None:
        self.client.close()
        self._recording.close()

    def _send_at_will(self, send: Send) -> None:
        self._send = send


class SteppedCaller:
    """The same in steps, for an executor that drives the client itself: `begin`, then `finish` or `fail`."""

    def __init__(self, bench: TrialBench, connections: int) -> None:
        self._recording, self.client = _begun(bench, connections)
        self.client.open()
        self._encodes = encodes_each(bench.workload)
        self._parses = bench.workload.parse
        self._starts: dict[int, float] = {}

    def begin(self, number: int) -> Request:
        recording = self._recording
        request = recording.same or (None if self._encodes else recording.request(number))
        self._starts[number] = perf_counter()
        return request or recording.request(number)

    def finish(self, number: int, status: int, body: bytes) -> None:
        try:
            if self._parses and status < 400:
                json.loads(body)
        except Exception as error:  # noqa: BLE001 - as above
            self.fail(number, error)
        else:
            seconds = perf_counter() - self._starts[number]
            code = self._recording.refused(status) if status >= 400 else 0
            self._write(number, seconds, len(body), status, code)

    def fail(self, number: int, error: Exception) -> None:
        seconds = perf_counter() - self._starts[number]
        self._write(number, seconds, 0, 0, self._recording.failed(error))

    def close(self) -> None:
        self.client.close()
        self._recording.close()

    def _write(self, number: int, seconds: float, size: int, status: int, code: int) -> None:
        log, start = self._recording.log, self._starts.pop(number)
        try:
            write_record(log.buffer, number * RECORD_SIZE + log.base, start, seconds, size, status, code, 1)
        except struct.error:
            log.write_late(number, start, seconds, size, status, code)


class AsyncioCaller:
    """The same for a client of asyncio; what differs is the word `await`."""

    def __init__(self, bench: TrialBench, connections: int) -> None:
        self._recording, client = _begun(bench, connections)
        self._client: AsyncClient = client
        self._send = asend_of(self._client, bench.workload)
        self._encodes = encodes_each(bench.workload)
        self._parses = bench.workload.parse
        self._tell = getattr(self._client, "tell", None)

    async def open(self) -> None:
        """Open the client in the running loop."""
        await self._client.open()

    async def __call__(self, number: int) -> None:
        await self.drain((number,))

    async def drain(self, numbers: Iterable[int], send: AsyncSend | None = None) -> None:
        """The measuring itself, as in `BlockingCaller`."""
        recording, send = self._recording, send or self._send
        log, request_of, same = recording.log, recording.request, recording.same
        buffer, base, no_room = log.buffer, log.base, struct.error
        encodes, parses = self._encodes, self._parses
        for number in numbers:
            request = same or (None if encodes else request_of(number))
            start = perf_counter()
            try:
                status, body = await send(request or request_of(number))
                if parses and status < 400:
                    json.loads(body)
            except Exception as error:  # noqa: BLE001 - whatever a client raises is a result
                seconds = perf_counter() - start
                status, body, code = 0, b"", recording.failed(error)
            else:
                seconds = perf_counter() - start
                code = recording.refused(status) if status >= 400 else 0
            try:
                write_record(buffer, number * RECORD_SIZE + base, start, seconds, len(body), status, code, 1)
            except no_room:
                buffer = log.write_late(number, start, seconds, len(body), status, code)
            body = b""
        if self._tell is not None:
            self._tell()

    async def close(self) -> None:
        await self._client.close()
        self._recording.close()


class TimedCaller(BlockingCaller):
    """Keeps the library's own measure of each request beside the lab's."""

    def drain(self, numbers: Iterable[int], send: Send | None = None) -> None:
        turn = Turn(self._recording.log, numbers)
        super().drain(turn, send or turn.sending(cast("Timing", self.client)))


class AsyncioTimedCaller(AsyncioCaller):
    """The same for a client of asyncio."""

    async def drain(self, numbers: Iterable[int], send: AsyncSend | None = None) -> None:
        turn = Turn(self._recording.log, numbers)
        await super().drain(turn, send or turn.asending(cast("AsyncTiming", self._client)))


def _begun(bench: TrialBench, connections: int) -> tuple[Recording, Any]:
    """This process's recording, and the strategy's client with those of its settings that it takes."""
    row = strategies.client_row(bench.strategy.client)
    client_class = strategies.load(row.place)
    recording = Recording(bench, getattr(client_class, "errors", ()), awaited=row.kind == "asyncio")
    settings = strategies.chosen(bench.strategy, row.place)
    return recording, client_class(_budget(bench, connections), recording.log.connected, **settings)


def _budget(bench: TrialBench, connections: int) -> Budget:
    """The budget: as many connections as there may be requests in flight, unless a setting says otherwise."""
    settings = bench.strategy.settings
    pool = None if settings.get("library_defaults") else settings.get("pool", connections) or 0
    return Budget(pool, bench.workload.timeout, bench.ca_file, bench.workload.chunk_size)
