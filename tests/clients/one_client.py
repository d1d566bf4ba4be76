"""Call a listed client of any kind like a blocking one, in the process of the test."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

from clientlab.clients.client_interface import Budget
from clientlab.conformance.server import CA_FILE
from clientlab.errors import kind_of
from clientlab.strategies import CLIENTS, load
from clientlab.workload.parts import DEFAULT_CHUNK_SIZE
from clientlab.workload.requests import requests_of
from clientlab.workload.workload import Request, make_workload

PATIENCE = 60.0
"""Seconds after which a call of an asyncio client fails the test."""


def request_to(
    url: str, path: str = "/", *, awaited: bool = False, **workload: Any
) -> Request:
    """Return a request as the lab makes it for a workload with these fields."""
    make = requests_of(make_workload(path=path, **workload), url, awaited=awaited)
    return make(0)


class OneClient:
    """One open client with a single connection."""

    def __init__(self, client: Any, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def call(self, method: str, *words: object) -> Any:
        """Call a method of the client, and await it if it is a coroutine function."""
        result = getattr(self._client, method)(*words)
        if inspect.iscoroutine(result):
            return self._runner.run(asyncio.wait_for(result, PATIENCE))
        return result

    def send(self, request: Request) -> tuple[int, bytes] | str:
        """Return the status and the whole body, or the kind of the error."""
        outcome = self._attempt("send", request)
        if isinstance(outcome, str):
            return outcome
        status, body = outcome
        return status, bytes(body)

    def stream(self, request: Request) -> tuple[int, list[bytes]] | str:
        """Return the status and the chunks of the body, or the kind of the error."""
        chunks: list[bytes] = []
        outcome = self._attempt("stream", request, chunks.append)
        return outcome if isinstance(outcome, str) else (outcome, chunks)

    def _attempt(self, method: str, *arguments: object) -> Any:
        try:
            return self.call(method, *arguments)
        except Exception as error:  # noqa: BLE001 - the client's table classifies it
            return kind_of(error, self._client.errors)


@contextlib.contextmanager
def one_client(
    name: str,
    *,
    timeout: float = 10.0,
    chunk_size: int | None = DEFAULT_CHUNK_SIZE,
    decode: bool = False,
    **settings: Any,
) -> Iterator[OneClient]:
    """Open a listed client, and close it at the end."""
    budget = Budget(1, timeout, CA_FILE, chunk_size, decode)
    library = load(CLIENTS[name].import_path)
    with asyncio.Runner() as runner:
        client = OneClient(library(budget, lambda: None, **settings), runner)
        client.call("open")
        try:
            yield client
        finally:
            client.call("close")
            runner.run(_wait_for_sockets())


async def _wait_for_sockets() -> None:
    """Wait until the loop watches only its own socket: TLS connections close a moment
    after their client.
    """
    loop: Any = asyncio.get_running_loop()
    for _ in range(30):
        if len(loop._selector.get_map()) <= 1:
            return
        await asyncio.sleep(0.01)


def outcomes(
    name: str, *requests: Request, **options: Any
) -> list[tuple[int, bytes] | str]:
    """Send requests one after the other with a new client.

    Return each response, or the kind of its error.
    """
    with one_client(name, **options) as client:
        return [client.send(request) for request in requests]
