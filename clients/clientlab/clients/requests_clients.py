"""requests: its top-level functions, which keep no connection, one `Session`, or one
for each thread.
"""

from __future__ import annotations

from http.cookiejar import DefaultCookiePolicy
from typing import Any, ClassVar

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry
from urllib3 import exceptions as urllib3_errors

from clientlab.clients.client_interface import (
    IN_THREADS,
    Budget,
    Client,
    ClientSpec,
    EventSink,
    Opened,
    Sink,
    StatusAndBody,
    TimedPerThread,
    read_arriving,
)
from clientlab.clients.retrying import make_urllib3_retry
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request


class _Requests(Client):
    errors: ClassVar[ErrorTable] = (
        (requests.exceptions.SSLError, "tls"),
        (requests.exceptions.ConnectTimeout, "timeout-connect"),
        (requests.exceptions.ReadTimeout, "timeout-read"),
        (urllib3_errors.ReadTimeoutError, "timeout-read"),
        (urllib3_errors.EmptyPoolError, "timeout-pool"),
        (urllib3_errors.NewConnectionError, "connect"),
        (urllib3_errors.IncompleteRead, "protocol"),
        (ConnectionError, "reset"),
        (requests.exceptions.ChunkedEncodingError, "protocol"),
        (requests.exceptions.ContentDecodingError, "protocol"),
        (urllib3_errors.ProtocolError, "protocol"),
        (urllib3_errors.InvalidHeader, "protocol"),
        (requests.exceptions.ConnectionError, "connect"),
    )

    def send(self, request: Request) -> StatusAndBody:
        response = self._respond(request)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        with self._respond(request, stream=True) as response:
            size = self._budget.chunk_size
            for chunk in (
                read_arriving(response.raw.read1)
                if size is None
                else response.iter_content(size)
            ):
                sink(chunk)
            return response.status_code

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._respond(request)
        return response.status_code, response.content, response.elapsed.total_seconds()

    def _respond(self, request: Request, *, stream: bool = False) -> requests.Response:
        raise NotImplementedError


@ClientSpec("requests", "requests", "per call", needs=("urllib3",), pairs=("threads",))
class RequestsPerCall(_Requests):
    """requests.request(…): a session and a connection per call."""

    def _respond(self, request: Request, *, stream: bool = False) -> requests.Response:
        headers = {
            "Connection": None,
            **request.headers,
        }  # no `keep-alive`, which other clients do not send
        timeout, verify = self._budget.timeout, self._budget.ca_file or True
        return requests.request(
            request.method,
            request.url,
            headers=headers,
            data=request.body,
            timeout=timeout,
            verify=verify,
            allow_redirects=False,
            stream=stream,
        )


@ClientSpec(
    "requests-session",
    "requests",
    "pool",
    needs=("urllib3",),
    pairs=(
        "threads",
        "thread-pool",
        "queue",
        "processes",
        "process-chunks",
        "sync_to_async",
        "futures",
        "gevent",
    ),
    own_retries="urllib3",
)
class RequestsSession(_Requests):
    """One requests.Session."""

    def __init__(
        self, budget: Budget, opened: Opened, *, pool_block: bool = False
    ) -> None:
        super().__init__(budget, opened)
        self._pool_block = pool_block

    @property
    def library_defaults(self) -> bool:
        return self._budget.connections is None

    def open(self) -> None:
        self.session = requests.Session()
        self.session.cookies.set_policy(
            DefaultCookiePolicy(allowed_domains=[])
        )  # accept no cookie
        # `Connection: keep-alive`, and what each request sets itself.
        self.session.headers.clear()
        options: dict[str, Any] = {}
        pool = self._budget.connections
        if pool is not None:
            options = {
                "pool_connections": 1,
                "pool_maxsize": pool,
                "pool_block": self._pool_block,
            }
        if self._budget.retry is not None:
            options["max_retries"] = make_urllib3_retry(Retry, self._budget.retry)
        if options:
            adapter = HTTPAdapter(**options)
            self.session.mount("http://", adapter)
            self.session.mount("https://", adapter)

    def close(self) -> None:
        self.session.close()

    def _respond(self, request: Request, *, stream: bool = False) -> requests.Response:
        timeout, verify = (
            self._budget.timeout,
            self._budget.ca_file or True,
        )  # the environment overrides the session's
        return self.session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            timeout=timeout,
            verify=verify,
            allow_redirects=False,
            stream=stream,
        )


@ClientSpec(
    "requests-lines",
    "requests",
    "pool",
    needs=("urllib3",),
    pairs=("threads",),
    formats=("sse", "jsonl"),
    own_retries="urllib3",
)
class RequestsLines(RequestsSession):
    """One requests.Session, whose `iter_lines` splits a stream."""

    def __init__(
        self, budget: Budget, opened: Opened, *, chunk_size: int = 512
    ) -> None:
        super().__init__(budget, opened)
        self._chunk_size = chunk_size

    def events(self, request: Request, sink: EventSink) -> int:
        with self._respond(request, stream=True) as response:
            if response.status_code < 400:
                for line in response.iter_lines(self._chunk_size):
                    if line.startswith((b"data:", b"{", b"event:")):
                        sink(line)
            return response.status_code


@ClientSpec(
    "requests-session-per-thread",
    "requests",
    "per thread",
    needs=("urllib3",),
    only=IN_THREADS,
    own_retries="urllib3",
)
class RequestsSessionPerThread(TimedPerThread):
    """One requests.Session for each thread, with a pool of one connection."""

    shared = RequestsSession
    errors = RequestsSession.errors
