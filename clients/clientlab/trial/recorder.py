"""The recorder: measures the latency of every request.

Only external programs such as ab time their own.

The timed span begins just before the client's `send` and ends when `send` has returned
the last byte of the body. It includes encoding the request (`encode` = ``each``) and
parsing the response (`parse`) if the workload asks for them. Building the request and
writing its record are off the clock.

`BlockingCaller.send_all` is the loop that does this. `AsyncioCaller.send_all` is the
same loop with `await`, and `SteppedCaller` times the same span for executors that drive
their client themselves.
"""

from __future__ import annotations

import json
import math
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from clientlab.errors import PluginError
from clientlab.executors.executor_interface import AsyncCaller, Caller
from clientlab.executors.pacing import PacedNumbers
from clientlab.trial.context import TrialContext
from clientlab.trial.event_recorder import choose_sinks
from clientlab.trial.recording import (
    Admission,
    Recording,
    ToolRecorder,
    find_loop_factory,
)
from clientlab.trial.sample_log import SampleLog, write_record
from clientlab.workload.load import Arrivals, arrivals_of
from clientlab.workload.workload import Request, Workload

Send = Callable[..., Any]
"""Sends a request, and returns its status and an object with the body's length.

It may return an awaitable of both. Some methods of clients take a sink, too, or return
seconds as well.
"""

Follow = Callable[[Iterable[int], Send], tuple[Iterable[int], Send]]
"""Returns the same numbers, and a `Send` that knows the number of its request."""


@dataclass(frozen=True)
class CallerFactory:
    """Opens the callers of a trial, for an executor.

    It can be sent to other processes.
    """

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
        recording.client.open()
        return BlockingCaller(recording, connections)

    async def aopen(self, connections: int) -> AsyncCaller:
        recording = Recording(self.context, connections)
        await recording.client.open()
        if recording.admission is None:
            return AsyncioCaller(recording, awaited=True)
        return PacedAsyncioCaller(recording, recording.admission)

    def record(self, connections: int) -> SteppedCaller:
        workload = self.context.workload
        if workload.reading.first_byte or workload.stream:
            raise PluginError(
                "an executor that drives its client reads no body as it arrives; choose"
                " another one"
            )
        return SteppedCaller(Recording(self.context, connections))

    def drive(self) -> ToolRecorder:
        return ToolRecorder(Recording(self.context, self.concurrency))

    loop_factory = staticmethod(find_loop_factory)


class _Caller:
    """What callers with a blocking and with an asyncio client have in common."""

    def __init__(self, recording: Recording, *, awaited: bool) -> None:
        self._recording = recording
        self.client = recording.client
        send = choose_send(self.client, recording.context.workload, awaited=awaited)
        self._send = recording.wrap_send(send, awaited=awaited)
        self._follow = choose_follower(recording, awaited=awaited)


class BlockingCaller(_Caller):
    """Sends requests with a blocking client, which is open, and records them.

    An error of the client is a record, not an exception.

    Several threads may share a caller. In an open load, it leaves out requests that are
    too late.
    """

    def __init__(self, recording: Recording, connections: int) -> None:
        super().__init__(recording, awaited=False)
        if recording.context.warm and connections > 1:
            self._send = self._gather_threads(self._send, connections)

    def __call__(self, number: int) -> None:
        self.send_all((number,))

    def send_all(self, numbers: Iterable[int]) -> None:
        """Time each request.

        All names are local variables because every request pays for each look-up.
        """
        recording = self._recording
        send = self._send
        if recording.admission is not None:
            numbers = filter(recording.admission.admits, numbers)
        if self._follow is not None:
            numbers, send = self._follow(numbers, send)
        request_of = recording.request
        same = recording.same
        same_from = recording.find_same_from()
        encodes = recording.encodes
        parses = recording.parses
        refuses_from = recording.refuses_from
        log = recording.log
        buffer = log.buffer
        base = log.base
        stride = log.stride
        for number in numbers:
            if number >= same_from:
                request = same
            elif encodes:
                request = None
            else:
                request = request_of(number)
            start = perf_counter()
            try:
                status, body = send(request or request_of(number))
                if parses and (status < refuses_from or not recording.refused(status)):
                    json.loads(body)
            except Exception as error:  # noqa: BLE001 - every exception of a client is a result
                seconds = perf_counter() - start
                status = 0
                body = b""
                code = recording.failed(error, seconds)
            else:
                seconds = perf_counter() - start
                code = recording.refused(status) if status >= refuses_from else 0
            place = number * stride + base
            try:
                write_record(buffer, place, start, seconds, len(body), status, code, 1)
            except struct.error:
                buffer = log.write_late(number, start, seconds, len(body), status, code)
            # Otherwise two bodies would be in memory while the next one is read.
            body = b""

    def close(self) -> None:
        self.client.close()
        self._recording.close()

    def _gather_threads(self, send: Send, threads: int) -> Send:
        """Return a `send` that waits until each thread has a request, at most for 5 s.

        So all threads get warm.
        """

        def stop_waiting() -> None:
            self._send = send

        gate = threading.Barrier(threads, stop_waiting)

        def wait_and_send(*arguments: Any) -> Any:
            if self._send is not send:
                try:
                    gate.wait(5.0)
                except threading.BrokenBarrierError:
                    stop_waiting()
            return send(*arguments)

        return wait_and_send


