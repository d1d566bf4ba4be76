"""The wait for a connection of the pool: it has no limit in the lab, and its kind is in the tables all the same."""

from __future__ import annotations

import httpx
import pytest
import urllib3

from clientlab.clients.httpx_clients import HttpxClient
from clientlab.clients.requests_clients import RequestsSession
from clientlab.clients.urllib3_pool import Urllib3Pool
from clientlab.conformance.server import counting_server
from clientlab.errors import kind_of

LIMIT = 0.05


def by_httpx(url):
    """A client of one connection, which a stream holds."""
    limits, timeout = httpx.Limits(max_connections=1), httpx.Timeout(5, pool=LIMIT)
    with httpx.Client(limits=limits, timeout=timeout) as client, client.stream("GET", url):
        client.get(url)


def by_urllib3(url):
    """A pool of one connection, which an answer that is not read holds."""
    with urllib3.PoolManager(maxsize=1, block=True, retries=False) as manager:
        pool = manager.connection_from_url(url)
        held = pool.urlopen("GET", "/", preload_content=False)
        try:
            pool.urlopen("GET", "/", pool_timeout=LIMIT)
        finally:
            held.close()


@pytest.mark.real
@pytest.mark.parametrize(
    ("provoke", "client"), [(by_httpx, HttpxClient), (by_urllib3, Urllib3Pool), (by_urllib3, RequestsSession)]
)
def test_no_free_connection_in_time_is_a_kind_of_its_own(provoke, client):
    """As the library itself raises it, by the client's table."""
    with counting_server() as server, pytest.raises(Exception) as raised:  # noqa: PT011 - the library's own
        provoke(server.url + "/")
    assert kind_of(raised.value, client.errors) == "timeout-pool"
