"""Bare loops: what a strategy does, written without the lab. ``python -m benchmarks.bare_loops NAME URL N``.

Each prints the seconds that N requests took, clients made and closed included, after a few to warm up: the
same calls of the same library with the same arguments as the lab's client, and nothing recorded.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from time import perf_counter

WARM_UP = 10
CONCURRENCY = 32
TIMEOUT = 30.0
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "clientlab/0.1.0"}


def requests_session(url: str, count: int) -> None:
    """One session, one request after the other."""
    import requests
    from requests.adapters import HTTPAdapter

    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=1))
        for _ in range(count):
            response = session.request("GET", url, headers=HEADERS, data=None, timeout=TIMEOUT, allow_redirects=False)
            _expect(response.status_code, response.content)


def pycurl_serial(url: str, count: int) -> None:
    """One handle, one request after the other."""
    import pycurl

    handle = pycurl.Curl()
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.TIMEOUT_MS, int(TIMEOUT * 1000))
    handle.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in HEADERS.items()])
    handle.setopt(pycurl.URL, url)
    for _ in range(count):
        body = handle.perform_rb()
        _expect(handle.getinfo(pycurl.RESPONSE_CODE), body)
    handle.close()


def aiohttp_workers(url: str, count: int) -> None:
    """One session, and worker tasks that draw the next request."""
    import aiohttp

    async def worker(session: aiohttp.ClientSession, numbers: object) -> None:
        for _ in numbers:  # type: ignore[attr-defined]
            async with session.request("GET", url, headers=HEADERS, data=None, allow_redirects=False) as response:
                _expect(response.status, await response.read())

    async def main() -> None:
        numbers = iter(range(count))
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)
        connector = aiohttp.TCPConnector(limit=CONCURRENCY)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(worker(session, numbers) for _ in range(CONCURRENCY)))

    asyncio.run(main())


LOOPS: dict[str, Callable[[str, int], None]] = {
    "requests-session": requests_session,
    "aiohttp@workers": aiohttp_workers,
    "pycurl": pycurl_serial,
}
"""Strategy → its bare loop."""


def _expect(status: int, body: bytes) -> None:
    if status != 200 or not body:
        raise SystemExit(f"status {status}, {len(body)} bytes")


def main(name: str, url: str, count: int) -> float:
    """Seconds that the loop takes."""
    loop = LOOPS[name]
    loop(url, WARM_UP)
    began = perf_counter()
    loop(url, count)
    return perf_counter() - began


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
