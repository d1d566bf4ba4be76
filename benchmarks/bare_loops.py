"""Bare loops: what a strategy does, written without the lab.

A bare loop makes and closes its client, with the same calls of the same library and the same arguments as the lab's
client, and records nothing. Its name is that of the client's class: `requests_session` for `RequestsSession`. A client
without one is measured against its own class: `open`, `send` and `close`, without executor and recorder.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

from benchmarks import bare_asyncio, bare_blocking, bare_h2, bare_httpx2, bare_native
from benchmarks.bare import CONCURRENCY, TIMEOUT, Run, expect
from benchmarks.bare_asyncio import Send, in_loop
from benchmarks.trials import Site
from clientlab.clients.client_interface import Budget
from clientlab.strategies import CLIENTS, ClientSpec, find, load
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload

_MODULES = (bare_blocking, bare_asyncio, bare_h2, bare_httpx2, bare_native)


def strategies() -> dict[str, str]:
    """Client → the strategy that is measured: a blocking client one by one, one of asyncio with 32 in flight."""
    return {
        name: name if spec.kind == "blocking" else f"{name}@workers"
        for name, spec in CLIENTS.items()
        if not spec.program
    }


def is_secure(client: str) -> bool:
    """Whether the client needs TLS."""
    return CLIENTS[client].http == "2"


def has_loop(client: str) -> bool:
    """Whether the client has a bare loop, and is not measured against its own class."""
    return _loop(CLIENTS[client]) is not None


def bare_loop(strategy: str, site: Site) -> AbstractContextManager[Run]:
    """The loop of a strategy's client at a site. The context makes the client and closes it."""
    spec = CLIENTS[find(strategy).client]
    loop = _loop(spec)
    if loop is None:
        return _of_class(spec, site)
    if inspect.isasyncgenfunction(inspect.unwrap(loop)):
        loop = in_loop(loop)
    opened: AbstractContextManager[Run] = loop(site.url, site.ca_file) if is_secure(spec.name) else loop(site.url)
    return opened


def _loop(spec: ClientSpec) -> Callable[..., Any] | None:
    name = re.sub(r"(?<=.)(?=[A-Z])", "_", spec.import_path.rpartition(":")[2]).lower()
    return next((vars(module)[name] for module in _MODULES if name in vars(module)), None)


def _of_class(spec: ClientSpec, site: Site) -> AbstractContextManager[Run]:
    client_class, request = load(spec.import_path), requests_of(Workload(), site.url)(0)

    @contextmanager
    def blocking() -> Iterator[Run]:
        client = client_class(Budget(1, TIMEOUT, site.ca_file), lambda: None)
        client.open()

        def run(count: int) -> None:
            for _ in range(count):
                expect(*client.send(request))

        yield run
        client.close()

    @asynccontextmanager
    async def awaited(_url: str) -> AsyncIterator[Send]:
        client = client_class(Budget(CONCURRENCY, TIMEOUT, site.ca_file), lambda: None)
        await client.open()
        yield lambda: client.send(request)
        await client.close()

    return blocking() if spec.kind == "blocking" else in_loop(awaited)(site.url)
