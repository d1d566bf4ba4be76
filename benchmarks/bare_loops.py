"""Bare loops: what a strategy does, written without the lab. ``python -m benchmarks.bare_loops NAME URL N``.

Each prints the seconds that N requests took, clients made and closed included, after a few to warm up: the
same calls of the same library with the same arguments as the lab's client, and nothing recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

from benchmarks import bare_asyncio, bare_blocking

WARM_UP = 10

LOOPS: dict[str, Callable[[str, int], None]] = {
    "requests": bare_blocking.requests_per_call,
    "requests-session": bare_blocking.requests_session,
    "httpx": bare_blocking.httpx_per_call,
    "httpx-client": bare_blocking.httpx_client,
    "urllib3": bare_blocking.urllib3_pool,
    "niquests": bare_blocking.niquests_session,
    "http.client": bare_blocking.http_client,
    "pycurl": bare_blocking.pycurl_handle,
    "httplib2": bare_blocking.httplib2_http,
    "pyreqwest": bare_blocking.pyreqwest_client,
    "httpx-async@workers": bare_asyncio.httpx_async,
    "aiohttp@workers": bare_asyncio.aiohttp_session,
    "aiohttp-per-call@workers": bare_asyncio.aiohttp_per_call,
    "niquests-async@workers": bare_asyncio.niquests_async,
    "pyreqwest-async@workers": bare_asyncio.pyreqwest_async,
    "aiosonic@workers": bare_asyncio.aiosonic_client,
}
"""Strategy → its bare loop: a client that blocks one by one, one of asyncio with 32 in flight."""


def main(name: str, url: str, count: int) -> float:
    """Seconds that the loop takes."""
    loop = LOOPS[name]
    loop(url, WARM_UP)
    began = perf_counter()
    loop(url, count)
    return perf_counter() - began


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
