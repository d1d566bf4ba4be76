"""The list of strategies: named pairs of client and executor with their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.rows import ClientRow

DEFAULT_CONCURRENCY = 32


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
        ("threads", ("httpx-client-h2", "pycurl-h2")),
        ("queue", ("requests-session",)),
        ("processes", ("requests-session", "pycurl")),
        ("process-chunks", ("requests", "requests-session")),
        ("sync_to_async", ("requests-session", "httpx-client")),
        ("gather", ("aiohttp", "httpx-async")),
        ("as-completed", ("aiohttp", "httpx-async")),
        ("semaphore", ("aiohttp", "httpx-async")),
        ("workers", ("aiohttp", "httpx-async", "pyreqwest-async", "aiosonic")),
        ("workers", ("httpx-async-h2",)),
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
