"""pycurl with one easy handle per thread, over HTTP/1.1 or HTTP/2. libcurl keeps the
connection of the handle.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import ClassVar

import pycurl

from clientlab.clients.client_interface import (
    LIBCURL_QUIRKS,
    Budget,
    Client,
    ClientSpec,
    Opened,
    Sink,
    StatusAndBody,
)
from clientlab.clients.libcurl import classify_error, make_limits
from clientlab.errors import CONNECT_KINDS, ClientError, ErrorTable
from clientlab.workload.parts import DEFAULT_CHUNK_SIZE
from clientlab.workload.requests import Upload
from clientlab.workload.workload import Request


class _ThreadState(threading.local):
    """The handle of a thread, and the request that it is set up for."""

    handle: pycurl.Curl | None = None
    request: Request | None = None


@ClientSpec(
    "pycurl",
    "pycurl",
    "per thread",
    pairs=("threads", "multi"),
    native=True,
    limits_calls=True,
    quirks=LIBCURL_QUIRKS,
)
class PycurlHandle(Client):
    """One libcurl handle per thread."""

    errors: ClassVar[ErrorTable] = ()
    version: ClassVar[int] = (
        pycurl.CURL_HTTP_VERSION_1_1
    )  # by default, libcurl negotiates HTTP/2 over TLS

    def __init__(
        self, budget: Budget, opened: Opened, *, forbid_reuse: bool = False
    ) -> None:
        super().__init__(budget, opened)
        self.connections = budget.connections
        # Within the range of libcurl, which passes at most 16 KiB at a time.
        self._buffer = min(max(budget.chunk_size or DEFAULT_CHUNK_SIZE, 1024), 10 << 20)
        self._forbid_reuse = forbid_reuse
        self._mine = _ThreadState()
        self._all: list[pycurl.Curl] = []

    def send(self, request: Request) -> StatusAndBody:
        handle = self._handle(request)
        try:
            body: bytes = handle.perform_rb()
        except pycurl.error as error:
            raise self.make_error(handle, *error.args[:2]) from error
        return self.read_status(handle), body

    def stream(self, request: Request, sink: Sink) -> int:
        handle = self._handle(request)
        handle.setopt(pycurl.BUFFERSIZE, self._buffer)
        handle.setopt(pycurl.WRITEFUNCTION, sink)
        try:
            handle.perform()
        except pycurl.error as error:
            raise self.make_error(handle, *error.args[:2]) from error
        return self.read_status(handle)

    def close(self) -> None:
        for handle in self._all:
            handle.close()

    def _handle(self, request: Request) -> pycurl.Curl:
        mine = self._mine
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
        """Return an easy handle with the budget's limits, which is closed with the
        client.
        """
        handle = pycurl.Curl()
        handle.setopt(
            pycurl.NOSIGNAL, 1
        )  # time limits by signal are for single-threaded programs
        limits = make_limits(self._budget.timeout, self._budget.call_timeout)
        for option, value in limits.items():
            handle.setopt(option, value)
        handle.setopt(pycurl.HTTP_VERSION, self.version)
        if self._budget.decode:
            handle.setopt(
                pycurl.ACCEPT_ENCODING, ""
            )  # decode all that libcurl can; the request's own header is sent
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
        # A line that ends with a colon would drop the header. "Expect:" keeps libcurl
        # from waiting for 100-continue before a large body.
        lines = [
            f"{name}: {value}" if value else f"{name};"
            for name, value in request.headers.items()
        ]
        handle.setopt(pycurl.HTTPHEADER, [*lines, "Expect:"])
        handle.setopt(pycurl.URL, request.url)

    def read_status(self, handle: pycurl.Curl) -> int:
        """Return the status of a finished transfer, and report the connections that it
        opened.
        """
        if handle.getinfo(pycurl.NUM_CONNECTS):
            self._opened()
        status: int = handle.getinfo(pycurl.RESPONSE_CODE)
        return status

    def make_error(self, handle: pycurl.Curl, code: int, message: str) -> ClientError:
        """Return libcurl's error as a fault, and report the connections that were
        opened.
        """
        has_head, is_connecting = (
            bool(handle.getinfo(pycurl.HEADER_SIZE)),
            handle.getinfo(pycurl.REQUEST_SIZE) == 0,
        )
        kind = classify_error(
            code, message, has_head=has_head, is_connecting=is_connecting
        )
        if handle.getinfo(pycurl.NUM_CONNECTS) or kind in CONNECT_KINDS:
            self._opened()
        return ClientError(kind, message)


@ClientSpec(
    "pycurl-h2",
    "pycurl",
    "per thread",
    http="2",
    pairs=("threads",),
    native=True,
    limits_calls=True,
    quirks=replace(LIBCURL_QUIRKS, one_request_per_connection=True),
)
class PycurlH2(PycurlHandle):
    """One libcurl handle per thread over HTTP/2, one request at a time on each."""

    version = pycurl.CURL_HTTP_VERSION_2TLS

    def read_status(self, handle: pycurl.Curl) -> int:
        """Return the status.

        Close a handle that has fallen back to HTTP/1.1, which libcurl does silently.
        """
        status = super().read_status(handle)
        is_new = handle.getinfo(pycurl.NUM_CONNECTS)
        if (
            is_new
            and handle.getinfo(pycurl.INFO_HTTP_VERSION) != pycurl.CURL_HTTP_VERSION_2_0
        ):
            self._all.remove(handle)
            handle.close()  # closes its connection too
            self._mine.handle = None
            raise ClientError(
                "protocol", "the server spoke HTTP/1 where HTTP/2 was asked for"
            )
        return status
