"""The list of strategies, and how a strategy is found by its name.

Names come from documents too: `find` runs no code of a file or a package. See `plugins`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clientlab import settings
from clientlab.errors import LabError
from clientlab.nearest import nearest
from clientlab.strategies import plugins
from clientlab.strategies.plugins import client_spec, executor_spec, file_of, of_packages, pair_of
from clientlab.strategies.registry import CLIENTS, EXECUTORS, ClientSpec, ExecutorSpec, Policy

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
        """Return the requests in flight at once: `asked`, or if None the strategy's own concurrency.

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


def _alone(client: ClientSpec, name: str, source: str = "ecosystem") -> Strategy:
    """Return the client without a named executor: it sends one request after the other.

    A program sends all requests itself, and a client for each thread has threads.
    """
    usual = {"blocking": "serial", "asyncio": "await", "program": "program"}[client.kind]
    executor = next((name for name in client.only if name in EXECUTORS), usual)
    return Strategy(name, client.name, executor, _concurrency(executor), source)


def _concurrency(executor: str) -> int:
    return DEFAULT_CONCURRENCY if EXECUTORS[executor].concurrent else 1


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

_PAIRED = {
    "threads": (
        "requests requests-session urllib3 http.client httplib2 niquests httpx-client httpx2-client pycurl pycurl-h2 "
        "curl-cffi pyqwest"  # not httpx over HTTP/2, whose connection threads cannot share: docs/limits.md
    ),
    "queue": "requests-session",
    "processes": "requests-session",
    "process-chunks": "requests-session",
    "gather": "aiohttp httpx-async",
    "as-completed": "aiohttp",
    "semaphore": "aiohttp httpx-async",
    "workers": (
        "aiohttp niquests-async httpx-async httpx-async-h2 httpx2-async httpx2-async-h2 httpx-aiohttp httpx2-aiohttp "
        "curl-cffi-async pyqwest-async"
    ),
    "trio": "httpx2-async",
    "sync_to_async": "requests-session",
    "async-processes": "aiohttp",
    "async-threads": "aiohttp",
    "futures": "requests-session",
    "gevent": "requests-session urllib3 geventhttpclient",
    "multi": "pycurl",
}
"""Executor → its clients in listed strategies. Other fitting pairs can be named too."""
_PAIRS = tuple(
    Strategy(f"{client}@{executor}", client, executor)
    for executor, clients in _PAIRED.items()
    for client in clients.split()
)
_UVLOOP = tuple(
    Strategy(f"{client}-uvloop@{executor}", client, executor, settings={"loop": "uvloop"})
    for client, executor in (("aiohttp", "workers"), ("aiohttp", "semaphore"), ("httpx-async", "workers"))
)


def _trap(name: str, pair: str, wrong: str, mended_by: str, **settings: Any) -> Strategy:
    client, executor = pair_of(pair)
    return Strategy(f"trap-{name}", client, executor, _concurrency(executor), "trap", settings, wrong, mended_by)


_TRAPS = (
    _trap("blocking-in-coroutine", "requests-session@blocking-coroutines",
        "a blocking call stops the event loop: coroutines around it run one after the other",
        "requests-session@sync_to_async"),
    _trap("thread-sensitive", "requests-session@sync_to_async-sensitive",
        "sync_to_async sends all calls to one thread without thread_sensitive=False", "requests-session@sync_to_async"),
    _trap("session-per-request", "aiohttp-per-call@workers", "a session for each request keeps no connection",
        "aiohttp@workers"),
    _trap("client-per-request", "httpx@threads",
        "httpx.get builds a client and its TLS context for each request, even for plain HTTP", "httpx-client@threads"),
    _trap("small-pool", "requests-session@threads",
        "a pool smaller than its threads throws connections away and opens them again", "requests-session@threads",
        pool=1),
    _trap("gather-everything", "aiohttp@unbounded",
        "all requests at once: each pays for a connection, and all of them for each other", "aiohttp@semaphore"),
)  # fmt: skip

_ALONE = tuple(_alone(client, client.name) for client in CLIENTS.values())
STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in (*_SIX, *_ALONE, *_PAIRS, *_UVLOOP, *_TRAPS)}


def find(name: str) -> Strategy:
    """Return the strategy of that name, or any fitting ``client@executor``; both with settings: ``NAME?pool=10``.

    A strategy of a file or of a package is found if `plugins.admit` was given its name. Raises LabError with the
    nearest names. `check_settings` checks the settings.
    """
    plain, given = settings.split(name)
    strategy = STRATEGIES.get(plain) or _unlisted(plain)
    if plain == name:
        return strategy
    return replace(strategy, name=name, settings={**strategy.settings, **given})


def _unlisted(name: str) -> Strategy:
    """Return a strategy of any client and executor, of a user's file, or of an installed package. Raises LabError."""
    client_name, executor_name = pair_of(name)
    client: ClientSpec | None = None
    with contextlib.suppress(KeyError):  # the error below names the nearest strategies
        client = client_spec(client_name)
        if not executor_name:
            return _alone(client, name, "file" if file_of(name) else client.distribution)
        return _pair(name, client, executor_spec(executor_name))
    if name.endswith(".py"):
        raise LabError(f"strategy {name!r} is a file; write {name}:fetch, with the name of its function or class")
    names = [*STRATEGIES, *(one.name for one in strategies_of_packages())]
    if client is not None and executor_name:
        names = [f"{client_name}@{executor}" for executor in _executors_of(client)]
    own = ":" in name and file_of(client_name) is None
    hint = "; a function of yours is mine.py:fetch" if own else nearest(name, names)
    if not {client_name, executor_name} & plugins.ADMITTED.keys():
        hint += f"; if a package has it, add -t {name}"
    raise LabError(f"strategy {name!r} is unknown{hint}; see 'clientlab list strategies'")


def _pair(name: str, client: ClientSpec, executor: ExecutorSpec) -> Strategy:
    if executor.runs(client):
        return Strategy(name, client.name, executor.name)
    fitting = ", ".join(_executors_of(client))
    if executor.only:
        reason = f"{executor.name} runs only {', '.join(executor.only)}; {client.name} goes with {fitting}"
    elif client.kind == executor.needs:
        reason = f"{client.name} goes with {fitting} only"
    else:
        reason = f"{client.name} is a client of kind {client.kind} and {executor.name} runs {executor.needs} ones"
        reason += f"; it goes with {fitting}"
    raise LabError(f"strategy {name!r}: {reason}")


def _executors_of(client: ClientSpec) -> list[str]:
    return [spec.name for spec in EXECUTORS.values() if spec.runs(client)]


def strategies_of_packages() -> list[Strategy]:
    """Return the clients of admitted packages, each alone. Their `source` is the package."""
    clients = (spec for spec in of_packages() if isinstance(spec, ClientSpec))
    return [_alone(spec, spec.name, spec.distribution) for spec in clients]


def with_several(strategy: Strategy) -> str | None:
    """Return a name of the same client with several requests in flight, or None if no listed strategy has it."""
    if strategy.mended_by:
        return strategy.mended_by
    client = client_spec(strategy.client)
    usual = {"blocking": "threads", "asyncio": "workers"}.get(client.kind)
    if client.name not in CLIENTS:
        name = pair_of(settings.split(strategy.name)[0])[0]
        return None if usual is None else f"{name}@{usual}"
    listed = [one.name for one in _PAIRS if one.client == client.name]
    return next((name for name in listed if name.endswith(f"@{usual}")), listed[0] if listed else None)