class AsyncioCaller(_Caller):
    """Sends requests with an asyncio client, which is open, and records them."""

    async def __call__(self, number: int) -> None:
        await self.send_all((number,))

    async def send_all(self, numbers: Iterable[int]) -> None:
        """Time each request, as `BlockingCaller.send_all` does."""
        recording = self._recording
        send = self._send
        if self._follow is not None:
            numbers, send = self._follow(numbers, send)
        request_of = recording.request
        same = recording.same
        same_from = recording.find_same_from()
        encodes = recording.encodes
        parses = recording.parses
        refuses_from = recording.refuses_from
        log = recording.log
        buffer = log.buffer
        base = log.base
        stride = log.stride
        for number in numbers:
            if number >= same_from:
                request = same
            elif encodes:
                request = None
            else:
                request = request_of(number)
            start = perf_counter()
            try:
                status, body = await send(request or request_of(number))
                if parses and (status < refuses_from or not recording.refused(status)):
                    json.loads(body)
            except Exception as error:  # noqa: BLE001 - every exception of a client is a result
                seconds = perf_counter() - start
                status = 0
                body = b""
                code = recording.failed(error, seconds)
            else:
                seconds = perf_counter() - start
                code = recording.refused(status) if status >= refuses_from else 0
            place = number * stride + base
            try:
                write_record(buffer, place, start, seconds, len(body), status, code, 1)
            except struct.error:
                buffer = log.write_late(number, start, seconds, len(body), status, code)
            body = b""

    async def close(self) -> None:
        await self.client.close()
        self._recording.close()


class PacedAsyncioCaller(AsyncioCaller):
    """Sends each request of an open load at its planned start.

    It leaves out those that are too late.
    """

    def __init__(self, recording: Recording, admission: Admission) -> None:
        super().__init__(recording, awaited=True)
        self._admits = admission.admits

    async def __call__(self, number: int) -> None:
        if self._admits(number):
            await super().send_all((number,))

    async def send_all(self, numbers: Iterable[int]) -> None:
        if not isinstance(numbers, PacedNumbers):
            await super().send_all(filter(self._admits, numbers))
            return
        async for number in numbers:
            if self._admits(number):
                await super().send_all((number,))
            else:
                await numbers.rest()


