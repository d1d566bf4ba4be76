"""The lists: clients, executors, and the strategies that pair them.

CLI, README, conformance test and dashboards read their names here.

A new library is one file under `clients/` and one row of `CLIENTS`; a new concurrency model one file
under `executors/` and one row of `EXECUTORS`. Nothing here imports a library: rows name the class.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from clientlab.errors import LabError

DEFAULT_CONCURRENCY = 32

Kind = Literal["blocking", "asyncio"]


@dataclass(frozen=True)
class ClientRow:
    """One library with one policy of who owns the connection and for how long."""

    name: str
    place: str  # module:class
    kind: Kind
    distribution: str  # whose version the run notes
    policy: Literal["per call", "pool", "per thread"]
    says: str


@dataclass(frozen=True)
class ExecutorRow:
    """One way of running many. `needs` is the kind of client that it runs."""

    name: str
    place: str
    needs: Kind
    says: str
    counted: bool = False  # starts all at once, so it needs a number of requests
    many: bool = True  # has more than one request in flight


_CLIENTS = "clientlab.clients."
_EXECUTORS = "clientlab.executors."

CLIENTS: dict[str, ClientRow] = {
    row.name: row
    for row in (
        ClientRow(
            "requests",
            _CLIENTS + "requests_per_call:RequestsPerCall",
            "blocking",
            "requests",
            "per call",
            "requests.request(…): a session and a connection a call",
        ),
        ClientRow(
            "requests-session",
            _CLIENTS + "requests_session:RequestsSession",
            "blocking",
            "requests",
            "pool",
            "one requests.Session",
        ),
        ClientRow(
            "httpx",
            _CLIENTS + "httpx_per_call:HttpxPerCall",
            "blocking",
            "httpx",
            "per call",
            "httpx.request(…): a client, its TLS set-up and a connection a call",
        ),
        ClientRow(
            "httpx-client",
            _CLIENTS + "httpx_client:HttpxClient",
            "blocking",
            "httpx",
            "pool",
            "one httpx.Client",
        ),
        ClientRow(
            "httpx-async",
            _CLIENTS + "httpx_async:HttpxAsync",
            "asyncio",
            "httpx",
            "pool",
            "one httpx.AsyncClient",
        ),
        ClientRow(
            "aiohttp",
            _CLIENTS + "aiohttp_session:AiohttpSession",
            "asyncio",
            "aiohttp",
            "pool",
            "one aiohttp.ClientSession",
        ),
        ClientRow(
            "urllib3",
            _CLIENTS + "urllib3_pool:Urllib3Pool",
            "blocking",
            "urllib3",
            "pool",
            "one urllib3.PoolManager",
        ),
        ClientRow(
            "http.client",
            _CLIENTS + "http_client:HttpClient",
            "blocking",
            "python",
            "per thread",
            "the standard library's connection, one a thread",
        ),
        ClientRow(
            "pycurl",
            _CLIENTS + "pycurl_handle:PycurlHandle",
            "blocking",
            "pycurl",
            "per thread",
            "one libcurl handle a thread, used again",
        ),
    )
}

EXECUTORS: dict[str, ExecutorRow] = {
    row.name: row
    for row in (
        ExecutorRow(
            "serial",
            _EXECUTORS + "serial:Serial",
            "blocking",
            "one after the other in one thread",
            many=False,
        ),
        ExecutorRow(
            "await",
            _EXECUTORS + "serial:AsyncSerial",
            "asyncio",
            "one after the other in one task",
            many=False,
        ),
        ExecutorRow(
            "threads",
            _EXECUTORS + "threads:Threads",
            "blocking",
            "ThreadPoolExecutor.map, a thread for each request in flight",
        ),
        ExecutorRow(
            "processes",
            _EXECUTORS + "processes:Processes",
            "blocking",
            "ProcessPoolExecutor.map, one request a task, a process for each in flight",
        ),
        ExecutorRow(
            "gather",
            _EXECUTORS + "asyncio_tasks:Gather",
            "asyncio",
            "asyncio.gather over all at once; the client's pool bounds them",
            counted=True,
        ),
        ExecutorRow(
            "semaphore",
            _EXECUTORS + "asyncio_tasks:Semaphore",
            "asyncio",
            "asyncio.gather over all, each waiting for a semaphore",
            counted=True,
        ),
        ExecutorRow(
            "workers",
            _EXECUTORS + "asyncio_tasks:Workers",
            "asyncio",
            "asyncio tasks, one for each request in flight, drawing the next",
        ),
        ExecutorRow(
            "sync_to_async",
            _EXECUTORS + "asyncio_threads:SyncToAsync",
            "blocking",
            "asyncio.gather over sync_to_async(thread_sensitive=False) on a pool of threads",
            counted=True,
        ),
        ExecutorRow(
            "async-processes",
            _EXECUTORS + "asyncio_processes:AsyncioProcesses",
            "asyncio",
            "asyncio.gather over a chunk in each of 6 processes, and one for the remainder",
            counted=True,
        ),
    )
}


@dataclass(frozen=True)
class Strategy:
    """A named pair of client and executor with its settings: what is compared.

    `concurrency` is the strategy's own, used where the user names none. `source` is the experiment
    that it comes from, ``bare`` for a client run serially under its own name, or ``pair``.
    """

    name: str
    client: str
    executor: str
    concurrency: int = DEFAULT_CONCURRENCY
    source: str = "pair"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def in_flight(self, asked: int | None) -> int:
        """Requests in flight at once: what is asked for, else the strategy's own; 1 where it is serial."""
        if not EXECUTORS[self.executor].many:
            return 1
        return self.concurrency if asked is None else asked


