"""libcurl's multi interface: one thread drives many transfers without asyncio."""

from __future__ import annotations

import contextlib
import io
import math
import select
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pycurl

from clientlab.executors.executor_interface import (
    Executor,
    ExecutorSpec,
    RequestNumbers,
)
from clientlab.executors.pacing import KernelTimer, PacedNumbers, has_kernel_timer
from clientlab.workload.workload import Request

_EVENTS = {
    pycurl.POLL_IN: select.POLLIN,
    pycurl.POLL_OUT: select.POLLOUT,
    pycurl.POLL_INOUT: select.POLLIN | select.POLLOUT,
}


@dataclass
class _Transfer:
    """A reused easy handle, and the request that it sends now."""

    handle: pycurl.Curl
    number: int = 0
    request: Request | None = None
    body: io.BytesIO = field(default_factory=io.BytesIO)

    def take_body(self) -> bytes:
        """Return the whole body and forget it.

        BytesIO passes its buffer on without a copy.
        """
        body = self.body.getvalue()
        self.body.seek(0)
        self.body.truncate()
        return body


@ExecutorSpec("multi", only=("pycurl",), policy="pool", drives_client=True)
class CurlMulti(Executor):
    """libcurl's multi interface: one handle per request in flight, all driven by one
    thread.

    There are no more transfers than connections, because the time limit of a waiting
    transfer would already run.
    """

    def open(self) -> None:
        concurrency = self._context.concurrency
        self._record = self._context.record(concurrency)
        self._client = self._record.client
        connections = self._client.connections or 0  # 0: no limit
        transfers = min(concurrency, connections or concurrency)
        # Cheaper than epoll: libcurl changes the events of a socket twice per request.
        self._sockets = select.poll()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_MAXCONNECTS, transfers)
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        self._transfers = {}
        for _ in range(transfers):
            transfer = _Transfer(self._client.new_handle())
            transfer.handle.setopt(pycurl.WRITEFUNCTION, transfer.body.write)
            self._transfers[transfer.handle] = transfer

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            self._run_paced(numbers)
            return
        coming = iter(numbers)
        running = 0
        for transfer, first in zip(self._transfers.values(), coming, strict=False):
            self._start(transfer, first)
            running += 1
        while running:
            # A negative number of milliseconds sets no limit.
            self._continue(self._sockets.poll(self._multi.timeout()))
            for transfer in self._record_ended():
                number = next(coming, None)
                if number is None:
                    running -= 1
                else:
                    self._start(transfer, number)

    def close(self) -> None:
        self._record.close()
        self._multi.close()

    def _start(self, transfer: _Transfer, number: int) -> None:
        transfer.number = number
        request = self._record.begin(number)
        if request is not transfer.request:
            self._client.set_request(transfer.handle, request)
            transfer.request = request
        self._multi.add_handle(transfer.handle)

    def _run_paced(self, numbers: PacedNumbers) -> None:
        """Start each request with the next free transfer at its planned start."""
        free = list(self._transfers.values())
        timer = KernelTimer() if has_kernel_timer() else None
        if timer is not None:
            self._sockets.register(timer.descriptor, select.POLLIN)
        while True:
            while free and (number := numbers.take_due()) is not None:
                if self._record.admits(number):
                    self._start(free.pop(), number)
            if numbers.next_start is None and len(free) == len(self._transfers):
                break
            start = numbers.next_start if free else None
            milliseconds = self._multi.timeout()
            limits = [milliseconds] if milliseconds >= 0 else []
            if timer is not None:
                timer.set(start)
            elif start is not None:
                limits.append(max(0, math.ceil(1000 * (start - time.perf_counter()))))
            ready = self._sockets.poll(min(limits, default=None))
            if timer is not None:
                ready = [event for event in ready if event[0] != timer.descriptor]
            self._continue(ready)
            free += self._record_ended()
        if timer is not None:
            self._sockets.unregister(timer.descriptor)
            timer.close()

    def _continue(self, ready: Sequence[tuple[int, int]]) -> None:
        """Let libcurl continue: with ready sockets, or after a time limit."""
        for socket, events in ready:
            actions = 0
            if events & select.POLLOUT:
                actions |= pycurl.CSELECT_OUT
            if events & ~select.POLLOUT:  # libcurl finds errors when it reads
                actions |= pycurl.CSELECT_IN
            self._multi.socket_action(socket, actions)
        if not ready:
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def _record_ended(self) -> Iterator[_Transfer]:
        """Record the transfers that have ended, and yield them."""
        queued = 1
        while queued:
            queued, succeeded, failed = self._multi.info_read()
            for handle in succeeded:
                transfer = self._transfers[handle]
                status = self._client.read_status(handle)
                self._record.finish(transfer.number, status, transfer.take_body())
                self._multi.remove_handle(handle)
                yield transfer
            for handle, code, message in failed:
                transfer = self._transfers[handle]
                fault = self._client.make_error(handle, code, message)
                self._record.fail(transfer.number, fault)
                transfer.take_body()
                self._multi.remove_handle(handle)
                yield transfer

    def _watch(
        self, what: int, socket: int, _multi: pycurl.CurlMulti, _data: object
    ) -> None:
        """Callback of libcurl: register the events of a socket that it waits for."""
        if what in _EVENTS:
            self._sockets.register(socket, _EVENTS[what])
        else:
            with contextlib.suppress(KeyError):
                self._sockets.unregister(socket)
