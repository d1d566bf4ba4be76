"""Bare loops: what a strategy does, written without the lab. ``python -m benchmarks.bare_loops NAME URL N [CA]``.

Each prints the seconds that N requests took, clients made and closed included, after a few to warm up: the
same calls of the same library with the same arguments as the lab's client, and nothing recorded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import perf_counter

from benchmarks import bare_asyncio, bare_blocking, bare_h2

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

SECURE: dict[str, Callable[[str, int, str], None]] = {
    "httpx-client-h2": bare_h2.httpx_client,
    "httpx-async-h2@workers": bare_h2.httpx_async,
    "pycurl-h2": bare_h2.pycurl_handle,
    "niquests-h2": bare_blocking.niquests_session,
    "niquests-async-h2@workers": bare_asyncio.niquests_async,
}
"""The same over TLS, with the CA to trust."""


def main(name: str, url: str, count: int, ca_file: str = "") -> float:
    """Seconds that the loop takes."""
    loop: Callable[..., None] = SECURE[name] if name in SECURE else LOOPS[name]
    more = [ca_file] if name in SECURE else []
    loop(url, WARM_UP, *more)
    began = perf_counter()
    loop(url, count, *more)
    return perf_counter() - began


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:]), flush=True)
    # pyreqwest's threads abort one program in three while Python ends it (PyGILState_Release, on Python 3.11).
    os._exit(0)
