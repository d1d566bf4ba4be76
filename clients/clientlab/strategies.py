"""The lists: clients, executors, and the strategies that pair them.

CLI, README, conformance test and dashboards read their names here.

A new library is one file under `clients/` and one row of `CLIENTS`; a new concurrency model one file
under `executors/` and one row of `EXECUTORS`. Nothing here imports a library: rows name the class.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import parse_qsl

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
    unbounded: bool = False  # has all of them in flight, whatever is asked


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
            "aiohttp-per-call",
            _CLIENTS + "aiohttp_per_call:AiohttpPerCall",
            "asyncio",
            "aiohttp",
            "per call",
            "an aiohttp.ClientSession and a connection a call",
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
        ClientRow(
            "httplib2",
            _CLIENTS + "httplib2_http:Httplib2Http",
            "blocking",
            "httplib2",
            "per thread",
            "one httplib2.Http a thread",
        ),
        ClientRow(
            "pyreqwest",
            _CLIENTS + "pyreqwest_client:PyreqwestClient",
            "blocking",
            "pyreqwest",
            "pool",
            "one pyreqwest SyncClient: Rust's reqwest",
        ),
        ClientRow(
            "pyreqwest-async",
            _CLIENTS + "pyreqwest_async:PyreqwestAsync",
            "asyncio",
            "pyreqwest",
            "pool",
            "one pyreqwest Client of asyncio: Rust's reqwest",
        ),
        ClientRow(
            "aiosonic",
            _CLIENTS + "aiosonic_client:AiosonicClient",
            "asyncio",
            "aiosonic",
            "pool",
            "one aiosonic.HTTPClient",
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
            "queue",
            _EXECUTORS + "thread_queue:ThreadQueue",
            "blocking",
            "worker threads on a queue.Queue, one for each request in flight",
        ),
        ExecutorRow(
            "processes",
            _EXECUTORS + "processes:Processes",
            "blocking",
            "ProcessPoolExecutor.map, one request a task, a process for each in flight",
        ),
        ExecutorRow(
            "process-chunks",
            _EXECUTORS + "processes:ProcessChunks",
            "blocking",
            "ProcessPoolExecutor.map, one chunk of the requests a process",
        ),
        ExecutorRow(
            "gather",
            _EXECUTORS + "asyncio_tasks:Gather",
            "asyncio",
            "asyncio.gather over all at once; the client's pool bounds them",
            counted=True,
        ),
        ExecutorRow(
            "unbounded",
            _EXECUTORS + "asyncio_tasks:Unbounded",
            "asyncio",
            "asyncio.gather over all at once, with a connection for each",
            counted=True,
            unbounded=True,
        ),
        ExecutorRow(
            "as-completed",
            _EXECUTORS + "asyncio_tasks:AsCompleted",
            "asyncio",
            "asyncio.as_completed over all at once; the client's pool bounds them",
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
            "sync_to_async-sensitive",
            _EXECUTORS + "asyncio_traps:ThreadSensitive",
            "blocking",
            "asyncio.gather over sync_to_async as it comes: all calls in one thread",
            counted=True,
            many=False,
        ),
        ExecutorRow(
            "blocking-coroutines",
            _EXECUTORS + "asyncio_traps:BlockingInCoroutines",
            "blocking",
            "asyncio.gather over coroutines that call a blocking client",
            counted=True,
            many=False,
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

    `concurrency` is the strategy's own, used where the user names none. `settings` are keyword arguments
    of its executor or client, or ``pool``: connections that the client may hold, in place of as many as
    there are requests in flight. `source` is the experiment that it comes from, ``bare`` for a client run
    serially under its own name, ``pair``, or ``trap``: then `wrong` says what is wrong with it, and
    `mended_by` which strategy mends it.
    """

    name: str
    client: str
    executor: str
    concurrency: int = DEFAULT_CONCURRENCY
    source: str = "pair"
    settings: Mapping[str, Any] = field(default_factory=dict)
    wrong: str = ""
    mended_by: str = ""

    def in_flight(self, asked: int | None, requests: int | None = None) -> int:
        """Requests in flight at once: what is asked for, else the strategy's own.

        1 where it is serial, whatever is asked; all `requests` where nothing bounds it.
        """
        row = EXECUTORS[self.executor]
        if not row.many:
            return 1
        if row.unbounded and requests is not None:
            return requests
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
        ("threads", ("httplib2", "pyreqwest")),
        ("queue", ("requests-session",)),
        ("processes", ("requests-session", "pycurl")),
        ("process-chunks", ("requests", "requests-session")),
        ("sync_to_async", ("requests-session", "httpx-client")),
        ("gather", ("aiohttp", "httpx-async")),
        ("as-completed", ("aiohttp", "httpx-async")),
        ("semaphore", ("aiohttp", "httpx-async")),
        ("workers", ("aiohttp", "httpx-async", "pyreqwest-async", "aiosonic")),
        ("async-processes", ("aiohttp", "httpx-async")),
    )
    for client in clients
)

