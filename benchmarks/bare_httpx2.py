"""Bare loops of httpx2, and of httpx and httpx2 on aiohttp, with the options of the lab's clients."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from benchmarks.bare import CONCURRENCY, HEADERS, TIMEOUT, Run, empty_jar, expect, expect_h2
from benchmarks.bare_asyncio import Send


@contextmanager
def httpx2_per_call(url: str) -> Iterator[Run]:
    """A client, its TLS set-up and a connection a call."""
    import httpx2

    def run(count: int) -> None:
        for _ in range(count):
            response = httpx2.request("GET", url, headers=HEADERS, content=None, timeout=TIMEOUT)
            expect(response.status_code, response.content)

    yield run


@contextmanager
def httpx2_client(url: str, ca_file: str | None = None) -> Iterator[Run]:
    """One client; over HTTP/2 where there is a CA to trust."""
    import httpx2

    hooks = {"response": [_check]} if ca_file else {}
    with httpx2.Client(**_options(httpx2, 1, ca_file), event_hooks=hooks) as client:
        del client.headers["Connection"]

        def run(count: int) -> None:
            for _ in range(count):
                response = client.request("GET", url, headers=HEADERS, content=None)
                expect(response.status_code, response.content)

        yield run


httpx2_client_h2 = httpx2_client


@asynccontextmanager
async def httpx2_async(url: str, ca_file: str | None = None) -> AsyncIterator[Send]:
    """One client; over HTTP/2, on one connection, where there is a CA to trust."""
    import httpx2

    hooks = {"response": [_acheck]} if ca_file else {}
    async with httpx2.AsyncClient(**_options(httpx2, CONCURRENCY, ca_file), event_hooks=hooks) as client:
        del client.headers["Connection"]

        async def send() -> tuple[int, bytes]:
            response = await client.request("GET", url, headers=HEADERS, content=None)
            return response.status_code, response.content

        yield send


httpx2_async_h2 = httpx2_async


@asynccontextmanager
async def httpx_on_aiohttp(url: str) -> AsyncIterator[Send]:
    """One client of httpx on one session of aiohttp."""
    import httpx
    from httpx_aiohttp import AiohttpTransport

    async with _on_aiohttp(url, httpx, AiohttpTransport) as send:
        yield send


@asynccontextmanager
async def httpx2_on_aiohttp(url: str) -> AsyncIterator[Send]:
    """One client of httpx2 on one session of aiohttp."""
    import httpx2
    from httpx_aiohttp.httpx2 import AiohttpTransport

    async with _on_aiohttp(url, httpx2, AiohttpTransport) as send:
        yield send


@asynccontextmanager
async def _on_aiohttp(url: str, library: Any, transport: Any) -> AsyncIterator[Send]:
    import aiohttp

    options, tls = _options(library, CONCURRENCY, None), library.create_ssl_context()

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=CONCURRENCY, keepalive_timeout=75.0, ssl=tls)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)
        made = aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())
        made._retry_connection = False  # noqa: SLF001 - as the lab's client does
        return made

    on = transport(verify=tls, limits=options["limits"], client=session)
    async with library.AsyncClient(**options, transport=on) as client:
        del client.headers["Connection"]

        async def send() -> tuple[int, bytes]:
            response = await client.request("GET", url, headers=HEADERS, content=None)
            return response.status_code, response.content

        yield send


def _options(library: Any, connections: int, ca_file: str | None) -> dict[str, Any]:
    """A client's arguments, for HTTP/2 where there is a CA to trust."""
    most = connections if ca_file is None else connections + 1  # as the lab's client does
    limits = library.Limits(max_connections=most, max_keepalive_connections=connections, keepalive_expiry=75.0)
    options = {"limits": limits, "timeout": library.Timeout(TIMEOUT, pool=None), "cookies": empty_jar()}
    if ca_file is None:
        return options
    return {**options, "http2": True, "verify": _context(ca_file)}


def _context(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(["http/1.1"])  # as the lab's has it: httpx2 puts its own in its place
    return context


def _check(response: Any) -> None:
    expect_h2(response.extensions["http_version"] == b"HTTP/2")


async def _acheck(response: Any) -> None:
    _check(response)
