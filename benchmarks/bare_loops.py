"""Bare loops: what a client of the lab does, written without the lab.

An opener of `OPENERS` makes and closes its client with the same calls and arguments as
the lab's client, and yields a function that sends one request. A blocking client sends
its requests one by one, an asyncio client by `CONCURRENCY` workers. A client without an
opener, such as each client of HTTP/2, is measured against its own class, without
executor and recorder.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from clientlab.clients.client_interface import Budget
from clientlab.strategies import CLIENTS, ClientSpec, find, load
from clientlab.workload.requests import requests_of
from clientlab.workload.workload import make_workload

CONCURRENCY, TIMEOUT = 32, 30.0
HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": "clientlab/0.1.0",
}
_NO_COOKIES = DefaultCookiePolicy(allowed_domains=[])

Reply = tuple[int, bytes]
"""Status and body."""
Send = Callable[[], Reply]
SendLater = Callable[[], Awaitable[Reply]]
Run = Callable[[int], None]
"""Sends that number of requests with a client that has been made before."""


def strategies() -> dict[str, str]:
    """Return the strategy to measure for each client."""
    names = [
        name for name, spec in CLIENTS.items() if not spec.program and not spec.formats
    ]
    return {
        name: name if CLIENTS[name].kind == "blocking" else f"{name}@workers"
        for name in names
    }


@contextmanager
def bare_loop(strategy: str, url: str, ca_file: str | None) -> Iterator[Run]:
    """Make the client of a strategy, and yield its loop."""
    spec = CLIENTS[find(strategy).client]
    opened = (
        OPENERS[spec.name](url)
        if spec.name in OPENERS
        else _open_own_class(spec, url, ca_file)
    )
    if isinstance(opened, AbstractContextManager):
        with opened as send:
            yield partial(_send_one_by_one, send)
        return
    with asyncio.Runner() as runner:
        send_later = runner.run(opened.__aenter__())
        yield lambda count: runner.run(_send_at_once(send_later, count))
        runner.run(opened.__aexit__(None, None, None))


def _send_one_by_one(send: Send, count: int) -> None:
    for _ in range(count):
        _check(*send())


async def _send_at_once(send: SendLater, count: int) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for _ in numbers:
            _check(*await send())

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))


def _check(status: int, body: bytes) -> None:
    if status != 200 or not body:
        raise SystemExit(f"status {status}, {len(body)} bytes")


def _open_own_class(spec: ClientSpec, url: str, ca_file: str | None) -> Any:
    """Open the lab's own client."""
    blocking = spec.kind == "blocking"
    client = load(spec.import_path)(
        Budget(1 if blocking else CONCURRENCY, TIMEOUT, ca_file), lambda: None
    )
    request = requests_of(make_workload(), url)(0)

    @contextmanager
    def open_blocking() -> Iterator[Send]:
        client.open()
        yield partial(client.send, request)
        client.close()

    @asynccontextmanager
    async def open_asyncio() -> AsyncIterator[SendLater]:
        await client.open()
        yield partial(client.send, request)
        await client.close()

    return open_blocking() if blocking else open_asyncio()


@contextmanager
def _requests_per_call(url: str) -> Iterator[Send]:
    import requests

    headers = {**HEADERS, "Connection": None}

    def send() -> Reply:
        response = requests.request(
            "GET",
            url,
            headers=headers,
            data=None,
            timeout=TIMEOUT,
            verify=True,
            allow_redirects=False,
        )
        return response.status_code, response.content

    yield send


@contextmanager
def _requests_session(url: str) -> Iterator[Send]:
    import requests
    from requests.adapters import HTTPAdapter

    with requests.Session() as session:
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1)
        session.cookies.set_policy(_NO_COOKIES)
        session.headers.clear()
        session.mount("http://", adapter)
        session.mount("https://", adapter)

        def send() -> Reply:
            response = session.request(
                "GET",
                url,
                headers=HEADERS,
                data=None,
                timeout=TIMEOUT,
                verify=True,
                allow_redirects=False,
            )
            return response.status_code, response.content

        yield send


@contextmanager
def _httpx_per_call(library: str, url: str) -> Iterator[Send]:
    httpx = import_module(library)

    def send() -> Reply:
        response = httpx.request(
            "GET", url, headers=HEADERS, content=None, timeout=TIMEOUT
        )
        return response.status_code, response.content

    yield send


@contextmanager
def _httpx_client(library: str, url: str) -> Iterator[Send]:
    httpx = import_module(library)
    with httpx.Client(**_httpx_options(httpx, 1)) as client:
        del client.headers["Connection"]

        def send() -> Reply:
            response = client.request("GET", url, headers=HEADERS, content=None)
            return response.status_code, response.content

        yield send