class SteppedCaller:
    """Times requests for an executor that drives the client itself.

    It calls `begin`, then `finish` or `fail`.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.client = recording.client
        self.client.open()
        self._starts: dict[int, float] = {}
        self._same_from = math.inf

    def admits(self, number: int) -> bool:
        admission = self._recording.admission
        return admission is None or admission.admits(number)

    def begin(self, number: int) -> Request:
        recording = self._recording
        if not self._starts:  # a slice may begin
            self._same_from = recording.find_same_from()
        if number >= self._same_from:
            request = recording.same
        else:
            request = None if recording.encodes else recording.request(number)
        self._starts[number] = perf_counter()
        return request or recording.request(number)

    def finish(self, number: int, status: int, body: bytes) -> None:
        recording = self._recording
        try:
            if recording.parses and (
                status < recording.refuses_from or not recording.refused(status)
            ):
                json.loads(body)
        except Exception as error:  # noqa: BLE001 - a body that is not JSON is a result
            self.fail(number, error)
        else:
            seconds = perf_counter() - self._starts[number]
            code = recording.refused(status) if status >= recording.refuses_from else 0
            self._write(number, seconds, len(body), status, code)

    def fail(self, number: int, error: Exception) -> None:
        seconds = perf_counter() - self._starts[number]
        code = self._recording.failed(error, seconds)
        self._write(number, seconds, 0, 0, code)

    def close(self) -> None:
        self.client.close()
        self._recording.close()

    def _write(
        self, number: int, seconds: float, size: int, status: int, code: int
    ) -> None:
        log = self._recording.log
        start = self._starts.pop(number)
        place = number * log.stride + log.base
        try:
            write_record(log.buffer, place, start, seconds, size, status, code, 1)
        except struct.error:
            log.write_late(number, start, seconds, size, status, code)


def choose_send(client: Any, workload: Workload, *, awaited: bool) -> Send:
    """Return the client's method that sends a request of this workload.

    If the workload reads chunks, return a function around that method. It is chosen
    once per caller, so the timed lines are the same for all workloads.
    """
    reading = workload.reading
    if workload.stream is not None and hasattr(client, "events"):
        method = client.events
    elif workload.stream is not None or reading.first_byte:
        method = client.stream
    elif reading.elapsed:
        method = client.timed
    elif reading.read == "chunks":
        method = _count_bytes(client.stream, awaited=awaited)
    else:
        method = client.send
    return method  # type: ignore[no-any-return]


def choose_follower(recording: Recording, *, awaited: bool) -> Follow | None:
    """Return what makes a `send` that knows the number of its request.

    Return None if the workload needs no such `send`.
    """
    workload = recording.context.workload
    log = recording.log
    if workload.stream is not None:
        new_sink = choose_sinks(log, workload.stream, recording.client)
        return partial(_follow_sinks, new_sink, awaited=awaited)
    if workload.reading.first_byte:
        return partial(_follow_sinks, partial(_FirstByteSink, log), awaited=awaited)
    if workload.reading.elapsed:
        return partial(_follow_times, log, awaited=awaited)
    return None


def _count_bytes(stream: Send, *, awaited: bool) -> Send:
    """Return a `send` that keeps only the size of the body.

    A sink with methods, as below, would cost more than these closures.
    """

    def send(request: Request) -> tuple[int, range]:
        size = 0

        def discard(chunk: bytes) -> None:
            nonlocal size
            size += len(chunk)

        return stream(request, discard), range(size)

    async def send_awaited(request: Request) -> tuple[int, range]:
        size = 0

        def discard(chunk: bytes) -> None:
            nonlocal size
            size += len(chunk)

        return await stream(request, discard), range(size)

    return send_awaited if awaited else send


class _FirstByteSink:
    """Logs the seconds since the first byte of the body came; 0 if there was none.

    Only the recorder knows when the timed span began, but the span ends when `send`
    returns. So the time to the first byte is the span without these seconds.
    """

    __slots__ = ("_came", "_log", "_number", "size")

    def __init__(self, log: SampleLog, number: int) -> None:
        self._log = log
        self._number = number
        self.size = 0

    def take(self, chunk: bytes) -> None:
        if not self.size:
            self._came = perf_counter()
        self.size += len(chunk)

    def finish(self, _status: int) -> None:
        seconds = perf_counter() - self._came if self.size else 0.0
        self._log.write_elapsed(self._number, seconds)


def _follow_sinks(
    new_sink: Callable[[int], Any],
    numbers: Iterable[int],
    read: Send,
    *,
    awaited: bool,
) -> tuple[Iterable[int], Send]:
    """Return a `send` that reads each response into a new sink.

    `new_sink`: from the number of a request to its sink. `read`: a client's method that
    gives each piece to the sink, and returns the status.
    """
    current = 0

    def follow() -> Iterator[int]:
        nonlocal current
        for current in numbers:  # noqa: UP028 - `send` needs the number
            yield current

    def send(request: Request) -> tuple[int, range]:
        sink = new_sink(current)
        status = read(request, sink.take)
        sink.finish(status)
        return status, range(sink.size)

    async def send_awaited(request: Request) -> tuple[int, range]:
        sink = new_sink(current)
        status = await read(request, sink.take)
        sink.finish(status)
        return status, range(sink.size)

    return follow(), send_awaited if awaited else send


def _follow_times(
    log: SampleLog, numbers: Iterable[int], timed: Send, *, awaited: bool
) -> tuple[Iterable[int], Send]:
    """Return a `send` that logs the library's own seconds, the third value of `timed`.

    They are logged before the request's record is done.
    """
    current = 0

    def follow() -> Iterator[int]:
        nonlocal current
        for current in numbers:  # noqa: UP028 - `send` needs the number
            yield current

    def send(request: Request) -> tuple[int, Any]:
        status, body, seconds = timed(request)
        log.write_elapsed(current, seconds)
        return status, body

    async def send_awaited(request: Request) -> tuple[int, Any]:
        status, body, seconds = await timed(request)
        log.write_elapsed(current, seconds)
        return status, body

    return follow(), send_awaited if awaited else send
