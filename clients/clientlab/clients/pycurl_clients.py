"""pycurl with one easy handle per thread, over HTTP/1.1 or HTTP/2. libcurl keeps the connection of the handle."""

from __future__ import annotations

import threading
from typing import ClassVar

import pycurl

from clientlab.clients.client_interface import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.libcurl import kind_of, limits_of
from clientlab.errors import CONNECT_KINDS, ErrorTable, Fault
from clientlab.workload.making import Upload
from clientlab.workload.workload import Request


class _ThreadHandle(threading.local):
    """The state of a thread: its handle, and the request that the handle is set up for."""

    handle: pycurl.Curl | None = None
    request: Request | None = None


class PycurlHandle:
    """One easy handle per thread: a handle shared by threads aborts the interpreter."""

    errors: ClassVar[ErrorTable] = ()
    version: ClassVar[int] = pycurl.CURL_HTTP_VERSION_1_1  # by default, libcurl negotiates HTTP/2 over TLS

    def __init__(self, budget: Budget, opened: Opened, *, forbid_reuse: bool = False) -> None:
        self._budget = budget
        self.connections = budget.connections
        # Within the range of libcurl, which passes at most 16 KiB at a time.
        self._buffer = min(max(budget.chunk_size, 1024), 10 << 20)
        self._forbid_reuse = forbid_reuse
        self._opened = opened
        self._of_thread = _ThreadHandle()
        self._all: list[pycurl.Curl] = []

    def open(self) -> None:
        """Do nothing: each thread makes its own handle."""

    def send(self, request: Request) -> StatusAndBody:
        handle = self._handle(request)
        try:
            body: bytes = handle.perform_rb()
        except pycurl.error as error:
            raise self.fault_of(handle, *error.args[:2]) from error
        return self.status_of(handle), body

    def stream(self, request: Request, sink: Sink) -> int:
        handle = self._handle(request)
        handle.setopt(pycurl.BUFFERSIZE, self._buffer)
        handle.setopt(pycurl.WRITEFUNCTION, sink)
        try:
            handle.perform()
        except pycurl.error as error:
            raise self.fault_of(handle, *error.args[:2]) from error
        return self.status_of(handle)

    def close(self) -> None:
        for handle in self._all:
            handle.close()

    def _handle(self, request: Request) -> pycurl.Curl:
        """Return this thread's handle, set up for the request."""
        mine = self._of_thread
        handle = mine.handle
        if handle is None:
            handle = mine.handle = self.new_handle()
            mine.request = None
        if mine.request is not request:
            self.set_request(handle, request)
            # A streamed upload is exhausted after one request.
            mine.request = None if isinstance(request.body, Upload) else request
        return handle

    def new_handle(self) -> pycurl.Curl:
        """Return an easy handle with the budget's limits, which is closed with the client."""
        handle = pycurl.Curl()
        handle.setopt(pycurl.NOSIGNAL, 1)  # time limits by signal are for single-threaded programs
        for option, value in limits_of(self._budget.timeout).items():
            handle.setopt(option, value)
        handle.setopt(pycurl.HTTP_VERSION, self.version)
        if self._budget.ca_file is not None:
            handle.setopt(pycurl.CAINFO, self._budget.ca_file)
        handle.setopt(pycurl.FORBID_REUSE, int(self._forbid_reuse))
        self._all.append(handle)
        return handle

    @staticmethod
    def set_request(handle: pycurl.Curl, request: Request) -> None:
        """Set up an easy handle, used before or new, for one request."""
        handle.unsetopt(pycurl.CUSTOMREQUEST)
        handle.setopt(pycurl.HTTPGET, 1)
        if isinstance(request.body, Upload):
            handle.setopt(pycurl.POST, 1)
            handle.setopt(pycurl.POSTFIELDSIZE_LARGE, len(request.body))
            handle.setopt(pycurl.READFUNCTION, request.body.reader())
        elif request.body is not None:
            handle.setopt(pycurl.POSTFIELDS, request.body)
        if request.method == "HEAD":
            handle.setopt(pycurl.NOBODY, 1)
        elif request.method != ("GET" if request.body is None else "POST"):
            handle.setopt(pycurl.CUSTOMREQUEST, request.method)
        # An empty "Expect:" keeps libcurl from waiting for 100-continue before a large body.
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        handle.setopt(pycurl.HTTPHEADER, [*lines, "Expect:"])
        handle.setopt(pycurl.URL, request.url)

    def status_of(self, handle: pycurl.Curl) -> int:
        """Return the status of a finished transfer, and report the connections that it opened."""
        if handle.getinfo(pycurl.NUM_CONNECTS):
            self._opened()
        status: int = handle.getinfo(pycurl.RESPONSE_CODE)
        return status

    def fault_of(self, handle: pycurl.Curl, code: int, message: str) -> Fault:
        """Return libcurl's error as a fault, and report the connections that were opened."""
        has_head, is_connecting = bool(handle.getinfo(pycurl.HEADER_SIZE)), handle.getinfo(pycurl.REQUEST_SIZE) == 0
        kind = kind_of(code, message, has_head=has_head, is_connecting=is_connecting)
        if handle.getinfo(pycurl.NUM_CONNECTS) or kind in CONNECT_KINDS:
            self._opened()
        return Fault(kind, message)


class PycurlH2(PycurlHandle):
    """`PycurlHandle` that accepts HTTP/2 only."""

    version = pycurl.CURL_HTTP_VERSION_2TLS

    def send(self, request: Request) -> StatusAndBody:
        reply = super().send(request)
        self._check_version()
        return reply

    def stream(self, request: Request, sink: Sink) -> int:
        status = super().stream(request, sink)
        self._check_version()
        return status

    def _check_version(self) -> None:
        """Close a handle that has connected and fallen back to HTTP/1.1, which libcurl does silently."""
        handle = self._of_thread.handle
        if handle is None or not handle.getinfo(pycurl.NUM_CONNECTS):
            return
        if handle.getinfo(pycurl.INFO_HTTP_VERSION) != pycurl.CURL_HTTP_VERSION_2_0:
            self._all.remove(handle)
            handle.close()  # closes its connection too
            self._of_thread.handle = None
            raise Fault("protocol", "the server spoke HTTP/1 where HTTP/2 was asked for")