@asynccontextmanager
async def _httpx_async(
    library: str, transport: str | None, url: str
) -> AsyncIterator[SendLater]:
    """Open the asyncio client of httpx.

    `transport`: the module that lets it send by aiohttp.
    """
    httpx = import_module(library)
    options = _httpx_options(httpx, CONCURRENCY)
    if transport is not None:
        import aiohttp

        tls = httpx.create_ssl_context()
        session = partial(_aiohttp_session, aiohttp, ssl=tls)
        made = import_module(transport).AiohttpTransport(
            verify=tls, limits=options["limits"], client=session
        )
        options["transport"] = made
    async with httpx.AsyncClient(**options) as client:
        del client.headers["Connection"]

        async def send() -> Reply:
            response = await client.request("GET", url, headers=HEADERS, content=None)
            return response.status_code, response.content

        yield send


def _httpx_options(httpx: Any, connections: int) -> dict[str, Any]:
    limits = httpx.Limits(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=75.0,
    )
    return {
        "limits": limits,
        "timeout": httpx.Timeout(TIMEOUT, pool=None),
        "cookies": CookieJar(_NO_COOKIES),
    }


def _aiohttp_session(aiohttp: Any, **connector: Any) -> Any:
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=CONCURRENCY, keepalive_timeout=75.0, **connector
        ),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    session._retry_connection = False  # noqa: SLF001 - as the lab's client does
    return session


@asynccontextmanager
async def _aiohttp(url: str) -> AsyncIterator[SendLater]:
    import aiohttp

    async with _aiohttp_session(aiohttp) as session:

        async def send() -> Reply:
            async with session.request(
                "GET", url, headers=HEADERS, data=None, allow_redirects=False
            ) as response:
                return response.status, await response.read()

        yield send


@asynccontextmanager
async def _aiohttp_per_call(url: str) -> AsyncIterator[SendLater]:
    import aiohttp

    async def send() -> Reply:
        async with (
            _aiohttp_session(aiohttp) as session,
            session.request(
                "GET", url, headers=HEADERS, data=None, allow_redirects=False
            ) as response,
        ):
            return response.status, await response.read()

    yield send


@contextmanager
def _urllib3(url: str) -> Iterator[Send]:
    import urllib3

    timeout = urllib3.Timeout(connect=TIMEOUT, read=TIMEOUT)
    with urllib3.PoolManager(
        num_pools=1, maxsize=1, block=True, retries=False, timeout=timeout
    ) as manager:

        def send() -> Reply:
            response = manager.request(
                "GET", url, headers=HEADERS, body=None, redirect=False
            )
            return response.status, response.data

        yield send


@contextmanager
def _http_client(url: str) -> Iterator[Send]:
    import http.client

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=TIMEOUT
    )

    def send() -> Reply:
        connection.request("GET", parts.path, None, HEADERS)
        response = connection.getresponse()
        return response.status, response.read()

    yield send
    connection.close()


@contextmanager
def _pycurl(url: str) -> Iterator[Send]:
    import pycurl

    handle = pycurl.Curl()
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.CONNECTTIMEOUT_MS, int(TIMEOUT * 1000))
    handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    handle.setopt(pycurl.LOW_SPEED_LIMIT, 1)
    handle.setopt(pycurl.LOW_SPEED_TIME, int(TIMEOUT))
    handle.setopt(
        pycurl.HTTPHEADER,
        [*(f"{name}: {value}" for name, value in HEADERS.items()), "Expect:"],
    )
    handle.setopt(pycurl.URL, url)

    def send() -> Reply:
        body = handle.perform_rb()
        return handle.getinfo(pycurl.RESPONSE_CODE), body

    yield send
    handle.close()


OPENERS: dict[str, Callable[[str], Any]] = {
    "requests": _requests_per_call,
    "requests-session": _requests_session,
    "aiohttp": _aiohttp,
    "aiohttp-per-call": _aiohttp_per_call,
    "urllib3": _urllib3,
    "http.client": _http_client,
    "httpx": partial(_httpx_per_call, "httpx"),
    "httpx-client": partial(_httpx_client, "httpx"),
    "httpx-async": partial(_httpx_async, "httpx", None),
    "httpx2": partial(_httpx_per_call, "httpx2"),
    "httpx2-client": partial(_httpx_client, "httpx2"),
    "httpx2-async": partial(_httpx_async, "httpx2", None),
    "httpx-aiohttp": partial(_httpx_async, "httpx", "httpx_aiohttp"),
    "httpx2-aiohttp": partial(_httpx_async, "httpx2", "httpx_aiohttp.httpx2"),
    "pycurl": _pycurl,
}
