"""Continuous loops: the rate of a client without the lab.

``python -m benchmarks.continuous_loops CLIENT URL CA IN_FLIGHT POOL WARM_UP SECONDS``
prints how many requests per second end between the warm-up and the deadline. It imports
no code of the lab. CA: a file with the certificate to trust, or an empty word.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy

TIMEOUT = 30.0
KEEP_IDLE = 75.0
HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": "clientlab/0.1.0",
}

Reply = tuple[int, bytes]
"""Status and body."""


@dataclass
class Loop:
    """What a loop sends, and when its requests ended.

    `pool`: connections of the client. `warm_up`, `seconds`: not counted, and counted.
    """

    url: str
    ca_file: str
    in_flight: int
    pool: int
    warm_up: float
    seconds: float
    ends: list[float] = field(default_factory=list)

    def begin(self) -> list[float]:
        """Start the clock, and return after how many seconds each worker begins.

        They begin one by one in the first half of the warm-up. If all began at once,
        their requests would end in waves, and the deadline could cut one off.
        """
        self.counts_from = time.perf_counter() + self.warm_up
        self.deadline = self.counts_from + self.seconds
        apart = self.warm_up / 2 / self.in_flight
        return [worker * apart for worker in range(self.in_flight)]

    def is_over(self) -> bool:
        return time.perf_counter() >= self.deadline

    def count(self, reply: Reply) -> None:
        """Note that a request ended. Raise RuntimeError if it failed."""
        if reply[0] != 200 or not reply[1]:
            raise RuntimeError(f"unexpected reply: {reply}")
        self.ends.append(time.perf_counter())  # threads may append at the same time

    def rate(self) -> float:
        """Return the requests per second that ended after the warm-up."""
        counted = [end for end in self.ends if self.counts_from <= end < self.deadline]
        return len(counted) / self.seconds


def run_threads(loop: Loop, send: Callable[[], Reply]) -> None:
    """Send one request after the other in each thread."""

    def work(begins_after: float) -> None:
        time.sleep(begins_after)
        while not loop.is_over():
            loop.count(send())

    with ThreadPoolExecutor(loop.in_flight) as threads:
        list(threads.map(work, loop.begin()))  # raises what a thread has raised


async def run_tasks(loop: Loop, send: Callable[[], Awaitable[Reply]]) -> None:
    """Send one request after the other in each task."""

    async def work(begins_after: float) -> None:
        await asyncio.sleep(begins_after)
        while not loop.is_over():
            loop.count(await send())

    await asyncio.gather(*map(work, loop.begin()))


def loop_urllib3(loop: Loop) -> None:
    """Send with one `PoolManager`."""
    import urllib3

    manager = urllib3.PoolManager(maxsize=loop.pool, block=True, retries=False)

    def send() -> Reply:
        response = manager.request("GET", loop.url, headers=HEADERS, timeout=TIMEOUT)
        return response.status, response.data

    run_threads(loop, send)


def loop_requests(loop: Loop) -> None:
    """Send with one `Session`."""
    import requests

    session = requests.Session()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.headers.clear()
    session.mount("http://", requests.adapters.HTTPAdapter(1, loop.pool))

    def send() -> Reply:
        response = session.get(loop.url, headers=HEADERS, timeout=TIMEOUT)
        return response.status_code, response.content

    run_threads(loop, send)


def loop_httpx(loop: Loop) -> None:
    """Send with one `Client`."""
    import httpx

    limits = httpx.Limits(
        max_connections=loop.pool,
        max_keepalive_connections=loop.pool,
        keepalive_expiry=KEEP_IDLE,
    )
    client = httpx.Client(limits=limits, timeout=httpx.Timeout(TIMEOUT, pool=None))

    def send() -> Reply:
        response = client.get(loop.url, headers=HEADERS)
        return response.status_code, response.content

    run_threads(loop, send)


async def loop_httpx_h2(loop: Loop) -> None:
    """Send with one `AsyncClient` over HTTP/2."""
    import httpx

    tls = ssl.create_default_context(cafile=loop.ca_file)
    timeout = httpx.Timeout(TIMEOUT, pool=None)

    async def send() -> Reply:
        response = await client.get(loop.url, headers=HEADERS)
        return response.status_code, response.content

    async with httpx.AsyncClient(http2=True, verify=tls, timeout=timeout) as client:
        await run_tasks(loop, send)


async def loop_aiohttp(loop: Loop) -> None:
    """Send with one `ClientSession`."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=loop.pool, keepalive_timeout=KEEP_IDLE)

    async def send() -> Reply:
        async with session.get(loop.url, headers=HEADERS) as response:
            return response.status, await response.read()

    async with aiohttp.ClientSession(connector=connector) as session:
        await run_tasks(loop, send)


LOOPS: dict[str, Callable[[Loop], Awaitable[None] | None]] = {
    "urllib3": loop_urllib3,
    "requests-session": loop_requests,
    "httpx-client": loop_httpx,
    "httpx-async-h2": loop_httpx_h2,
    "aiohttp": loop_aiohttp,
}


async def main(client: str, url: str, ca_file: str, *numbers: str) -> None:
    """Run a loop, and print its rate."""
    in_flight, pool, warm_up, seconds = map(float, numbers)
    loop = Loop(url, ca_file, int(in_flight), int(pool), warm_up, seconds)
    if (tasks := LOOPS[client](loop)) is not None:
        await tasks
    print(loop.rate())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
