"""Bare loops: what a client of the lab does, written without the lab.

An opener of `OPENERS` makes and closes its client with the same calls and arguments as the lab's client, and yields a
function that sends one request. A blocking client sends one by one; one of asyncio has `CONCURRENCY` workers. A client
without an opener is measured against its own class, without executor and recorder.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from clientlab.clients.client_interface import Budget
from clientlab.strategies import CLIENTS, ClientSpec, find, load
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload

CONCURRENCY, TIMEOUT = 32, 30.0
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "clientlab/0.1.0"}

Reply = tuple[int, bytes]
"""Status and body."""
Send = Callable[[], Reply]
SendLater = Callable[[], Awaitable[Reply]]
Run = Callable[[int], None]
"""Sends so many requests, with a client that was made before."""


def strategies() -> dict[str, str]:
    """Return the strategy that is measured for each client."""
    names = [name for name, spec in CLIENTS.items() if not spec.program]
    return {name: name if CLIENTS[name].kind == "blocking" else f"{name}@workers" for name in names}


def has_loop(client: str) -> bool:
    """Whether the client has a bare loop."""
    return client in OPENERS


@contextmanager
def bare_loop(strategy: str, url: str, ca_file: str | None) -> Iterator[Run]:
    """Make the client of a strategy, and yield its loop."""
    spec = CLIENTS[find(strategy).client]
    opener = OPENERS.get(spec.name) or partial(_own_class, spec)
    opened = opener(url) if ca_file is None else opener(url, ca_file)
    if isinstance(opened, AbstractContextManager):
        with opened as send:
            yield partial(_send_in_turn, send)
        return
    with asyncio.Runner() as runner:
        send_later = runner.run(_enter(opened))
        yield lambda count: runner.run(_send_at_once(send_later, count))
        runner.run(_leave(opened))


def _send_in_turn(send: Send, count: int) -> None:
    for _ in range(count):
        _check(*send())


async def _send_at_once(send: SendLater, count: int) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for _ in numbers:
            _check(*await send())

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))


async def _enter(opened: AbstractAsyncContextManager[SendLater]) -> SendLater:
    return await opened.__aenter__()


async def _leave(opened: AbstractAsyncContextManager[SendLater]) -> None:
    await opened.__aexit__(None, None, None)


def _check(status: int, body: bytes) -> None:
    if status != 200 or not body:
        raise SystemExit(f"status {status}, {len(body)} bytes")


def _check_h2(is_h2: bool) -> None:  # noqa: FBT001 - the one thing that it is about
    if not is_h2:
        raise SystemExit("the server spoke HTTP/1")


def _own_class(spec: ClientSpec, url: str, ca_file: str | None = None) -> Any:
    """The lab's own client, as an opener would make it."""
    blocking = spec.kind == "blocking"
    client = load(spec.import_path)(Budget(1 if blocking else CONCURRENCY, TIMEOUT, ca_file), lambda: None)
    request = requests_of(Workload(), url)(0)

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


def _no_cookies() -> DefaultCookiePolicy:
    return DefaultCookiePolicy(allowed_domains=[])


@contextmanager
def _requests_per_call(url: str) -> Iterator[Send]:
    import requests

    headers = {**HEADERS, "Connection": None}

    def send() -> Reply:
        response = requests.request(
            "GET", url, headers=headers, data=None, timeout=TIMEOUT, verify=True, allow_redirects=False
        )
        return response.status_code, response.content

    yield send


@contextmanager
def _requests_session(url: str) -> Iterator[Send]:
    import requests
    from requests.adapters import HTTPAdapter

    with requests.Session() as session:
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1)
        session.cookies.set_policy(_no_cookies())
        session.headers.clear()
        session.mount("http://", adapter)
        session.mount("https://", adapter)

        def send() -> Reply:
            response = session.request(
                "GET", url, headers=HEADERS, data=None, timeout=TIMEOUT, verify=True, allow_redirects=False
            )
            return response.status_code, response.content

        yield send


@contextmanager
def _httpx_per_call(library: str, url: str) -> Iterator[Send]:
    httpx = import_module(library)

    def send() -> Reply:
        response = httpx.request("GET", url, headers=HEADERS, content=None, timeout=TIMEOUT)
        return response.status_code, response.content

    yield send


@contextmanager
def _httpx_client(library: str, url: str, ca_file: str | None = None) -> Iterator[Send]:
    httpx = import_module(library)
    hooks = {"response": [_check_httpx]} if ca_file else {}
    with httpx.Client(**_httpx_options(httpx, 1, ca_file), event_hooks=hooks) as client:
        del client.headers["Connection"]

        def send() -> Reply:
            response = client.request("GET", url, headers=HEADERS, content=None)
            return response.status_code, response.content

        yield send


@asynccontextmanager
async def _httpx_async(library: str, url: str, ca_file: str | None = None) -> AsyncIterator[SendLater]:
    httpx = import_module(library)
    hooks = {"response": [_check_httpx_later]} if ca_file else {}
    async with _httpx_sender(httpx, url, _httpx_options(httpx, CONCURRENCY, ca_file), event_hooks=hooks) as send:
        yield send


@asynccontextmanager
async def _httpx_on_aiohttp(library: str, transport: str, url: str) -> AsyncIterator[SendLater]:
    import aiohttp

    httpx = import_module(library)
    options, tls = _httpx_options(httpx, CONCURRENCY, None), httpx.create_ssl_context()
    session = partial(_aiohttp_session, aiohttp, ssl=tls)
    on = import_module(transport).AiohttpTransport(verify=tls, limits=options["limits"], client=session)
    async with _httpx_sender(httpx, url, options, transport=on) as send:
        yield send


