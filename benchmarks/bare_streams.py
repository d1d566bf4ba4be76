"""Bare loops over streams of events: the same calls of the library as the lab's client, and a count of the lines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from benchmarks.bare import TIMEOUT, Run, empty_jar
from clientlab.workload.workload import Request

EVENTS = 200
"""Of each stream."""


@contextlib.contextmanager
def httpx2_lines(request: Request) -> Iterator[Run]:
    """One client."""
    import httpx2

    limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=75.0)
    timeout = httpx2.Timeout(TIMEOUT, pool=None)
    with httpx2.Client(limits=limits, timeout=timeout, cookies=empty_jar()) as client:
        del client.headers["Connection"]

        def run(count: int) -> None:
            for _ in range(count):
                found = 0
                with client.stream(request.method, request.url, headers=request.headers, content=None) as response:
                    for line in response.iter_lines():
                        found += bool(line)
                _expect(found)

        yield run


@contextlib.contextmanager
def aiohttp_lines(request: Request) -> Iterator[Run]:
    """One session."""
    import aiohttp

    async def opened() -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)
        connector = aiohttp.TCPConnector(limit=1, keepalive_timeout=75.0)
        return aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())

    async def read(count: int) -> None:
        for _ in range(count):
            found = 0
            async with session.request(
                request.method, request.url, headers=request.headers, data=None, allow_redirects=False
            ) as response:
                async for line in response.content:
                    found += line != b"\n"
            _expect(found)

    with asyncio.Runner() as runner:
        session = runner.run(opened())
        yield lambda count: runner.run(read(count))
        runner.run(session.close())


def _expect(found: int) -> None:
    """Two lines of each event, and of the last one."""
    if found != 2 * (EVENTS + 1):
        raise SystemExit(f"a bare loop read {found} lines of a stream, not {2 * (EVENTS + 1)}")


BARE: dict[str, Callable[[Request], contextlib.AbstractContextManager[Run]]] = {
    "httpx2-client": httpx2_lines,
    "aiohttp": aiohttp_lines,
}
