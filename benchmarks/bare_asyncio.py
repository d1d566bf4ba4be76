"""Bare loops of libraries of asyncio: tasks that draw the next request, with the options of the lab's clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from benchmarks.bare import (
    CONCURRENCY,
    HEADERS,
    TIMEOUT,
    empty_jar,
    expect,
    niquests_hooks,
    niquests_options,
    no_cookies,
)

Send = Callable[[], Awaitable[tuple[int, bytes]]]


def aiohttp_session(url: str, count: int) -> None:
    """One session."""
    import aiohttp

    async def main() -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)
        connector = aiohttp.TCPConnector(limit=CONCURRENCY, keepalive_timeout=75.0)
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=jar) as session:
            session._retry_connection = False  # noqa: SLF001 - as the lab's client does

            async def send() -> tuple[int, bytes]:
                async with session.request("GET", url, headers=HEADERS, data=None, allow_redirects=False) as response:
                    return response.status, await response.read()

            await drawn(send, count)

    asyncio.run(main())


def aiohttp_per_call(url: str, count: int) -> None:
    """A session, its connector and a connection a call."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)

    async def send() -> tuple[int, bytes]:
        connector = aiohttp.TCPConnector(limit=CONCURRENCY, keepalive_timeout=75.0)
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=jar) as session:
            session._retry_connection = False  # noqa: SLF001 - as the lab's client does
            async with session.request("GET", url, headers=HEADERS, data=None, allow_redirects=False) as response:
                return response.status, await response.read()

    asyncio.run(drawn(send, count))


def httpx_async(url: str, count: int) -> None:
    """One client."""
    import httpx

    limits = httpx.Limits(
        max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY, keepalive_expiry=75.0
    )  # fmt: skip

    async def main() -> None:
        timeout = httpx.Timeout(TIMEOUT, pool=None)
        async with httpx.AsyncClient(limits=limits, timeout=timeout, cookies=empty_jar()) as client:

            async def send() -> tuple[int, bytes]:
                response = await client.request("GET", url, headers=HEADERS, content=None)
                return response.status_code, response.content

            await drawn(send, count)

    asyncio.run(main())


def niquests_async(url: str, count: int, ca_file: str | None = None) -> None:
    """One session of niquests; over HTTP/2 where there is a CA to trust."""
    import niquests

    async def main() -> None:
        async with niquests.AsyncSession(**niquests_options(CONCURRENCY, ca_file)) as session:
            session.cookies.set_policy(no_cookies())
            session.hooks["response"] = niquests_hooks(ca_file)
            verify = ca_file or True

            async def send() -> tuple[int, bytes]:
                response = await session.request(
                    "GET", url, headers=HEADERS, data=None, timeout=TIMEOUT, verify=verify, allow_redirects=False
                )
                return response.status_code or 0, response.content or b""

            await drawn(send, count)

    asyncio.run(main())


def pyreqwest_async(url: str, count: int) -> None:
    """One client."""
    from datetime import timedelta

    from pyreqwest.client import ClientBuilder

    builder = ClientBuilder().connect_timeout(timedelta(seconds=0.95 * TIMEOUT))
    builder = builder.read_timeout(timedelta(seconds=TIMEOUT)).no_proxy().http1_only().follow_redirects(enable=False)

    async def main() -> None:
        async with builder.max_connections(CONCURRENCY).pool_idle_timeout(None).build() as client:

            async def send() -> tuple[int, bytes]:
                response = await client.request("GET", url).headers(HEADERS).build().send()
                return response.status, (await response.bytes()).to_bytes()

            await drawn(send, count)

    asyncio.run(main())


def aiosonic_client(url: str, count: int) -> None:
    """One client."""
    import aiosonic
    from aiosonic.connectors import TCPConnector
    from aiosonic.pools import PoolConfig
    from aiosonic.timeout import Timeouts

    pool = PoolConfig(CONCURRENCY, max_conn_requests=None, max_conn_idle_ms=None)
    timeouts = Timeouts(sock_connect=TIMEOUT, sock_read=TIMEOUT, request_timeout=None)

    async def main() -> None:
        async with aiosonic.HTTPClient(TCPConnector({":default": pool}, timeouts)) as client:

            async def send() -> tuple[int, bytes]:
                response = await client.request(url, "get", headers=HEADERS, data=None)
                return response.status_code, await response.content()

            await drawn(send, count)

    asyncio.run(main())


async def drawn(send: Send, count: int) -> None:
    """So many requests, as many in flight as there are workers."""
    numbers = iter(range(count))
    await asyncio.gather(*(_worker(send, numbers) for _ in range(CONCURRENCY)))


async def _worker(send: Send, numbers: Iterator[int]) -> None:
    for _ in numbers:
        expect(*await send())
