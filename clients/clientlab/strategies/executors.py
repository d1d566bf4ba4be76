"""The list of executors: a new concurrency model is one file under `clientlab/executors/` and one row here."""

from __future__ import annotations

from clientlab.strategies.rows import ExecutorRow

_EXECUTORS = "clientlab.executors."

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
            size="max_workers",
        ),
        ExecutorRow(
            "queue",
            _EXECUTORS + "thread_queue:ThreadQueue",
            "blocking",
            "worker threads on a queue.Queue, one for each request in flight",
            size="threads",
        ),
        ExecutorRow(
            "processes",
            _EXECUTORS + "processes:Processes",
            "blocking",
            "ProcessPoolExecutor.map, one request a task, a process for each in flight",
            size="processes",
        ),
        ExecutorRow(
            "process-chunks",
            _EXECUTORS + "processes:ProcessChunks",
            "blocking",
            "ProcessPoolExecutor.map, one chunk of the requests a process",
            size="processes",
        ),
        ExecutorRow(
            "gather",
            _EXECUTORS + "asyncio_tasks:Gather",
            "asyncio",
            "asyncio.gather over all at once; the client's pool bounds them",
            counted=True,
            pool_bound=True,
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
            pool_bound=True,
        ),
        ExecutorRow(
            "semaphore",
            _EXECUTORS + "asyncio_tasks:Semaphore",
            "asyncio",
            "asyncio.gather over all, each waiting for a semaphore",
            counted=True,
            size="semaphore",
        ),
        ExecutorRow(
            "workers",
            _EXECUTORS + "asyncio_tasks:Workers",
            "asyncio",
            "asyncio tasks, one for each request in flight, drawing the next",
            size="tasks",
        ),
        ExecutorRow(
            "sync_to_async",
            _EXECUTORS + "asyncio_threads:SyncToAsync",
            "blocking",
            "asyncio.gather over sync_to_async(thread_sensitive=False) on a pool of threads",
            counted=True,
            size="max_workers",
            distribution="asgiref",
        ),
        ExecutorRow(
            "sync_to_async-sensitive",
            _EXECUTORS + "asyncio_traps:ThreadSensitive",
            "blocking",
            "asyncio.gather over sync_to_async as it comes: all calls in one thread",
            counted=True,
            many=False,
            distribution="asgiref",
        ),
        ExecutorRow(
            "blocking-coroutines",
            _EXECUTORS + "asyncio_traps:BlockingInCoroutines",
            "blocking",
            "asyncio.gather over coroutines that call a blocking client",
            counted=True,
            many=False,
            distribution="asgiref",
        ),
        ExecutorRow(
            "async-processes",
            _EXECUTORS + "asyncio_processes:AsyncioProcesses",
            "asyncio",
            "asyncio.gather over a chunk in each of 6 processes, and one for the remainder",
            counted=True,
        ),
        ExecutorRow(
            "futures",
            _EXECUTORS + "futures:Futures",
            "blocking",
            "requests-futures' FuturesSession over all at once, a worker thread for each in flight",
            counted=True,
            size="max_workers",
            only=("requests-session",),
            distribution="requests-futures",
        ),
        ExecutorRow(
            "gevent",
            _EXECUTORS + "gevent_pool:GeventPool",
            "blocking",
            "gevent.pool.Pool, a greenlet for each request in flight, everything monkey-patched",
            size="size",
            only=("requests", "requests-session", "urllib3"),  # in Python, and no connection a thread
            distribution="gevent",
        ),
        ExecutorRow(
            "multi",
            _EXECUTORS + "curl_multi:CurlMulti",
            "blocking",
            "libcurl's multi interface: a handle for each request in flight, all driven by one thread",
            only=("pycurl",),
            policy="pool",
            sends=True,
        ),
        ExecutorRow(
            "program",
            _EXECUTORS + "program:Program",
            "program",
            "the client's program, started once, which sends all requests itself",
            counted=True,
        ),
    )
}
