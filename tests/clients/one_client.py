"""A listed client in the test's own process, called as a blocking one whatever its kind."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterator
from concurrent.futures import Future
from threading import Thread
from typing import Any

from clientlab.clients.client_interface import Budget
from clientlab.conformance.server import CA_FILE
from clientlab.errors import kind_of
from clientlab.strategies import CLIENTS, load
from clientlab.workload.making import requests_of
from clientlab.workload.workload import DEFAULT_CHUNK_SIZE, Request, Workload

PATIENCE = 60.0
"""Seconds after which a call of an asyncio client fails the test."""


def request_to(url: str, path: str = "/", *, awaited: bool = False, **workload: Any) -> Request:
    """One request, as the lab makes it for a workload with these fields."""
    return requests_of(Workload(path=path, **workload), url, awaited=awaited)(0)


async def _closed_sockets(loop: Any) -> None:
    """Wait until the loop watches no socket but its own: TLS connections are closed a moment after their client."""
    for _ in range(30):
        if len(loop._selector.get_map()) <= 1:
            return
        await asyncio.sleep(0.01)


@contextlib.contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own all the while, as in a trial."""
    found: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def until_ended() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        found.set_result((loop, ended))
        await ended.wait()
        await _closed_sockets(loop)

    thread = Thread(target=lambda: asyncio.run(until_ended()), daemon=True)
    thread.start()
    loop, ended = found.result(PATIENCE)
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE)


class OneClient:
    """One open client with a single connection."""

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def call(self, method: str, *words: object) -> Any:
        """Call a method of the client; of an asyncio client, await it too."""
        found = getattr(self._client, method)(*words)
        if not inspect.iscoroutine(found):
            return found
        return asyncio.run_coroutine_threadsafe(found, self._loop).result(PATIENCE)

    def send(self, request: Request) -> tuple[int, bytes] | str:
        """The status and the whole body, or the kind of the error."""
        try:
            status, body = self.call("send", request)
        except Exception as error:  # noqa: BLE001 - what the client's table says of it is asked for
            return kind_of(error, self._client.errors)
        return status, bytes(body)

    def stream(self, request: Request) -> tuple[int, list[bytes]] | str:
        """The status and the chunks of the body, or the kind of the error."""
        chunks: list[bytes] = []
        try:
            return self.call("stream", request, chunks.append), chunks
        except Exception as error:  # noqa: BLE001 - as above
            return kind_of(error, self._client.errors)


@contextlib.contextmanager
def one_client(
    name: str, *, timeout: float = 10.0, chunk_size: int = DEFAULT_CHUNK_SIZE, **settings: Any
) -> Iterator[OneClient]:
    """A listed client, open."""
    budget = Budget(1, timeout, CA_FILE, chunk_size)
    with running_loop() as loop:
        client = OneClient(load(CLIENTS[name].import_path)(budget, lambda: None, **settings), loop)
        client.call("open")
        try:
            yield client
        finally:
            client.call("close")


def outcomes(name: str, *requests: Request, **options: Any) -> list[tuple[int, bytes] | str]:
    """Open a client, send requests one after the other, close it: of each the answer, or the kind of the error."""
    with one_client(name, **options) as client:
        return [client.send(request) for request in requests]