_UVLOOP = tuple(
    Strategy(f"{client}-uvloop@{executor}", client, executor, settings={"loop": "uvloop"})
    for client, executor in (("aiohttp", "workers"), ("aiohttp", "semaphore"), ("httpx-async", "workers"))
)


def _trap(name: str, pair: str, wrong: str, mended_by: str, **settings: Any) -> Strategy:
    client, _, executor = pair.partition("@")
    concurrency = DEFAULT_CONCURRENCY if EXECUTORS[executor].many else 1
    return Strategy(f"trap-{name}", client, executor, concurrency, "trap", settings, wrong, mended_by)


_TRAPS = (
    _trap(
        "blocking-in-coroutine",
        "requests-session@blocking-coroutines",
        "a blocking call stops the event loop: coroutines around it run one after the other",
        "requests-session@sync_to_async",
    ),
    _trap(
        "thread-sensitive",
        "requests-session@sync_to_async-sensitive",
        "sync_to_async sends all calls to one thread unless it is told thread_sensitive=False",
        "requests-session@sync_to_async",
    ),
    _trap(
        "session-per-request",
        "aiohttp-per-call@workers",
        "a session for each request keeps no connection",
        "aiohttp@workers",
    ),
    _trap(
        "client-per-request",
        "httpx@threads",
        "httpx.get builds a client and its TLS context for each request, even for plain HTTP",
        "httpx-client@threads",
    ),
    _trap(
        "small-pool",
        "requests-session@threads",
        "a pool smaller than its threads throws connections away and opens them again",
        "requests-session@threads",
        pool=1,
    ),
    _trap(
        "gather-everything",
        "aiohttp@unbounded",
        "all requests at once: each pays for a connection, and all of them for each other",
        "aiohttp@semaphore",
    ),
)

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (*_SIX, *map(_bare, CLIENTS.values()), *_PAIRS, *_UVLOOP, *_TRAPS)
}


def find(name: str) -> Strategy:
    """The strategy of that name, or any fitting ``client@executor``, with settings: ``NAME?pool=10``.

    Raises LabError with the nearest names. Settings are checked by `check_settings`.
    """
    plain, question, query = name.partition("?")
    strategy = _plain(plain)
    if not question:
        return strategy
    given = {key: _value(text) for key, text in parse_qsl(query, keep_blank_values=True)}
    return replace(strategy, name=name, settings={**strategy.settings, **given})


def _plain(name: str) -> Strategy:
    if name in STRATEGIES:
        return STRATEGIES[name]
    client, at, executor = name.partition("@")
    if at and client in CLIENTS and executor in EXECUTORS:
        return _paired(name, CLIENTS[client], EXECUTORS[executor])
    near = difflib.get_close_matches(name, STRATEGIES, n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    raise LabError(f"strategy {name!r} is unknown{hint}; see 'clientlab list strategies'")


def _value(text: str) -> bool | int | float | str:
    """A setting as written: true, false, a whole number, a number, or a word."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def settings_of(place: str) -> dict[str, Any]:
    """Names and defaults of the settings of a client or executor: its keyword-only arguments."""
    parameters = inspect.signature(load(place)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_settings(strategy: Strategy) -> None:
    """Raises LabError for a library that is missing, or a setting that the strategy does not have."""
    try:
        client = settings_of(CLIENTS[strategy.client].place)
        executor = settings_of(EXECUTORS[strategy.executor].place)
    except ModuleNotFoundError as error:
        raise LabError(
            f"strategy {strategy.name!r} is unavailable: {error.name} is not installed; "
            "pip install 'clientlab[clients]'"
        ) from error
    known: dict[str, Any] = {**client, **executor}
    if CLIENTS[strategy.client].policy == "pool":
        known["pool"] = 1
    for key, value in strategy.settings.items():
        if key not in known:
            raise LabError(f"strategy {strategy.name!r} has no setting {key!r}; it has {', '.join(known) or 'none'}")
        if not _fits(value, known[key]):
            kind = type(known[key]).__name__
            raise LabError(f"strategy {strategy.name!r}: setting {key}={value} is to be of type {kind}")
    if strategy.settings.get("pool", 1) < 1:
        raise LabError(f"strategy {strategy.name!r}: setting pool={strategy.settings['pool']}; write 1 or more")


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def chosen(strategy: Strategy, place: str) -> dict[str, Any]:
    """Those of the strategy's settings that the class at `place` takes."""
    names = settings_of(place) if strategy.settings else {}
    return {key: value for key, value in strategy.settings.items() if key in names}


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
