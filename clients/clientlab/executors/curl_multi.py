"""libcurl's multi interface: many transfers driven from one thread, without an event loop of Python's."""

from __future__ import annotations

import contextlib
import io
import select
from collections.abc import Iterator
from dataclasses import dataclass, field

import pycurl

from clientlab.executors.shape import Bench, Numbers
from clientlab.workload import Request

_EVENTS = {
    pycurl.POLL_IN: select.POLLIN,
    pycurl.POLL_OUT: select.POLLOUT,
    pycurl.POLL_INOUT: select.POLLIN | select.POLLOUT,
}


@dataclass
class _Transfer:
    """An easy handle, used again and again, and the request that it sends now."""

    handle: pycurl.Curl
    number: int = 0
    request: Request | None = None
    body: io.BytesIO = field(default_factory=io.BytesIO)

    def take(self) -> bytes:
        """The whole body, of which nothing is kept here; BytesIO hands its own over and makes no copy."""
        body = self.body.getvalue()
        self.clear()
        return body

    def clear(self) -> None:
        self.body.seek(0)
        self.body.truncate()


class CurlMulti:
    """A transfer for each request in flight, in one `pycurl.CurlMulti`; libcurl says which sockets to wait for.

    No more are begun than the pool has connections: one that waits for a connection has its time limit run.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def open(self) -> None:
        self._record = self._bench.record(self._bench.concurrency)
        self._client = self._record.client
        transfers = min(self._bench.concurrency, self._client.connections or self._bench.concurrency)
        self._sockets = select.poll()  # cheaper than epoll here: libcurl changes its mind twice a request
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_MAXCONNECTS, transfers)
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, self._client.connections or 0)
        made = (_Transfer(self._client.new_handle()) for _ in range(transfers))
        self._transfers = {transfer.handle: transfer for transfer in made}
        for transfer in self._transfers.values():
            transfer.handle.setopt(pycurl.WRITEFUNCTION, transfer.body.write)

    def run(self, numbers: Numbers) -> None:
        coming = iter(numbers)
        running = sum(self._begin(transfer, coming) for transfer in self._transfers.values())
        while running:
            self._wait()
            for transfer in self._ended():
                running -= not self._begin(transfer, coming)

    def close(self) -> None:
        self._record.close()
        self._multi.close()

    def _begin(self, transfer: _Transfer, coming: Iterator[int]) -> bool:
        """Send the next request, if there is one."""
        number = next(coming, None)
        if number is None:
            return False
        transfer.number = number
        request = self._record.begin(number)
        if request is not transfer.request:
            self._client.set_request(transfer.handle, request)
            transfer.request = request
        self._multi.add_handle(transfer.handle)
        return True

    def _wait(self) -> None:
        """Let libcurl go on wherever it can, or when one of its time limits has passed."""
        milliseconds = self._multi.timeout()
        ready = self._sockets.poll(milliseconds if milliseconds >= 0 else None)
        for socket, events in ready:
            can_write = pycurl.CSELECT_OUT if events & select.POLLOUT else 0
            can_read = pycurl.CSELECT_IN if events & ~select.POLLOUT else 0  # or has failed, which reading tells
            self._multi.socket_action(socket, can_read | can_write)
        if not ready:
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def _ended(self) -> Iterator[_Transfer]:
        """The transfers that have ended, each told to the record."""
        queued = 1
        while queued:
            queued, succeeded, failed = self._multi.info_read()
            for handle in succeeded:
                transfer = self._transfers[handle]
                self._record.finish(transfer.number, self._client.status_of(handle), transfer.take())
                yield self._free(transfer)
            for handle, code, message in failed:
                transfer = self._transfers[handle]
                self._record.fail(transfer.number, self._client.fault_of(handle, code, message))
                transfer.clear()
                yield self._free(transfer)

    def _free(self, transfer: _Transfer) -> _Transfer:
        self._multi.remove_handle(transfer.handle)
        return transfer

    def _watch(self, what: int, socket: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        """Note which events of a socket libcurl waits for, as it says."""
        if what in _EVENTS:
            self._sockets.register(socket, _EVENTS[what])
        else:
            with contextlib.suppress(KeyError):
                self._sockets.unregister(socket)
