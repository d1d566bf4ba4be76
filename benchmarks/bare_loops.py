"""Bare loops: what a strategy does, written without the lab.

Each makes and closes its clients, with the same calls of the same library with the same arguments as the lab's
client, and records nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from benchmarks import bare_asyncio, bare_blocking, bare_h2
from benchmarks.bare import Run
from benchmarks.bare_asyncio import in_loop
from benchmarks.trials import Site

LOOPS: dict[str, Callable[[str], AbstractContextManager[Run]]] = {
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
    "httpx-async@workers": in_loop(bare_asyncio.httpx_async),
    "aiohttp@workers": in_loop(bare_asyncio.aiohttp_session),
    "aiohttp-per-call@workers": in_loop(bare_asyncio.aiohttp_per_call),
    "niquests-async@workers": in_loop(bare_asyncio.niquests_async),
    "pyreqwest-async@workers": in_loop(bare_asyncio.pyreqwest_async),
    "aiosonic@workers": in_loop(bare_asyncio.aiosonic_client),
}
"""Strategy → its bare loop: a client that blocks one by one, one of asyncio with 32 in flight."""

SECURE: dict[str, Callable[[str, str], AbstractContextManager[Run]]] = {
    "httpx-client-h2": bare_h2.httpx_client,
    "httpx-async-h2@workers": in_loop(bare_h2.httpx_async),
    "pycurl-h2": bare_h2.pycurl_handle,
    "niquests-h2": bare_blocking.niquests_session,
    "niquests-async-h2@workers": in_loop(bare_asyncio.niquests_async),
}
"""The same over TLS, with the CA to trust."""


def bare_loop(name: str, site: Site) -> AbstractContextManager[Run]:
    """A strategy's loop there: its client is made and closed with the context."""
    return SECURE[name](site.url, site.ca_file or "") if name in SECURE else LOOPS[name](site.url)
