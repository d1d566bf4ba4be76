"""The clients and executors of the lab, as data: what `clientlab list` shows and what pairs with what.

The entries are here and not beside the classes, because a class needs its library. Lists, documents and reports read
the registry where most libraries are not installed, and a trial's process imports its own library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

ClientKind = Literal["blocking", "asyncio", "program"]
"""How a client is called. A program sends all requests itself: it is a load generator, not a library."""
Policy = Literal["per call", "pool", "per thread"]
"""Who owns a connection, and for how long."""

EXTRA = "all"
"""The extra of pyproject.toml with most libraries that the lab measures."""


def _quirk(description: str, default: Any) -> Any:
    """Return a field with the sentence that `clientlab list clients` shows about it."""
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True)
class Quirks:
    """Behaviour that differs from all other libraries and that the client cannot prevent.

    Conformance checks and tests permit exactly these differences. `resends_after` and `fault_kinds` name faults of
    conformance/faults.py.
    """

    opens_ahead: bool = _quirk("may open one more connection while a used one returns to its pool", default=False)
    closes_after_head: bool = _quirk("closes its connection after each HEAD", default=False)
    resends_after: tuple[str, ...] = _quirk("sends the request again after the fault", default=())
    fault_kinds: tuple[tuple[str, str], ...] = _quirk("reports the fault as another kind of error", default=())
    one_request_per_connection: bool = _quirk("sends one request at a time per HTTP/2 connection", default=False)
    resumes_tls: bool = _quirk("resumes a TLS session on its next connection", default=False)
    keep_alive_header: bool = _quirk("sends `Connection: keep-alive`, 24 bytes more per request", default=False)
    uncounted: bool = _quirk("hides its connections, which are unknown (–)", default=False)
    searches_pool: bool = _quirk("searches its whole pool for each request: CPU time grows with `-c`", default=False)
    own_chunk_size: int | None = _quirk("ignores `chunk_size`; bytes of its largest chunk", default=None)
    late_in_bodies: float = _quirk("seconds after the time limit until it notices silence in a body", default=0.0)


@dataclass(frozen=True)
class ClientSpec:
    """One library with one connection policy."""

    name: str
    import_path: str  # module:Class
    distribution: str  # the run file stores its version; "python": the standard library
    policy: Policy
    description: str
    kind: ClientKind = "blocking"
    http: Literal["1.1", "2"] = "1.1"  # the only version that it speaks; "2": over TLS only
    streams: int | None = None  # HTTP/2: the most requests at once on a connection, if the library has a limit
    only: tuple[str, ...] = ()  # the executors that it goes with, that of its bare name first; empty: all of its kind
    needs: tuple[str, ...] = ()  # further distributions
    extra: str = EXTRA  # the extra of pyproject.toml that installs it
    program: str = ""  # the program that it starts, if it is not a library
    package: str = ""  # the system package with the program
    unlimited: bool = False  # its pool can be without a limit
    native: bool = False  # its library works outside the GIL: each thread can use a core
    own_threads: bool = False  # a native library with threads of its own
    url_only: bool = False  # a user's function: it gets a URL, and no method, header, body or CA
    quirks: Quirks = Quirks()


@dataclass(frozen=True)
class ExecutorSpec:
    """One way to run many requests. `needs` is the kind of client that it runs."""

    name: str
    import_path: str  # module:Class
    description: str
    needs: ClientKind = "blocking"
    needs_count: bool = False  # starts all requests at once, so their number must be known
    concurrent: bool = True  # has more than one request in flight
    unbounded: bool = False  # has all requests in flight, whatever the concurrency
    pool_bound: bool = False  # only the client's pool limits the requests in flight
    threads: bool = False  # each request in flight has a thread
    clock_first: bool = False  # the clock of a request starts before a connection of the pool is free
    size: str = ""  # the setting that replaces ``-c`` for its strategies
    only: tuple[str, ...] = ()  # the clients that it runs; empty: all of its kind
    policy: Policy | None = None  # of connections; None: the client's
    drives_client: bool = False  # sends with the client's handles: whole bodies, timed by the lab only
    distribution: str = "python"  # it needs this one, and the run file stores its version
    extra: str = EXTRA  # the extra of pyproject.toml that installs it

    def runs(self, client: ClientSpec) -> bool:
        """Return whether the two make a strategy."""
        fits = (not self.only or client.name in self.only) and (not client.only or self.name in client.only)
        return client.kind == self.needs and fits


_IN_THREADS = ("threads", "queue", "sync_to_async")
"""The executors of clients that are made for each thread: in one thread, the client would be the shared one."""


def _httpx_family(library: str) -> Iterator[ClientSpec]:
    """Yield the clients of httpx or of httpx2, its continuation. Their classes have the same names but for a prefix."""
    plain, h2 = f"{library}_clients:{library.capitalize()}", f"{library}_h2:{library.capitalize()}"
    on_aiohttp = f"{library}_on_aiohttp:{library.capitalize()}OnAiohttp"
    searches = Quirks(searches_pool=True)
    per_call = f"{library}.request(…): a client, its TLS set-up and a connection per call"
    per_thread = f"one {library}.Client for each thread, with a pool of one connection"
    over_h2 = "over HTTP/2: one connection for all"
    by_aiohttp = f"one {library}.AsyncClient on aiohttp, by httpx-aiohttp's transport"
    streams = 100  # httpcore and httpcore2 (`http2.py`) announce 100 streams to the server, and open no more
    yield from (
        ClientSpec(library, f"{plain}PerCall", library, "per call", per_call, quirks=Quirks(keep_alive_header=True)),
        ClientSpec(f"{library}-client", f"{plain}Client", library, "pool", f"one {library}.Client", unlimited=True,
            quirks=searches),
        ClientSpec(f"{library}-client-per-thread", f"{plain}ClientPerThread", library, "per thread", per_thread,
            only=_IN_THREADS, quirks=searches),
        ClientSpec(f"{library}-async", f"{plain}Async", library, "pool", f"one {library}.AsyncClient", "asyncio",
            unlimited=True, quirks=searches),
        ClientSpec(f"{library}-client-h2", f"{h2}ClientH2", library, "pool", f"one {library}.Client {over_h2}",
            http="2", streams=streams, needs=("h2",)),
        ClientSpec(f"{library}-async-h2", f"{h2}AsyncH2", library, "pool", f"one {library}.AsyncClient {over_h2}",
            "asyncio", http="2", streams=streams, needs=("h2",)),
        ClientSpec(f"{library}-aiohttp", on_aiohttp, "httpx-aiohttp", "pool", by_aiohttp, "asyncio",
            needs=(library, "aiohttp"), unlimited=True),
    )  # fmt: skip


_LIBCURL = Quirks(
    resends_after=("used connection closed", "used connection reset"),
    resumes_tls=True,
    own_chunk_size=16_384,
    late_in_bodies=8.0,  # libcurl measures the speed of a body over the last seconds
)
_NIQUESTS = Quirks(fault_kinds=(("reset in the body", "protocol"),))  # urllib3-future: the stream's end
_PYQWEST = Quirks(opens_ahead=True, resumes_tls=True, uncounted=True)

_CLIENTS = (
    ClientSpec("requests", "requests_clients:RequestsPerCall", "requests", "per call",
        "requests.request(…): a session and a connection per call", needs=("urllib3",)),
    ClientSpec("requests-session", "requests_clients:RequestsSession", "requests", "pool", "one requests.Session",
        needs=("urllib3",)),
    ClientSpec("requests-session-per-thread", "requests_clients:RequestsSessionPerThread", "requests", "per thread",
        "one requests.Session for each thread, with a pool of one connection", needs=("urllib3",), only=_IN_THREADS),
    ClientSpec("aiohttp", "aiohttp_clients:AiohttpSession", "aiohttp", "pool", "one aiohttp.ClientSession", "asyncio",
        unlimited=True),
    ClientSpec("aiohttp-per-call", "aiohttp_clients:AiohttpPerCall", "aiohttp", "per call",
        "an aiohttp.ClientSession and a connection per call", "asyncio"),
    ClientSpec("urllib3", "urllib3_pool:Urllib3Pool", "urllib3", "pool", "one urllib3.PoolManager"),
    ClientSpec("urllib3-per-thread", "urllib3_pool:Urllib3PerThread", "urllib3", "per thread",
        "one urllib3.PoolManager for each thread, with a pool of one connection", only=_IN_THREADS),
    ClientSpec("http.client", "http_client:HttpClient", "python", "per thread",
        "one connection of the standard library per thread"),
    ClientSpec("httplib2", "httplib2_http:Httplib2Http", "httplib2", "per thread", "one httplib2.Http per thread",
        quirks=Quirks(closes_after_head=True)),
    ClientSpec("niquests", "niquests_clients:NiquestsSession", "niquests", "pool", "one niquests.Session, HTTP/1.1",
        extra="niquests", quirks=_NIQUESTS),
    ClientSpec("niquests-async", "niquests_clients:NiquestsAsync", "niquests", "pool",
        "one niquests.AsyncSession, HTTP/1.1", "asyncio", extra="niquests", quirks=_NIQUESTS),
    *_httpx_family("httpx"),
    *_httpx_family("httpx2"),
    ClientSpec("pycurl", "pycurl_clients:PycurlHandle", "pycurl", "per thread", "one libcurl handle per thread",
        native=True, quirks=_LIBCURL),
    ClientSpec("pycurl-h2", "pycurl_clients:PycurlH2", "pycurl", "per thread",
        "one libcurl handle per thread over HTTP/2, one request at a time on each", http="2", native=True,
        quirks=replace(_LIBCURL, one_request_per_connection=True)),
    ClientSpec("curl-cffi", "curl_cffi_session:CurlCffiSession", "curl-cffi", "per thread",
        "one curl_cffi.Session without impersonation: a libcurl handle per thread", native=True, quirks=_LIBCURL),
    ClientSpec("curl-cffi-async", "curl_cffi_session:CurlCffiAsync", "curl-cffi", "pool",
        "one curl_cffi.AsyncSession without impersonation, on libcurl's multi interface", "asyncio", native=True,
        quirks=_LIBCURL),
    ClientSpec("pyqwest", "pyqwest_client:PyqwestClient", "pyqwest", "pool",
        "one pyqwest SyncClient, on Rust's reqwest", extra="more", unlimited=True, native=True, own_threads=True,
        quirks=_PYQWEST),
    ClientSpec("pyqwest-async", "pyqwest_client:PyqwestAsync", "pyqwest", "pool",
        "one pyqwest Client for asyncio, on Rust's reqwest", "asyncio", extra="more", unlimited=True, native=True,
        own_threads=True, quirks=_PYQWEST),
    ClientSpec("geventhttpclient", "gevent_http:GeventHttp", "geventhttpclient", "pool",
        "one geventhttpclient.HTTPClient: sockets of gevent, a parser in C",
        only=("serial", "gevent"),  # its pool belongs to one thread, and a process that gevent serves must not fork
        extra="more"),
    ClientSpec("ab", "apache_bench:ApacheBench", "python", "pool",
        "ApacheBench, a load generator and no library: HTTP/1.0 with keep-alive, timed by its own clock", "program",
        program="ab", package="apache2-utils"),
)  # fmt: skip

_EXECUTORS = (
    ExecutorSpec("serial", "threads:Serial", "one request after the other in one thread", concurrent=False),
    ExecutorSpec("await", "asyncio_tasks:AsyncSerial", "one request after the other in one task", "asyncio",
        concurrent=False),
    ExecutorSpec("threads", "threads:Threads", "ThreadPoolExecutor.map, one thread per request in flight", threads=True,
        size="max_workers"),
    ExecutorSpec("queue", "threads:ThreadQueue", "worker threads on a queue.Queue, one per request in flight",
        threads=True, size="threads"),
    ExecutorSpec("processes", "processes:Processes",
        "ProcessPoolExecutor.map with one request per task, one process per request in flight", size="processes"),
    ExecutorSpec("process-chunks", "processes:ProcessChunks",
        "ProcessPoolExecutor.map with one chunk of the requests per process", size="processes"),
    ExecutorSpec("gather", "asyncio_tasks:Gather",
        "asyncio.gather over all requests at once; the client's pool limits them", "asyncio", needs_count=True,
        clock_first=True, pool_bound=True),
    ExecutorSpec("unbounded", "asyncio_tasks:Unbounded",
        "asyncio.gather over all requests at once, with a connection for each", "asyncio", needs_count=True,
        unbounded=True),
    ExecutorSpec("as-completed", "asyncio_tasks:AsCompleted",
        "asyncio.as_completed over all requests at once; the client's pool limits them", "asyncio", needs_count=True,
        clock_first=True, pool_bound=True),
    ExecutorSpec("semaphore", "asyncio_tasks:Semaphore",
        "asyncio.gather over all requests, each waiting for a semaphore", "asyncio", needs_count=True,
        size="semaphore"),
    ExecutorSpec("workers", "asyncio_tasks:WorkerTasks",
        "asyncio tasks, one per request in flight, each taking the next request", "asyncio", size="tasks"),
    ExecutorSpec("trio", "trio_tasks:TrioTasks",
        "trio tasks in a nursery, one per request in flight, each taking the next request", "asyncio", size="tasks",
        distribution="trio", extra="more",
        only=("httpx-async", "httpx-async-h2", "httpx2-async", "httpx2-async-h2")),  # they run on both
    ExecutorSpec("sync_to_async", "sync_to_async:SyncToAsync",
        "asyncio.gather over sync_to_async(thread_sensitive=False) on a pool of threads", needs_count=True,
        threads=True, size="max_workers", distribution="asgiref"),
    ExecutorSpec("sync_to_async-sensitive", "sync_to_async:ThreadSensitive",
        "asyncio.gather over sync_to_async with its defaults: all calls in one thread", needs_count=True,
        concurrent=False, distribution="asgiref"),
    ExecutorSpec("blocking-coroutines", "sync_to_async:BlockingInCoroutines",
        "asyncio.gather over coroutines that call a blocking client", needs_count=True, concurrent=False,
        distribution="asgiref"),
    ExecutorSpec("async-processes", "asyncio_processes:AsyncioProcesses",
        "asyncio.gather over one chunk in each of 6 processes, and in a further one for the remainder", "asyncio",
        needs_count=True, clock_first=True),
    ExecutorSpec("async-threads", "asyncio_threads:AsyncioThreads",
        "4 threads with an event loop and a client each, and in them asyncio tasks that take the next request",
        "asyncio"),
    ExecutorSpec("futures", "futures:Futures",
        "requests-futures' FuturesSession over all requests at once, one worker thread per request in flight",
        needs_count=True, threads=True, size="max_workers", only=("requests-session",),
        distribution="requests-futures"),
    ExecutorSpec("gevent", "gevent_pool:GeventPool",
        "gevent.pool.Pool, one greenlet per request in flight, with everything monkey-patched", size="size",
        distribution="gevent",
        only=("requests", "requests-session", "urllib3", "geventhttpclient")),  # no connection per thread
    ExecutorSpec("multi", "curl_multi:CurlMulti",
        "libcurl's multi interface: one handle per request in flight, all driven by one thread", only=("pycurl",),
        policy="pool", drives_client=True),
    ExecutorSpec("program", "program:Program", "starts the client's program once, which sends all requests itself",
        "program", needs_count=True),
)  # fmt: skip

CLIENTS = {one.name: replace(one, import_path=f"clientlab.clients.{one.import_path}") for one in _CLIENTS}
EXECUTORS = {one.name: replace(one, import_path=f"clientlab.executors.{one.import_path}") for one in _EXECUTORS}
