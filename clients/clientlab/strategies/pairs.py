"""The list of strategies: named pairs of client and executor with their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.plugins import client_row, executor_row
from clientlab.strategies.rows import ClientRow, Policy

DEFAULT_CONCURRENCY = 32


@dataclass(frozen=True)
class Strategy:
    """A named pair of client and executor with its settings: what is compared.

    `concurrency` is the strategy's own, used where the user names none. `settings` are keyword arguments
    of its executor or client, the executor's `size`, or ``pool``: connections that the client may hold, in
    place of as many as there are requests in flight (0 or None: no limit); with ``library_defaults`` the library's
    own limits hold. `source` names the articles that it comes from, or is ``ecosystem``, or ``trap``: then
    `wrong` says what is wrong with it, and `mended_by` which strategy mends it.
    """

    name: str
    client: str
    executor: str
    concurrency: int = DEFAULT_CONCURRENCY
    source: str = "ecosystem"
    settings: Mapping[str, Any] = field(default_factory=dict)
    wrong: str = ""
    mended_by: str = ""

    @property
    def policy(self) -> Policy:
        """Who owns a connection, and for how long: the client's policy, or the executor's where it has one."""
        return executor_row(self.executor).policy or client_row(self.client).policy

    def in_flight(self, asked: int | None, requests: int | None = None) -> int:
        """Requests in flight at once: what is asked for, else the strategy's own.

        What its own setting of the executor's size says, or 1 where it is serial, whatever is asked; all
        `requests` where nothing bounds it.
        """
        row = executor_row(self.executor)
        if not row.many:
            return 1
        unbounded = row.unbounded or (row.pool_bound and not self.settings.get("pool", 1))
        if unbounded and requests is not None:
            return requests
        if row.size in self.settings:
            return int(self.settings[row.size])
        return self.concurrency if asked is None else asked


_IN_ARTICLES = {
    "ab": "frameworks",
    "requests": "sessions, semaphore, keepalive",
    "requests-session": "sessions, keepalive, frameworks",
    "httpx-client": "keepalive",
    "requests-session@futures": "sessions",
    "requests-session@queue": "semaphore",
    "requests-session@threads": "frameworks",
    "aiohttp@gather": "sessions, semaphore, frameworks",
    "aiohttp@semaphore": "semaphore",
    "aiohttp-uvloop@semaphore": "semaphore",
    "httpx-async@gather": "semaphore",
    "httpx-async@semaphore": "semaphore",
    "pycurl@multi": "semaphore",
}
"""Which of the five articles a strategy stands in; "six-strategies" has names of its own."""


def _source(name: str) -> str:
    return _IN_ARTICLES.get(name, "ecosystem")


def _article(name: str, client: str, executor: str, concurrency: int) -> Strategy:
    return Strategy(name, client, executor, concurrency, "six-strategies")


def _bare(client: ClientRow) -> Strategy:
    executor = {"blocking": "serial", "asyncio": "await", "program": "program"}[client.kind]
    concurrency = DEFAULT_CONCURRENCY if EXECUTORS[executor].many else 1
    return Strategy(client.name, client.name, executor, concurrency, _source(client.name))


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
    Strategy(f"{client}@{executor}", client, executor, source=_source(f"{client}@{executor}"))
    for executor, clients in (
        ("threads", ("requests", "requests-session", "httpx-client", "urllib3", "http.client", "pycurl")),
        ("threads", ("httplib2", "pyreqwest", "niquests")),
        # httpx's blocking HTTP/2 is not safe between threads: README, known limits
        ("threads", ("pycurl-h2", "niquests-h2")),
        ("queue", ("requests-session",)),
        ("futures", ("requests-session",)),
        ("gevent", ("requests-session", "urllib3")),
        ("multi", ("pycurl",)),
        ("processes", ("requests-session", "pycurl")),
        ("process-chunks", ("requests", "requests-session")),
        ("sync_to_async", ("requests-session", "httpx-client")),
        ("gather", ("aiohttp", "httpx-async")),
        ("as-completed", ("aiohttp", "httpx-async")),
        ("semaphore", ("aiohttp", "httpx-async")),
        ("workers", ("aiohttp", "httpx-async", "pyreqwest-async", "aiosonic", "niquests-async")),
        ("workers", ("httpx-async-h2", "niquests-async-h2")),
        ("async-processes", ("aiohttp", "httpx-async")),
    )
    for client in clients
)

_UVLOOP = tuple(
    Strategy(name, client, executor, source=_source(name), settings={"loop": "uvloop"})
    for client, executor in (("aiohttp", "workers"), ("aiohttp", "semaphore"), ("httpx-async", "workers"))
    for name in (f"{client}-uvloop@{executor}",)
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
