"""The wait for a connection of the pool: it has no limit in the lab, and its kind is in the tables all the same."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import aiosonic
import httpx
import pytest
import urllib3
from aiosonic.connectors import TCPConnector
from aiosonic.pools import PoolConfig
from aiosonic.timeout import Timeouts
from pyreqwest.client import SyncClientBuilder

from clientlab.clients.aiosonic_client import AiosonicClient
from clientlab.clients.httpx_clients import HttpxClient
from clientlab.clients.pyreqwest_clients import PyreqwestClient
from clientlab.clients.requests_clients import RequestsSession
from clientlab.clients.urllib3_pool import Urllib3Pool
from clientlab.conformance.server import counting_server, ok
from clientlab.errors import kind_of

LIMIT = 0.05


def by_httpx(url, _arrived, _free):
    """A client of one connection, which a stream holds."""
    limits, timeout = httpx.Limits(max_connections=1), httpx.Timeout(5, pool=LIMIT)
    with httpx.Client(limits=limits, timeout=timeout) as client, client.stream("GET", url):
        client.get(url)


def by_urllib3(url, _arrived, _free):
    """A pool of one connection, which an answer that is not read holds."""
    with urllib3.PoolManager(maxsize=1, block=True, retries=False) as manager:
        pool = manager.connection_from_url(url)
        held = pool.urlopen("GET", "/", preload_content=False)
        try:
            pool.urlopen("GET", "/", pool_timeout=LIMIT)
        finally:
            held.close()


def by_pyreqwest(url, arrived, free):
    """A client of one connection, which another thread's request holds."""
    builder = SyncClientBuilder().max_connections(1).pool_timeout(timedelta(seconds=LIMIT))
    with builder.build() as client:
        other = threading.Thread(target=lambda: client.get(url).build().send())
        other.start()
        assert arrived.wait(10)
        try:
            client.get(url).build().send()
        finally:
            free.set()
            other.join()


def by_aiosonic(url, arrived, free):
    """A pool of one connection, which another task's request holds."""

    async def both():
        connector = TCPConnector({":default": PoolConfig(1)}, Timeouts(pool_acquire=LIMIT))
        async with aiosonic.HTTPClient(connector) as client:
            other = asyncio.create_task(client.get(url))
            assert await asyncio.to_thread(arrived.wait, 10)
            try:
                await client.get(url)
            finally:
                free.set()
                await (await other).content()
                await client.aclose()
                await asyncio.sleep(0)  # transports are closed in the loop's next turn

    asyncio.run(both())


@pytest.mark.parametrize(
    ("provoke", "client"),
    [(by_httpx, HttpxClient), (by_urllib3, Urllib3Pool), (by_urllib3, RequestsSession),
     (by_pyreqwest, PyreqwestClient), (by_aiosonic, AiosonicClient)],
)  # fmt: skip
def test_no_free_connection_in_time_is_a_kind_of_its_own(provoke, client):
    """As the library itself raises it, by the client's table."""
    arrived, free = threading.Event(), threading.Event()

    def answer(_seen):
        arrived.set()
        if provoke in {by_pyreqwest, by_aiosonic}:
            free.wait(10)
        return ok()

    with counting_server(answer) as server, pytest.raises(Exception) as raised:  # noqa: PT011 - the library's own
        provoke(server.url + "/", arrived, free)
    assert kind_of(raised.value, client.errors) == "timeout-pool"