def _article(name: str, client: str, executor: str, concurrency: int) -> Strategy:
    return Strategy(name, client, executor, concurrency, "six-strategies")


def _bare(client: ClientRow) -> Strategy:
    executor = "serial" if client.kind == "blocking" else "await"
    return Strategy(client.name, client.name, executor, 1, "bare")


_SIX = (
    _article("sync", "requests", "serial", 1),
    _article("sync_threads", "requests", "threads", 100),
    _article("sync_multiprocess", "requests", "processes", 10),
    _article("async_threads", "requests", "sync_to_async", 100),
    _article("async_with_async_client", "aiohttp", "gather", 100),
    # aiohttp's own limit of 100 in each of six processes, and up to 5 requests for the remainder.
    _article("async_multiprocess_with_async_client", "aiohttp", "async-processes", 605),
)

_PAIRS = tuple(
    Strategy(f"{client}@{executor}", client, executor)
    for executor, clients in (
        ("threads", ("requests", "requests-session", "httpx-client", "urllib3", "http.client", "pycurl")),
        ("processes", ("requests-session", "pycurl")),
        ("sync_to_async", ("requests-session", "httpx-client")),
        ("gather", ("aiohttp", "httpx-async")),
        ("semaphore", ("aiohttp", "httpx-async")),
        ("workers", ("aiohttp", "httpx-async")),
        ("async-processes", ("aiohttp", "httpx-async")),
    )
    for client in clients
)

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (*_SIX, *map(_bare, CLIENTS.values()), *_PAIRS)
}


def find(name: str) -> Strategy:
    """The strategy of that name, or any fitting ``client@executor``. Raises LabError with the nearest names."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    client, at, executor = name.partition("@")
    if at and client in CLIENTS and executor in EXECUTORS:
        return _paired(name, CLIENTS[client], EXECUTORS[executor])
    near = difflib.get_close_matches(name, STRATEGIES, n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    raise LabError(f"strategy {name!r} is unknown{hint}; see 'clientlab list strategies'")


def _paired(name: str, client: ClientRow, executor: ExecutorRow) -> Strategy:
    if client.kind != executor.needs:
        fitting = [row.name for row in EXECUTORS.values() if row.needs == client.kind]
        raise LabError(
            f"strategy {name!r}: {client.name} is a client of kind {client.kind} and {executor.name} runs "
            f"{executor.needs} ones; it goes with {', '.join(fitting)}"
        )
    return Strategy(name, client.name, executor.name)


def load(place: str) -> Any:
    """The class at ``module:class``; imports its library."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