@asynccontextmanager
async def _httpx_sender(httpx: Any, url: str, options: dict[str, Any], **more: Any) -> AsyncIterator[SendLater]:
    async with httpx.AsyncClient(**options, **more) as client:
        del client.headers["Connection"]

        async def send() -> Reply:
            response = await client.request("GET", url, headers=HEADERS, content=None)
            return response.status_code, response.content

        yield send


def _httpx_options(httpx: Any, connections: int, ca_file: str | None) -> dict[str, Any]:
    is_httpx2_h2 = ca_file is not None and httpx.__name__ == "httpx2"
    limits = httpx.Limits(
        max_connections=connections + is_httpx2_h2,  # as the lab's client does
        max_keepalive_connections=connections,
        keepalive_expiry=75.0,
    )
    options = {"limits": limits, "timeout": httpx.Timeout(TIMEOUT, pool=None), "cookies": CookieJar(_no_cookies())}
    if ca_file is None:
        return options
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(["http/1.1"])  # as the lab's has it: the library puts its own in its place
    return {**options, "http2": True, "verify": context}


def _check_httpx(response: Any) -> None:
    _check_h2(response.extensions["http_version"] == b"HTTP/2")


async def _check_httpx_later(response: Any) -> None:
    _check_httpx(response)


def _aiohttp_session(aiohttp: Any, **connector: Any) -> Any:
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONCURRENCY, keepalive_timeout=75.0, **connector),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    session._retry_connection = False  # noqa: SLF001 - as the lab's client does
    return session


@asynccontextmanager
async def _aiohttp(url: str) -> AsyncIterator[SendLater]:
    import aiohttp

    async with _aiohttp_session(aiohttp) as session:

        async def send() -> Reply:
            async with session.request("GET", url, headers=HEADERS, data=None, allow_redirects=False) as response:
                return response.status, await response.read()

        yield send


@asynccontextmanager
async def _aiohttp_per_call(url: str) -> AsyncIterator[SendLater]:
    import aiohttp

    async def send() -> Reply:
        async with (
            _aiohttp_session(aiohttp) as session,
            session.request("GET", url, headers=HEADERS, data=None, allow_redirects=False) as response,
        ):
            return response.status, await response.read()

    yield send


@contextmanager
def _urllib3(url: str) -> Iterator[Send]:
    import urllib3

    timeout = urllib3.Timeout(connect=TIMEOUT, read=TIMEOUT)
    with urllib3.PoolManager(num_pools=1, maxsize=1, block=True, retries=False, timeout=timeout) as manager:

        def send() -> Reply:
            response = manager.request("GET", url, headers=HEADERS, body=None, redirect=False)
            return response.status, response.data

        yield send


@contextmanager
def _http_client(url: str) -> Iterator[Send]:
    import http.client

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)

    def send() -> Reply:
        connection.request("GET", parts.path, None, HEADERS)
        response = connection.getresponse()
        return response.status, response.read()

    yield send
    connection.close()


@contextmanager
def _pycurl(url: str, ca_file: str | None = None) -> Iterator[Send]:
    import pycurl

    handle = pycurl.Curl()
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.CONNECTTIMEOUT_MS, int(TIMEOUT * 1000))
    if ca_file is None:
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        handle.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        handle.setopt(pycurl.LOW_SPEED_TIME, int(TIMEOUT))
    else:
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        handle.setopt(pycurl.TIMEOUT_MS, int(TIMEOUT * 1000))
        handle.setopt(pycurl.CAINFO, ca_file)
    handle.setopt(pycurl.HTTPHEADER, [*(f"{name}: {value}" for name, value in HEADERS.items()), "Expect:"])
    handle.setopt(pycurl.URL, url)

    def send() -> Reply:
        body = handle.perform_rb()
        if ca_file is not None and handle.getinfo(pycurl.NUM_CONNECTS):
            _check_h2(handle.getinfo(pycurl.INFO_HTTP_VERSION) == pycurl.CURL_HTTP_VERSION_2_0)
        return handle.getinfo(pycurl.RESPONSE_CODE), body

    yield send
    handle.close()


OPENERS: dict[str, Callable[..., Any]] = {
    "requests": _requests_per_call,
    "requests-session": _requests_session,
    "aiohttp": _aiohttp,
    "aiohttp-per-call": _aiohttp_per_call,
    "urllib3": _urllib3,
    "http.client": _http_client,
    "httpx": partial(_httpx_per_call, "httpx"),
    "httpx-client": partial(_httpx_client, "httpx"),
    "httpx-async": partial(_httpx_async, "httpx"),
    "httpx-client-h2": partial(_httpx_client, "httpx"),
    "httpx-async-h2": partial(_httpx_async, "httpx"),
    "httpx2": partial(_httpx_per_call, "httpx2"),
    "httpx2-client": partial(_httpx_client, "httpx2"),
    "httpx2-async": partial(_httpx_async, "httpx2"),
    "httpx2-client-h2": partial(_httpx_client, "httpx2"),
    "httpx2-async-h2": partial(_httpx_async, "httpx2"),
    "httpx-aiohttp": partial(_httpx_on_aiohttp, "httpx", "httpx_aiohttp"),
    "httpx2-aiohttp": partial(_httpx_on_aiohttp, "httpx2", "httpx_aiohttp.httpx2"),
    "pycurl": _pycurl,
    "pycurl-h2": _pycurl,
}
