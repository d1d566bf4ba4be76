"""urllib3 with one `PoolManager`, or with one for each thread."""

from __future__ import annotations

from typing import Any, ClassVar

import urllib3
from urllib3 import exceptions

from clientlab.clients.client_interface import (
    IN_THREADS,
    Budget,
    Client,
    ClientSpec,
    Opened,
    PerThread,
    Sink,
    StatusAndBody,
    read_arriving,
    tls_context,
)
from clientlab.clients.retrying import make_urllib3_retry
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request


@ClientSpec(
    "urllib3", "urllib3", "pool", pairs=("threads", "gevent"), own_retries="urllib3"
)
class Urllib3Pool(Client):
    """One urllib3.PoolManager."""

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

    def __init__(self, budget: Budget, opened: Opened, *, block: bool = True) -> None:
        super().__init__(budget, opened)
        self._block = block

    def open(self) -> None:
        timeout = urllib3.Timeout(
            connect=self._budget.timeout, read=self._budget.timeout
        )
        pool, tls = self._budget.connections, tls_context(self._budget)
        bounds: dict[str, Any] = (
            {}
            if pool is None
            else {"num_pools": 1, "block": self._block, "maxsize": pool}
        )
        retries: urllib3.Retry | bool = False
        if self._budget.retry is not None:
            retries = make_urllib3_retry(urllib3.Retry, self._budget.retry)
        self._manager = urllib3.PoolManager(
            **bounds,
            retries=retries,
            timeout=timeout,
            ssl_context=tls,
        )

    def send(self, request: Request) -> StatusAndBody:
        response = self._manager.request(
            request.method,
            request.url,
            headers=request.headers,
            body=request.body,
            redirect=False,
        )
        return response.status, response.data

    def stream(self, request: Request, sink: Sink) -> int:
        options: dict[str, Any] = {
            "body": request.body,
            "redirect": False,
            "preload_content": False,
        }
        with self._manager.request(
            request.method, request.url, headers=request.headers, **options
        ) as response:
            size = self._budget.chunk_size
            for chunk in (
                read_arriving(response.read1) if size is None else response.stream(size)
            ):
                sink(chunk)
            return response.status

    def close(self) -> None:
        self._manager.clear()


@ClientSpec(
    "urllib3-per-thread",
    "urllib3",
    "per thread",
    only=IN_THREADS,
    own_retries="urllib3",
)
class Urllib3PerThread(PerThread):
    """One urllib3.PoolManager for each thread, with a pool of one connection."""

    shared = Urllib3Pool
    errors = Urllib3Pool.errors
