"""The list of strategies: named pairs of client and executor with their settings, from the specs of the clients."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clientlab.strategies.clients import CLIENTS, STREAM_CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.known import client_spec, executor_spec
from clientlab.strategies.specs import ClientSpec, Policy

DEFAULT_CONCURRENCY = 32


@dataclass(frozen=True)
class Strategy:
    """A named pair of client and executor with its settings: what is compared.

    `concurrency`: used if the user gives none. `settings`: keyword arguments of its executor or client; the executor's
    `size`; ``pool``: the connections that the client may hold, in place of one for each request in flight (0 or None:
    no limit); ``library_defaults``: the library's own limits. `source`: ``ecosystem``, ``trap``, ``file`` or the name
    of the package. Of a trap, `wrong` is its mistake, and `mended_by` the strategy without it.
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
        """Who owns a connection, and for how long: the executor's policy if it has one, else the client's."""
        return executor_spec(self.executor).policy or client_spec(self.client).policy

    def in_flight(self, asked: int | None, requests: int | None = None) -> int:
        """Requests in flight at once: `asked`, or if None the strategy's own concurrency.

        The setting of the executor's size replaces both. A serial executor has 1; one that nothing bounds has all
        `requests`.
        """
        spec = executor_spec(self.executor)
        if not spec.concurrent:
            return 1
        unbounded = spec.unbounded or (spec.pool_bound and not self.settings.get("pool", 1))
        if unbounded and requests is not None:
            return requests
        if spec.size in self.settings:
            return int(self.settings[spec.size])
        return self.concurrency if asked is None else asked


def alone(client: ClientSpec, name: str, source: str = "ecosystem") -> Strategy:
    """The client without a named executor: it sends one request after the other.

    A program sends all requests itself, and a client for each thread has threads.
    """
    usual = {"blocking": "serial", "asyncio": "await", "program": "program"}[client.kind]
    executor = next((name for name in client.only if name in EXECUTORS), usual)
    return Strategy(name, client.name, executor, _concurrency(executor), source)


def _concurrency(executor: str) -> int:
    return DEFAULT_CONCURRENCY if EXECUTORS[executor].concurrent else 1


def _alone(clients: Mapping[str, ClientSpec]) -> tuple[Strategy, ...]:
    """Each client without a named executor."""
    return tuple(alone(client, client.name) for client in clients.values())


def _paired(clients: Mapping[str, ClientSpec]) -> tuple[Strategy, ...]:
    """Each client with each executor of its listed strategies."""
    return tuple(
        Strategy(f"{client.name}@{executor}", client.name, executor)
        for executor in EXECUTORS
        for client in clients.values()
        if executor in client.executors
    )


# The six of the experiment six-strategies, with the names and the numbers of its article.
_SIX = (
    Strategy("sync", "requests", "serial", 1),
    Strategy("sync_threads", "requests", "threads", 100),
    Strategy("sync_multiprocess", "requests", "processes", 10),
    Strategy("async_threads", "requests", "sync_to_async", 100),
    Strategy("async_with_async_client", "aiohttp", "gather", 100),
    # aiohttp's own limit of 100 in each of six processes, and up to 5 requests for the remainder.
    Strategy("async_multiprocess_with_async_client", "aiohttp", "async-processes", 605),
)

_UVLOOP = tuple(
    Strategy(f"{client.name}-uvloop@{executor}", client.name, executor, settings={"loop": "uvloop"})
    for client in CLIENTS.values()
    for executor in client.on_uvloop
)


def _trap(name: str, pair: str, wrong: str, mended_by: str, **settings: Any) -> Strategy:
    client, _, executor = pair.partition("@")
    return Strategy(f"trap-{name}", client, executor, _concurrency(executor), "trap", settings, wrong, mended_by)


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
        "sync_to_async sends all calls to one thread without thread_sensitive=False",
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
    strategy.name: strategy for strategy in (*_SIX, *_alone(CLIENTS), *_paired(CLIENTS), *_UVLOOP, *_TRAPS)
}
"""Those that send requests of any kind."""

STREAM_STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (*_alone(STREAM_CLIENTS), *_paired(STREAM_CLIENTS))
}
"""Those that only read streams of events."""

LISTED: Mapping[str, Strategy] = ChainMap(STREAM_STRATEGIES, STRATEGIES)
"""Both, those that send any request first."""
