"""The recorder owns the clock: the few lines of this file time every request of every strategy.

The timed span is the same for all strategies: from just before the send to the last byte of the body. It includes
parsing and encoding if the workload has `parse` or `encode` = ``each``. Building the request is off the clock.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from clientlab.clients.client_interface import AsyncClient, Client
from clientlab.executors.executor_interface import AsyncCaller, Caller
from clientlab.measuring import connections
from clientlab.measuring.context import TrialContext
from clientlab.measuring.recording import PacedAsyncioCaller, PacedCaller, Recording
from clientlab.measuring.sending import AsyncSend, Current, Send, all_at_once, asend_of, send_of
from clientlab.measuring.tool_trials import ToolRecorder
from clientlab.samples.log import write_record
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Request, encodes_each


@dataclass(frozen=True)
class CallerFactory:
    """Opens the callers of a trial, for an executor. It can be sent to other processes."""

    context: TrialContext

    @property
    def concurrency(self) -> int:
        return self.context.concurrency

    @property
    def warm(self) -> bool:
        return self.context.warm

    @property
    def schedule(self) -> Arrivals | None:
        return arrivals_of(self.context.workload)

    def open(self, connections: int) -> Caller:
        recording = Recording(self.context, connections)
        caller = (TimedCaller if self.context.workload.elapsed else BlockingCaller)(recording, connections)
        return caller if recording.admission is None else PacedCaller(caller, recording.admission)

    async def aopen(self, connections: int) -> AsyncCaller:
        recording = Recording(self.context, connections)
        caller = (AsyncioTimedCaller if self.context.workload.elapsed else AsyncioCaller)(recording)
        await caller.open()
        return caller if recording.admission is None else PacedAsyncioCaller(caller, recording.admission)

    def record(self, connections: int) -> SteppedCaller:
        return SteppedCaller(Recording(self.context, connections))

    def drive(self) -> ToolRecorder:
        return ToolRecorder(Path(self.context.folder), Recording(self.context, self.concurrency))

    def loop_factory(self, name: str) -> connections.LoopFactory:
        return connections.factory(name)


class BlockingCaller:
    """Sends requests with a blocking client and records them. An error of the client is a record, not an exception."""

    def __init__(self, recording: Recording, connections: int) -> None:
        workload = recording.context.workload
        self._recording = recording
        self.client: Client = recording.client
        self.client.open()
        self._send = send_of(self.client, workload)
        if recording.context.warm and connections > 1:
            self._send = all_at_once(self._send, connections, self._replace_send)
        self._encodes = encodes_each(workload)
        self._parses = workload.parse

    def __call__(self, number: int) -> None:
        self.send_all((number,))

    def send_all(self, numbers: Iterable[int], send: Send | None = None) -> None:
        """Time each request. All names are local variables, because every request pays for each look-up."""
        recording, send = self._recording, send or self._send
        log, request_of, same = recording.log, recording.request, recording.same
        buffer, base, stride, no_room = log.buffer, log.base, log.stride, struct.error
        encodes, parses = self._encodes, self._parses
        for number in numbers:
            request = same or (None if encodes else request_of(number))
            start = perf_counter()
            try:
                status, body = send(request or request_of(number))
                if parses and status < 400:
                    json.loads(body)
            except Exception as error:  # noqa: BLE001 - every exception of a client is a result
                seconds = perf_counter() - start
                status, body, code = 0, b"", recording.failed(error)
            else:
                seconds = perf_counter() - start
                code = recording.refused(status) if status >= 400 else 0
            try:
                write_record(buffer, number * stride + base, start, seconds, len(body), status, code, 1)
            except no_room:
                buffer = log.write_late(number, start, seconds, len(body), status, code)
            body = b""  # otherwise two bodies would be in memory while the next one is read

    def close(self) -> None:
        self.client.close()
        self._recording.close()

    def _replace_send(self, send: Send) -> None:
        self._send = send


class SteppedCaller:
    """Times requests in steps, for an executor that drives the client itself: `begin`, then `finish` or `fail`."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.client = recording.client
        self.client.open()
        self._encodes = encodes_each(recording.context.workload)
        self._parses = recording.context.workload.parse
        self._starts: dict[int, float] = {}

    def admits(self, number: int) -> bool:
        admission = self._recording.admission
        return admission is None or admission.admits(number)

    def begin(self, number: int) -> Request:
        recording = self._recording
        request = recording.same or (None if self._encodes else recording.request(number))
        self._starts[number] = perf_counter()
        return request or recording.request(number)

    def finish(self, number: int, status: int, body: bytes) -> None:
        try:
            if self._parses and status < 400:
                json.loads(body)
        except Exception as error:  # noqa: BLE001 - a body that is no JSON is a result
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
            write_record(log.buffer, number * log.stride + log.base, start, seconds, size, status, code, 1)
        except struct.error:
            log.write_late(number, start, seconds, size, status, code)


class AsyncioCaller:
    """Sends requests with an asyncio client and records them; like `BlockingCaller`, with `await`."""

    def __init__(self, recording: Recording) -> None:
        workload = recording.context.workload
        self._recording = recording
        self._client: AsyncClient = recording.client
        self._send = asend_of(self._client, workload)
        self._encodes = encodes_each(workload)
        self._parses = workload.parse

    async def open(self) -> None:
        """Open the client in the running loop."""
        await self._client.open()

    async def __call__(self, number: int) -> None:
        await self.send_all((number,))

    async def send_all(self, numbers: Iterable[int], send: AsyncSend | None = None) -> None:
        """The measuring itself, as in `BlockingCaller`."""
        recording, send = self._recording, send or self._send
        log, request_of, same = recording.log, recording.request, recording.same
        buffer, base, stride, no_room = log.buffer, log.base, log.stride, struct.error
        encodes, parses = self._encodes, self._parses
        for number in numbers:
            request = same or (None if encodes else request_of(number))
            start = perf_counter()
            try:
                status, body = await send(request or request_of(number))
                if parses and status < 400:
                    json.loads(body)
            except Exception as error:  # noqa: BLE001 - every exception of a client is a result
                seconds = perf_counter() - start
                status, body, code = 0, b"", recording.failed(error)
            else:
                seconds = perf_counter() - start
                code = recording.refused(status) if status >= 400 else 0
            try:
                write_record(buffer, number * stride + base, start, seconds, len(body), status, code, 1)
            except no_room:
                buffer = log.write_late(number, start, seconds, len(body), status, code)
            body = b""

    async def close(self) -> None:
        await self._client.close()
        self._recording.close()


class TimedCaller(BlockingCaller):
    """Also records the library's own time of each request, before its record is done."""

    def send_all(self, numbers: Iterable[int], send: Send | None = None) -> None:  # noqa: ARG002 - its own
        client: Any = self.client
        log, current = self._recording.log, Current()

        def send_timed(request: Request) -> tuple[int, bytes]:
            status, body, seconds = client.timed(request)
            log.write_elapsed(current.number, seconds)
            return status, body

        super().send_all(current.follow(numbers), send_timed)


class AsyncioTimedCaller(AsyncioCaller):
    """Also records the library's own time of each request, before its record is done."""

    async def send_all(self, numbers: Iterable[int], send: AsyncSend | None = None) -> None:  # noqa: ARG002 - its own
        client: Any = self._client
        log, current = self._recording.log, Current()

        async def send_timed(request: Request) -> tuple[int, bytes]:
            status, body, seconds = await client.timed(request)
            log.write_elapsed(current.number, seconds)
            return status, body

        await super().send_all(current.follow(numbers), send_timed)
