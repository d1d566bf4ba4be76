"""Bare loops of libraries that work in C or Rust, with the options of the lab's clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from benchmarks.bare import CONCURRENCY, HEADERS, TIMEOUT, Run, expect
from benchmarks.bare_asyncio import Send


@asynccontextmanager
async def curl_cffi_async(url: str) -> AsyncIterator[Send]:
    """One session of curl-cffi for asyncio."""
    from curl_cffi import AsyncSession, CurlInfo, CurlMOpt, CurlOpt, ffi, lib

    limits = {
        CurlOpt.CONNECTTIMEOUT_MS: int(TIMEOUT * 1000),
        CurlOpt.LOW_SPEED_LIMIT: 1,
        CurlOpt.LOW_SPEED_TIME: int(TIMEOUT),
    }
    async with AsyncSession[Any](
        max_clients=CONCURRENCY,
        http_version="v1",
        allow_redirects=False,
        discard_cookies=True,
        trust_env=False,
        curl_options=limits,
        curl_infos=[CurlInfo.NUM_CONNECTS],
    ) as session:
        most = ffi.cast("void *", CONCURRENCY)
        lib.curl_multi_setopt(session.acurl._curlm, CurlMOpt.MAXCONNECTS, most)  # noqa: SLF001 - as the lab's client does

        async def send() -> tuple[int, bytes]:
            response = await session.request(
                "GET",
                url,
                headers=HEADERS,
                content=None,
                timeout=None,
                verify=True,
                accept_encoding=None,
                quote=False,
                content_callback=None,
            )
            return response.status_code, response.content

        yield send


@contextmanager
def gevent_http(url: str) -> Iterator[Run]:
    """One client of geventhttpclient."""
    from urllib.parse import urlsplit

    from geventhttpclient import HTTPClient
    from geventhttpclient import client as library

    library.IDEMPOTENT_METHODS = frozenset()  # as the lab's client does
    client = HTTPClient.from_url(url, connection_timeout=TIMEOUT, network_timeout=TIMEOUT, concurrency=1)
    target = urlsplit(url).path

    def run(count: int) -> None:
        for _ in range(count):
            response = client.request("GET", target, None, HEADERS)
            expect(response.status_code, response.read())

    yield run
    client.close()


@contextmanager
def pyqwest_client(url: str) -> Iterator[Run]:
    """One blocking client of pyqwest."""
    import pyqwest

    with pyqwest.SyncHTTPTransport(**_of_pyqwest(1)) as transport:
        client = pyqwest.SyncClient(transport)

        def run(count: int) -> None:
            for _ in range(count):
                response = client.execute("GET", url, HEADERS, None)
                expect(response.status, response.content)

        yield run


@asynccontextmanager
async def pyqwest_async(url: str) -> AsyncIterator[Send]:
    """One client of pyqwest for asyncio."""
    import pyqwest

    async with pyqwest.HTTPTransport(**_of_pyqwest(CONCURRENCY)) as transport:
        client = pyqwest.Client(transport)

        async def send() -> tuple[int, bytes]:
            response = await client.execute("GET", url, HEADERS, None)
            return response.status, response.content

        yield send


def _of_pyqwest(connections: int) -> dict[str, Any]:
    import pyqwest

    return {
        "http_version": pyqwest.HTTPVersion.HTTP1,
        "connect_timeout": 0.95 * TIMEOUT,
        "read_timeout": TIMEOUT,
        "follow_redirects": False,
        "enable_gzip": False,
        "enable_brotli": False,
        "enable_zstd": False,
        "enable_otel": False,
        "tls_include_system_certs": True,
        "pool_idle_timeout": None,
        "pool_max_idle_per_host": connections,
        "max_connections_per_address": connections,
    }
