"""requests: its top-level functions, which keep no connection, or one `Session`, which does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from http.cookiejar import DefaultCookiePolicy
from typing import ClassVar

import requests
from requests.adapters import HTTPAdapter
from urllib3 import exceptions as urllib3_errors

from clientlab.clients.client_interface import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.per_thread import TimedPerThread
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
    (requests.exceptions.ConnectionError, "connect"),
)


class RequestsClient(ABC):
    """What both clients do with a response, however it was asked for."""

    errors: ClassVar[ErrorTable] = REQUESTS_ERRORS

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def send(self, request: Request) -> StatusAndBody:
        response = self._response(request)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        with self._response(request, stream=True) as response:
            for chunk in response.iter_content(self._budget.chunk_size):
                sink(chunk)
            return response.status_code

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
        return requests.request(
            request.method,
            request.url,
            headers={**request.headers, "Connection": None},  # no `keep-alive`, which other clients do not send
            data=request.body,
            timeout=self._budget.timeout,
            verify=self._budget.ca_file or True,
            allow_redirects=False,
            stream=stream,
        )


class RequestsSession(RequestsClient):
    """One session, shared by all threads of the process, with a pool of the budget's size."""

    def __init__(
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        pool_block: bool = False,
    ) -> None:
        super().__init__(budget)
        self._pool_block = pool_block

    @property
    def library_defaults(self) -> bool:
        """Whether requests, or the library that wraps the session, chooses the size of the pool."""
        return self._budget.connections is None

    def open(self) -> None:
        self.session = requests.Session()
        self.session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # accept no cookie
        self.session.headers.clear()  # `Connection: keep-alive`, and what each request sets itself
        pool = self._budget.connections
        if pool is not None:
            adapter = HTTPAdapter(1, pool, pool_block=self._pool_block)
            self.session.mount("http://", adapter)
            self.session.mount("https://", adapter)

    def close(self) -> None:
        self.session.close()

    def _response(self, request: Request, *, stream: bool = False) -> requests.Response:
        return self.session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            timeout=self._budget.timeout,
            verify=self._budget.ca_file or True,  # an environment variable would override the session's value
            allow_redirects=False,
            stream=stream,
        )


class RequestsSessionPerThread(TimedPerThread):
    """One session for each thread."""

    shared = RequestsSession
    errors: ClassVar[ErrorTable] = REQUESTS_ERRORS
