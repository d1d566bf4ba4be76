"""Bare loops over HTTP/2, and so over TLS: the CA to trust is given, and no other version is taken."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from benchmarks.bare import CONCURRENCY, HEADERS, TIMEOUT, expect, no_cookies
from benchmarks.bare_asyncio import drawn

if TYPE_CHECKING:
    import httpx
    import niquests


def httpx_client(url: str, count: int, ca_file: str) -> None:
    """One client, one connection."""
    import httpx

    limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=75.0)
    with httpx.Client(
        http2=True,
        verify=_context(ca_file),
        limits=limits,
        timeout=httpx.Timeout(TIMEOUT, pool=None),
        event_hooks={"response": [_check]},
    ) as client:
        for _ in range(count):
            response = client.request("GET", url, headers=HEADERS, content=None)
            expect(response.status_code, response.content)


def httpx_async(url: str, count: int, ca_file: str) -> None:
    """One client, one connection for all that are in flight."""
    import httpx

    limits = httpx.Limits(
        max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY, keepalive_expiry=75.0
    )  # fmt: skip

    async def main() -> None:
        async with httpx.AsyncClient(
            http2=True,
            verify=_context(ca_file),
            limits=limits,
            timeout=httpx.Timeout(TIMEOUT, pool=None),
            event_hooks={"response": [_acheck]},
        ) as client:

            async def send() -> tuple[int, bytes]:
                response = await client.request("GET", url, headers=HEADERS, content=None)
                return response.status_code, response.content

            await drawn(send, count)

    asyncio.run(main())


def pycurl_handle(url: str, count: int, ca_file: str) -> None:
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
    for _ in range(count):
        body = handle.perform_rb()
        expect(handle.getinfo(pycurl.RESPONSE_CODE), body)
        if handle.getinfo(pycurl.NUM_CONNECTS):
            _expect_h2(handle.getinfo(pycurl.INFO_HTTP_VERSION) == pycurl.CURL_HTTP_VERSION_2_0)
    handle.close()


def niquests_session(url: str, count: int, ca_file: str) -> None:
    """One session of niquests."""
    import niquests

    with niquests.Session(
        disable_http2=False, disable_http3=True, revocation_configuration=None, pool_connections=1, pool_maxsize=1
    ) as session:
        session.cookies.set_policy(no_cookies())
        session.hooks["response"] = [_check_niquests]
        for _ in range(count):
            response = session.request(
                "GET", url, headers=HEADERS, data=None, timeout=TIMEOUT, verify=ca_file, allow_redirects=False
            )
            expect(response.status_code or 0, response.content or b"")


def niquests_async(url: str, count: int, ca_file: str) -> None:
    """One session of niquests, as many connections as requests in flight."""
    import niquests

    async def main() -> None:
        async with niquests.AsyncSession(
            disable_http2=False,
            disable_http3=True,
            revocation_configuration=None,
            pool_connections=1,
            pool_maxsize=CONCURRENCY,
        ) as session:
            session.cookies.set_policy(no_cookies())
            session.hooks["response"] = [_check_niquests]

            async def send() -> tuple[int, bytes]:
                response = await session.request(
                    "GET", url, headers=HEADERS, data=None, timeout=TIMEOUT, verify=ca_file, allow_redirects=False
                )
                return response.status_code or 0, response.content or b""

            await drawn(send, count)

    asyncio.run(main())


def _context(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(["http/1.1"])  # as the lab's has it: httpx puts its own in its place
    return context


def _check(response: httpx.Response) -> None:
    _expect_h2(response.extensions["http_version"] == b"HTTP/2")


async def _acheck(response: httpx.Response) -> None:
    _check(response)


def _check_niquests(response: niquests.Response) -> None:
    _expect_h2(response.http_version == 20)


def _expect_h2(spoken: bool) -> None:  # noqa: FBT001 - the one thing that it is about
    if not spoken:
        raise SystemExit("the server spoke HTTP/1")
