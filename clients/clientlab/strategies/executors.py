"""The list of executors. A new concurrency model is one file in `clientlab/executors/` and one spec in this list."""

from __future__ import annotations

from clientlab.strategies.specs import ExecutorSpec

_EXECUTORS = "clientlab.executors."

EXECUTORS: dict[str, ExecutorSpec] = {
    spec.name: spec
    for spec in (
        ExecutorSpec(
            "serial",
            _EXECUTORS + "serial:Serial",
            "blocking",
            "one request after the other in one thread",
            concurrent=False,
        ),
        ExecutorSpec(
            "await",
            _EXECUTORS + "serial:AsyncSerial",
            "asyncio",
            "one request after the other in one task",
            concurrent=False,
        ),
        ExecutorSpec(
            "threads",
            _EXECUTORS + "threads:Threads",
            "blocking",
            "ThreadPoolExecutor.map, one thread per request in flight",
            size="max_workers",
        ),
        ExecutorSpec(
            "queue",
            _EXECUTORS + "thread_queue:ThreadQueue",
            "blocking",
            "worker threads on a queue.Queue, one per request in flight",
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
            pool_bound=True,
        ),
        ExecutorSpec(
            "unbounded",
            _EXECUTORS + "asyncio_tasks:Unbounded",
            "asyncio",
            "asyncio.gather over all requests at once, with a connection for each",
            needs_count=True,
            unbounded=True,
        ),
        ExecutorSpec(
            "as-completed",
            _EXECUTORS + "asyncio_tasks:AsCompleted",
            "asyncio",
            "asyncio.as_completed over all requests at once; the client's pool limits them",
            needs_count=True,
            pool_bound=True,
        ),
        ExecutorSpec(
            "semaphore",
            _EXECUTORS + "asyncio_tasks:Semaphore",
            "asyncio",
            "asyncio.gather over all requests, each waiting for a semaphore",
            needs_count=True,
            size="semaphore",
        ),
        ExecutorSpec(
            "workers",
            _EXECUTORS + "asyncio_tasks:WorkerTasks",
            "asyncio",
            "asyncio tasks, one per request in flight, each taking the next request",
            size="tasks",
        ),
        ExecutorSpec(
            "sync_to_async",
            _EXECUTORS + "asyncio_threads:SyncToAsync",
            "blocking",
            "asyncio.gather over sync_to_async(thread_sensitive=False) on a pool of threads",
            needs_count=True,
            size="max_workers",
            distribution="asgiref",
        ),
        ExecutorSpec(
            "sync_to_async-sensitive",
            _EXECUTORS + "asyncio_traps:ThreadSensitive",
            "blocking",
            "asyncio.gather over sync_to_async with its defaults: all calls in one thread",
            needs_count=True,
            concurrent=False,
            distribution="asgiref",
        ),
        ExecutorSpec(
            "blocking-coroutines",
            _EXECUTORS + "asyncio_traps:BlockingInCoroutines",
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
        ),
        ExecutorSpec(
            "futures",
            _EXECUTORS + "futures:Futures",
            "blocking",
            "requests-futures' FuturesSession over all requests at once, one worker thread per request in flight",
            needs_count=True,
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
            only=("requests", "requests-session", "urllib3"),  # written in Python, and no connection per thread
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
