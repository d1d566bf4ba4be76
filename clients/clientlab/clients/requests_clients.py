"""requests: its top-level functions, which keep no connection, or one `Session`, which does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import requests
from requests.adapters import HTTPAdapter
from requests.models import ITER_CHUNK_SIZE
from urllib3 import Retry
from urllib3 import exceptions as urllib3_errors

from clientlab.clients.bodies import LENGTH_ERRORS, check_length
from clientlab.clients.client_interface import (
    Budget,
    EventsAs,
    EventSink,
    Opened,
    Pieces,
    Sink,
    StatusAndBody,
    untouched,
)
from clientlab.clients.no_cookies import no_cookies
from clientlab.clients.per_thread import TimedPerThread
from clientlab.clients.urllib3_retry import retry_of
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

REQUESTS_ERRORS: ErrorTable = (
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
    *LENGTH_ERRORS,
    (requests.exceptions.ConnectionError, "connect"),
)


class RequestsClient(ABC):
    """What both clients do with a response, however it was asked for."""

    errors: ClassVar[ErrorTable] = REQUESTS_ERRORS
    events_as: ClassVar[EventsAs] = "bytes"
    pieces: ClassVar[Pieces] = "lines"

    def __init__(self, budget: Budget, lines: int = ITER_CHUNK_SIZE) -> None:
        self._budget = budget
        self._lines = lines

    def send(self, request: Request) -> StatusAndBody:
        response = self._response(request)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        with self._response(request, stream=True) as response:
            for chunk in response.iter_content(self._budget.chunk_size):
                sink(chunk)
            return response.status_code

    def events(self, request: Request, sink: EventSink) -> int:
        with self._response(request, stream=True) as response:
            status = response.status_code
            sink.answered(status)
            if status >= 400:
                _ = response.content  # reads the body, so that the connection is used again
                return status
            for line in response.iter_lines(self._lines):
                sink(line)
            return status

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._response(request)
        return response.status_code, response.content, response.elapsed.total_seconds()

    @abstractmethod
    def _response(self, request: Request, *, stream: bool = False) -> requests.Response: ...


class RequestsPerCall(RequestsClient):
    """`requests.request` for each request."""

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - Python's audit events count them
        super().__init__(budget)

    def open(self) -> None:
        """Do nothing: a call keeps nothing for the next."""

    def close(self) -> None:
        """Do nothing: each call closed its own session."""

    def _response(self, request: Request, *, stream: bool = False) -> requests.Response:
        response = requests.request(
            request.method,
            request.url,
            headers={**request.headers, "Connection": None},  # no `keep-alive`, which other clients do not send
            data=request.body,
            timeout=self._budget.timeout,
            verify=self._budget.ca_file or True,
            allow_redirects=False,
            stream=stream,
        )
        if response.raw.length_remaining is None:
            check_length(response.raw.headers, chunked=response.raw.chunked)
        return response


class RequestsSession(RequestsClient):
    """One session, shared by all threads of the process, with a pool of the budget's size."""

    own_retry: ClassVar[str] = "urllib3"

    def __init__(  # noqa: PLR0913 - the session's settings
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        pool_connections: int = 1,
        pool_block: bool = False,
        lines: int = ITER_CHUNK_SIZE,
        as_written: bool = False,
    ) -> None:
        super().__init__(untouched(budget) if as_written else budget, lines)
        self._timeout = None if as_written else budget.timeout
        self._pool_connections = pool_connections
        self._pool_block = pool_block

    @property
    def library_defaults(self) -> bool:
        """Whether requests, or the library that wraps the session, chooses the size of the pool."""
        return self._budget.connections is None

    def open(self) -> None:
        self.session = requests.Session()
        self.session.cookies.set_policy(no_cookies())
        self.session.headers.clear()  # `Connection: keep-alive`, and what each request sets itself
        pool, policy = self._budget.connections, self._budget.retry
        if pool is None and policy is None:
            return
        options = {} if pool is None else self._pool(pool)
        if policy is not None:
            options["max_retries"] = retry_of(Retry, policy)
        adapter = HTTPAdapter(**options)
        self.session.mount("http://", adapter)
        self.session.mount("https://", adapter)

    def _pool(self, size: int) -> dict[str, Any]:
        return {"pool_connections": self._pool_connections, "pool_maxsize": size, "pool_block": self._pool_block}

    def close(self) -> None:
        self.session.close()

    def _response(self, request: Request, *, stream: bool = False) -> requests.Response:
        response = self.session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            timeout=self._timeout,
            verify=self._budget.ca_file or True,  # an environment variable would override the session's value
            allow_redirects=False,
            stream=stream,
        )
        if response.raw.length_remaining is None:
            check_length(response.raw.headers, chunked=response.raw.chunked)
        return response


class RequestsSessionPerThread(TimedPerThread):
    """One session for each thread."""

    shared = RequestsSession
    errors: ClassVar[ErrorTable] = REQUESTS_ERRORS
