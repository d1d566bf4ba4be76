"""Bare loops over HTTP/2, and so over TLS, with the CA to trust. An answer in another version ends the program."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from benchmarks.bare import CONCURRENCY, HEADERS, TIMEOUT, Run, empty_jar, expect, expect_h2
from benchmarks.bare_asyncio import Send

if TYPE_CHECKING:
    import httpx


@contextmanager
def httpx_client_h2(url: str, ca_file: str) -> Iterator[Run]:
    """One client, one connection."""
    import httpx

    limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=75.0)
    with httpx.Client(
        http2=True,
        verify=_context(ca_file),
        limits=limits,
        timeout=httpx.Timeout(TIMEOUT, pool=None),
        cookies=empty_jar(),
        event_hooks={"response": [_check]},
    ) as client:
        del client.headers["Connection"]

        def run(count: int) -> None:
            for _ in range(count):
                response = client.request("GET", url, headers=HEADERS, content=None)
                expect(response.status_code, response.content)

        yield run


@asynccontextmanager
async def httpx_async_h2(url: str, ca_file: str) -> AsyncIterator[Send]:
    """One client, one connection for all that are in flight."""
    import httpx

    limits = httpx.Limits(
        max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY, keepalive_expiry=75.0
    )  # fmt: skip

    async with httpx.AsyncClient(
        http2=True,
        verify=_context(ca_file),
        limits=limits,
        timeout=httpx.Timeout(TIMEOUT, pool=None),
        cookies=empty_jar(),
        event_hooks={"response": [_acheck]},
    ) as client:
        del client.headers["Connection"]

        async def send() -> tuple[int, bytes]:
            response = await client.request("GET", url, headers=HEADERS, content=None)
            return response.status_code, response.content

        yield send


@contextmanager
def pycurl_h2(url: str, ca_file: str) -> Iterator[Run]:
    """One handle."""
    import pycurl

    handle = pycurl.Curl()
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
    handle.setopt(pycurl.CONNECTTIMEOUT_MS, int(TIMEOUT * 1000))
    handle.setopt(pycurl.TIMEOUT_MS, int(TIMEOUT * 1000))
    handle.setopt(pycurl.CAINFO, ca_file)
    handle.setopt(pycurl.HTTPHEADER, [*(f"{name}: {value}" for name, value in HEADERS.items()), "Expect:"])
    handle.setopt(pycurl.URL, url)

    def run(count: int) -> None:
        for _ in range(count):
            body = handle.perform_rb()
            expect(handle.getinfo(pycurl.RESPONSE_CODE), body)
            if handle.getinfo(pycurl.NUM_CONNECTS):
                expect_h2(handle.getinfo(pycurl.INFO_HTTP_VERSION) == pycurl.CURL_HTTP_VERSION_2_0)

    yield run
    handle.close()


def _context(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(["http/1.1"])  # as the lab's has it: httpx puts its own in its place
    return context


def _check(response: httpx.Response) -> None:
    expect_h2(response.extensions["http_version"] == b"HTTP/2")


async def _acheck(response: httpx.Response) -> None:
    _check(response)
