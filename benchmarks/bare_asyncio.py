"""Bare loops of libraries of asyncio: tasks that draw the next request, with the options of the lab's clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager

from benchmarks.bare import (
    CONCURRENCY,
    HEADERS,
    TIMEOUT,
    Run,
    empty_jar,
    expect,
    niquests_options,
    no_cookies,
)

Send = Callable[[], Awaitable[tuple[int, bytes]]]


@asynccontextmanager
async def aiohttp_session(url: str) -> AsyncIterator[Send]:
    """One session."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)
    connector = aiohttp.TCPConnector(limit=CONCURRENCY, keepalive_timeout=75.0)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=jar) as session:
        session._retry_connection = False  # noqa: SLF001 - as the lab's client does

        async def send() -> tuple[int, bytes]:
            async with session.request("GET", url, headers=HEADERS, data=None, allow_redirects=False) as response:
                return response.status, await response.read()

        yield send


@asynccontextmanager
async def aiohttp_per_call(url: str) -> AsyncIterator[Send]:
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

    yield send


@asynccontextmanager
async def httpx_async(url: str) -> AsyncIterator[Send]:
    """One client."""
    import httpx

    limits = httpx.Limits(
        max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY, keepalive_expiry=75.0
    )  # fmt: skip

    timeout = httpx.Timeout(TIMEOUT, pool=None)
    async with httpx.AsyncClient(limits=limits, timeout=timeout, cookies=empty_jar()) as client:
        del client.headers["Connection"]

        async def send() -> tuple[int, bytes]:
            response = await client.request("GET", url, headers=HEADERS, content=None)
            return response.status_code, response.content

        yield send


@asynccontextmanager
async def niquests_async(url: str) -> AsyncIterator[Send]:
    """One session of niquests."""
    import niquests

    async with niquests.AsyncSession(**niquests_options(CONCURRENCY)) as session:
        session.cookies.set_policy(no_cookies())
        session.headers.clear()

        async def send() -> tuple[int, bytes]:
            response = await session.request(
                "GET", url, headers=HEADERS, data=None, timeout=TIMEOUT, verify=True, allow_redirects=False
            )
            return response.status_code or 0, response.content or b""

        yield send


Opening = Callable[..., AbstractAsyncContextManager[Send]]


def in_loop(opening: Opening) -> Callable[..., AbstractContextManager[Run]]:
    """The same of a blocking shape: in a loop of its own, as many in flight as there are workers."""

    @contextmanager
    def opened(url: str, *ca_file: str) -> Iterator[Run]:
        with asyncio.Runner() as runner:
            sending = opening(url, *ca_file)
            send = runner.run(_entered(sending))
            yield lambda count: runner.run(_drawn(send, count))
            runner.run(_left(sending))

    return opened


async def _entered(sending: AbstractAsyncContextManager[Send]) -> Send:
    return await sending.__aenter__()


async def _left(sending: AbstractAsyncContextManager[Send]) -> None:
    await sending.__aexit__(None, None, None)


async def _drawn(send: Send, count: int) -> None:
    numbers = iter(range(count))
    await asyncio.gather(*(_worker(send, numbers) for _ in range(CONCURRENCY)))


async def _worker(send: Send, numbers: Iterator[int]) -> None:
    for _ in numbers:
        expect(*await send())
