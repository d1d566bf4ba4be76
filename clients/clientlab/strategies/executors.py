"""The list of executors, and the event loops that those on asyncio may run on.

A new concurrency model is one file in `clientlab/executors/` and one spec in this list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clientlab.strategies.specs import EXTRA, ExecutorSpec


@dataclass(frozen=True)
class LoopSpec:
    """An event loop of asyncio. `refused`: why no strategy can run on it."""

    name: str
    distribution: str  # the run file has its version; "python": the standard library
    extra: str = EXTRA  # the extra of pyproject.toml that installs it
    has_tls: bool = True
    refused: str = ""


LOOPS: dict[str, LoopSpec] = {
    spec.name: spec
    for spec in (
        LoopSpec("asyncio", "python"),
        LoopSpec("uvloop", "uvloop"),
        LoopSpec("rloop", "rloop", extra="more", has_tls=False),
        LoopSpec("winloop", "winloop", refused="it is uvloop for Windows, where the lab does not run"),
    )
}


def loop_of(settings: Mapping[str, Any]) -> LoopSpec:
    """The loop that the settings of a strategy name, or that of Python. `settings` may name one that is unknown."""
    return LOOPS.get(str(settings.get("loop")), LOOPS["asyncio"])


def loop_advice(name: object) -> str | None:
    """What to write instead, if no strategy can run on a loop of that name."""
    if name in LOOPS and not LOOPS[str(name)].refused:
        return None
    *names, last = (spec.name for spec in LOOPS.values() if not spec.refused)
    refused = f"; {LOOPS[str(name)].refused}" if name in LOOPS else ""
    return f"{', '.join(names)} or {last}{refused}"


_EXECUTORS = "clientlab.executors."

EXECUTORS: dict[str, ExecutorSpec] = {
    spec.name: spec
    for spec in (
        ExecutorSpec(
            "serial",
            _EXECUTORS + "threads:Serial",
            "blocking",
            "one request after the other in one thread",
            concurrent=False,
        ),
        ExecutorSpec(
            "await",
            _EXECUTORS + "threads:AsyncSerial",
            "asyncio",
            "one request after the other in one task",
            concurrent=False,
            cancels=True,
        ),
        ExecutorSpec(
            "threads",
            _EXECUTORS + "threads:Threads",
            "blocking",
            "ThreadPoolExecutor.map, one thread per request in flight",
            threads=True,
            size="max_workers",
        ),
        ExecutorSpec(
            "queue",
            _EXECUTORS + "threads:ThreadQueue",
            "blocking",
            "worker threads on a queue.Queue, one per request in flight",
            threads=True,
            size="threads",
        ),
        ExecutorSpec(
            "processes",
            _EXECUTORS + "processes:Processes",
            "blocking",
            "ProcessPoolExecutor.map with one request per task, one process per request in flight",
            size="processes",
        ),
        ExecutorSpec(
            "process-chunks",
            _EXECUTORS + "processes:ProcessChunks",
            "blocking",
            "ProcessPoolExecutor.map with one chunk of the requests per process",
            size="processes",
        ),
        ExecutorSpec(
            "gather",
            _EXECUTORS + "asyncio_tasks:Gather",
            "asyncio",
            "asyncio.gather over all requests at once; the client's pool limits them",
            needs_count=True,
            clock_first=True,
            pool_bound=True,
            cancels=True,
        ),
        ExecutorSpec(
            "unbounded",
            _EXECUTORS + "asyncio_tasks:Unbounded",
            "asyncio",
            "asyncio.gather over all requests at once, with a connection for each",
            needs_count=True,
            unbounded=True,
            cancels=True,
        ),
        ExecutorSpec(
            "as-completed",
            _EXECUTORS + "asyncio_tasks:AsCompleted",
            "asyncio",
            "asyncio.as_completed over all requests at once; the client's pool limits them",
            needs_count=True,
            clock_first=True,
            pool_bound=True,
            cancels=True,
        ),
        ExecutorSpec(
            "semaphore",
            _EXECUTORS + "asyncio_tasks:Semaphore",
            "asyncio",
            "asyncio.gather over all requests, each waiting for a semaphore",
            needs_count=True,
            size="semaphore",
            cancels=True,
        ),
        ExecutorSpec(
            "workers",
            _EXECUTORS + "asyncio_tasks:WorkerTasks",
            "asyncio",
            "asyncio tasks, one per request in flight, each taking the next request",
            size="tasks",
            cancels=True,
        ),
        ExecutorSpec(
            "trio",
            _EXECUTORS + "trio_tasks:TrioTasks",
            "asyncio",
            "trio tasks in a nursery, one per request in flight, each taking the next request",
            size="tasks",
            only=("httpx-async", "httpx-async-h2", "httpx2-async", "httpx2-async-h2"),  # they run on both
            distribution="trio",
            extra="more",
        ),
        ExecutorSpec(
            "sync_to_async",
            _EXECUTORS + "sync_to_async:SyncToAsync",
            "blocking",
            "asyncio.gather over sync_to_async(thread_sensitive=False) on a pool of threads",
            needs_count=True,
            threads=True,
            size="max_workers",
            distribution="asgiref",
        ),
        ExecutorSpec(
            "sync_to_async-sensitive",
            _EXECUTORS + "asyncio_tasks:ThreadSensitive",
            "blocking",
            "asyncio.gather over sync_to_async with its defaults: all calls in one thread",
            needs_count=True,
            concurrent=False,
            distribution="asgiref",
        ),
        ExecutorSpec(
            "blocking-coroutines",
            _EXECUTORS + "asyncio_tasks:BlockingInCoroutines",
            "blocking",
            "asyncio.gather over coroutines that call a blocking client",
            needs_count=True,
            concurrent=False,
            distribution="asgiref",
        ),
        ExecutorSpec(
            "async-processes",
            _EXECUTORS + "asyncio_processes:AsyncioProcesses",
            "asyncio",
            "asyncio.gather over one chunk in each of 6 processes, and in a further one for the remainder",
            needs_count=True,
            clock_first=True,
        ),
        ExecutorSpec(
            "async-threads",
            _EXECUTORS + "asyncio_threads:AsyncioThreads",
            "asyncio",
            "4 threads with an event loop and a client each, and in them asyncio tasks that take the next request",
        ),
        ExecutorSpec(
            "futures",
            _EXECUTORS + "futures:Futures",
            "blocking",
            "requests-futures' FuturesSession over all requests at once, one worker thread per request in flight",
            needs_count=True,
            threads=True,
            size="max_workers",
            only=("requests-session",),
            distribution="requests-futures",
        ),
        ExecutorSpec(
            "gevent",
            _EXECUTORS + "gevent_pool:GeventPool",
            "blocking",
            "gevent.pool.Pool, one greenlet per request in flight, with everything monkey-patched",
            size="size",
            only=("requests", "requests-session", "urllib3", "geventhttpclient"),  # no connection per thread
            distribution="gevent",
        ),
        ExecutorSpec(
            "multi",
            _EXECUTORS + "curl_multi:CurlMulti",
            "blocking",
            "libcurl's multi interface: one handle per request in flight, all driven by one thread",
            only=("pycurl",),
            policy="pool",
            drives_client=True,
        ),
        ExecutorSpec(
            "program",
            _EXECUTORS + "program:Program",
            "program",
            "starts the client's program once, which sends all requests itself",
            needs_count=True,
        ),
    )
}
