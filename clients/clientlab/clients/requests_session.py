"""requests with one `Session`: connections are kept and used again."""

from __future__ import annotations

from typing import ClassVar

import requests
from requests.adapters import HTTPAdapter

from clientlab.clients.requests_per_call import REQUESTS_ERRORS
from clientlab.clients.shape import Budget, Opened, Reply
from clientlab.errors import ErrorTable
from clientlab.workload import Request


class RequestsSession:
    """One session, shared by all threads of the process, with a pool of the budget's size."""

    errors: ClassVar[ErrorTable] = REQUESTS_ERRORS

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - seen by Python
        self._budget = budget

    def open(self) -> None:
        self._session = requests.Session()
        pool = self._budget.connections
        if pool is not None:
            adapter = HTTPAdapter(pool_connections=1, pool_maxsize=pool)
            self._session.mount("http://", adapter)
            self._session.mount("https://", adapter)

    def send(self, request: Request) -> Reply:
        response = self._session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            timeout=self._budget.timeout,
            verify=self._budget.ca_file or True,  # that of a session gives way to the environment's
            allow_redirects=False,
        )
        return response.status_code, response.content

    def close(self) -> None:
        self._session.close()
