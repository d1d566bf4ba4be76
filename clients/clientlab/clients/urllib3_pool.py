"""urllib3 with one `PoolManager`: connections are kept and used again."""

from __future__ import annotations

from typing import Any, ClassVar

import urllib3
from urllib3 import exceptions

from clientlab.clients.bodies import LENGTH_ERRORS, check_length
from clientlab.clients.client_interface import Budget, EventsAs, EventSink, Opened, Pieces, Sink, StatusAndBody
from clientlab.clients.per_thread import PerThread
from clientlab.clients.tls_context import tls_context
from clientlab.clients.urllib3_retry import retry_of
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
        *LENGTH_ERRORS,
    )
    events_as: ClassVar[EventsAs] = "bytes"
    pieces: ClassVar[Pieces] = "chunks"
    own_retry: ClassVar[str] = "urllib3"

    def __init__(
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - Python's audit events count them
        *,
        num_pools: int = 1,
        block: bool = True,
        as_written: bool = False,
    ) -> None:
        self._budget = budget
        self._as_written = as_written
        self._pools: dict[str, Any] = {"num_pools": num_pools, "block": block}

    def open(self) -> None:
        if self._as_written:  # three tries for some methods, and no time limit
            self._manager = urllib3.PoolManager(ssl_context=tls_context(self._budget))
            return
        timeout = urllib3.Timeout(connect=self._budget.timeout, read=self._budget.timeout)
        pool, tls = self._budget.connections, tls_context(self._budget)
        bounds: dict[str, Any] = {} if pool is None else {**self._pools, "maxsize": pool}
        policy = self._budget.retry
        retries = False if policy is None else retry_of(urllib3.Retry, policy)
        self._manager = urllib3.PoolManager(**bounds, retries=retries, timeout=timeout, ssl_context=tls)

    def send(self, request: Request) -> StatusAndBody:
        response = self._manager.request(
            request.method,
            request.url,
            headers=request.headers,
            body=request.body,
            redirect=False,
        )
        if response.length_remaining is None:
            check_length(response.headers, chunked=response.chunked)
        return response.status, response.data

    def stream(self, request: Request, sink: Sink) -> int:
        with self._manager.request(
            request.method,
            request.url,
            headers=request.headers,
            body=request.body,
            redirect=False,
            preload_content=False,
        ) as response:
            if response.length_remaining is None:
                check_length(response.headers, chunked=response.chunked)
            for chunk in response.stream(self._budget.chunk_size):
                sink(chunk)
            return response.status

    def events(self, request: Request, sink: EventSink) -> int:
        response = self._manager.request(
            request.method,
            request.url,
            headers=request.headers,
            body=request.body,
            redirect=False,
            preload_content=False,
        )
        try:
            if response.length_remaining is None:
                check_length(response.headers, chunked=response.chunked)
            sink.answered(response.status)
            if response.status >= 400:
                response.drain_conn()
                return response.status
            for chunk in response.stream():
                sink(chunk)
            return response.status
        finally:
            response.close()  # of a stream that was left, the connection, which then goes back to the pool
            response.release_conn()

    def close(self) -> None:
        self._manager.clear()


class Urllib3PerThread(PerThread):
    """One pool manager for each thread."""

    shared = Urllib3Pool
    errors: ClassVar[ErrorTable] = Urllib3Pool.errors
