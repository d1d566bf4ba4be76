"""urllib3 with one `PoolManager`: connections are kept and used again."""

from __future__ import annotations

from typing import Any, ClassVar

import urllib3
from urllib3 import exceptions

from clientlab.clients.client_interface import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.per_thread import PerThread
from clientlab.clients.tls_context import tls_context
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request


class Urllib3Pool:
    """One pool manager, shared by all threads of the process; a thread waits for a free connection."""

    errors: ClassVar[ErrorTable] = (
        (exceptions.SSLError, "tls"),
        (exceptions.NewConnectionError, "connect"),
        (exceptions.ConnectTimeoutError, "timeout-connect"),
        (exceptions.ReadTimeoutError, "timeout-read"),
        (exceptions.EmptyPoolError, "timeout-pool"),
        (exceptions.IncompleteRead, "protocol"),
        (exceptions.DecodeError, "protocol"),
        (ConnectionError, "reset"),
        (exceptions.ProtocolError, "protocol"),
        (exceptions.InvalidHeader, "protocol"),
    )

    def __init__(self, budget: Budget, opened: Opened, *, block: bool = True) -> None:  # noqa: ARG002 - Python's audit events count them
        self._budget = budget
        self._block = block

    def open(self) -> None:
        timeout = urllib3.Timeout(connect=self._budget.timeout, read=self._budget.timeout)
        pool, tls = self._budget.connections, tls_context(self._budget)
        bounds: dict[str, Any] = {} if pool is None else {"num_pools": 1, "block": self._block, "maxsize": pool}
        self._manager = urllib3.PoolManager(**bounds, retries=False, timeout=timeout, ssl_context=tls)

    def send(self, request: Request) -> StatusAndBody:
        response = self._manager.request(
            request.method, request.url, headers=request.headers, body=request.body, redirect=False
        )
        return response.status, response.data

    def stream(self, request: Request, sink: Sink) -> int:
        options: dict[str, Any] = {"body": request.body, "redirect": False, "preload_content": False}
        with self._manager.request(request.method, request.url, headers=request.headers, **options) as response:
            for chunk in response.stream(self._budget.chunk_size):
                sink(chunk)
            return response.status

    def close(self) -> None:
        self._manager.clear()


class Urllib3PerThread(PerThread):
    """One pool manager for each thread."""

    shared = Urllib3Pool
    errors: ClassVar[ErrorTable] = Urllib3Pool.errors
