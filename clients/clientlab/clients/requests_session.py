"""requests with one `Session`: connections are kept and used again."""

from __future__ import annotations

from typing import ClassVar

import requests
from requests.adapters import HTTPAdapter

from clientlab.clients.interfaces import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.lengths import check_length
from clientlab.clients.no_cookies import no_cookies
from clientlab.clients.requests_per_call import REQUESTS_ERRORS
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request


class RequestsSession:
    """One session, shared by all threads of the process, with a pool of the budget's size."""

    errors: ClassVar[ErrorTable] = REQUESTS_ERRORS

    def __init__(
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        pool_connections: int = 1,
        pool_block: bool = False,
    ) -> None:
        self._budget = budget
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
        pool = self._budget.connections
        if pool is not None:
            adapter = HTTPAdapter(self._pool_connections, pool, pool_block=self._pool_block)
            self.session.mount("http://", adapter)
            self.session.mount("https://", adapter)

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

    def close(self) -> None:
        self.session.close()

    def _response(self, request: Request, *, stream: bool = False) -> requests.Response:
        response = self.session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            timeout=self._budget.timeout,
            verify=self._budget.ca_file or True,  # an environment variable would override the session's value
            allow_redirects=False,
            stream=stream,
        )
        if response.raw.length_remaining is None:
            check_length(response.raw.headers, chunked=response.raw.chunked)
        return response
