"""The headers that each client sends: equal ones, so that no client sends more bytes than another."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.conformance.server import counting_server
from clientlab.strategies import CLIENTS
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload

PINNED = {"host", "accept", "accept-encoding", "user-agent"}
OVER_HTTP_1 = [spec.name for spec in CLIENTS.values() if spec.http == "1.1" and not spec.program]


def sent_headers(name: str, **own: str) -> dict[str, str]:
    """The headers of the second of two requests: the first may differ. `own`: those of the workload."""
    with counting_server() as server:
        client = strategies.load(CLIENTS[name].import_path)(Budget(1, 10.0), lambda: None)
        request = requests_of(Workload(headers=own), server.url)(0)
        if inspect.iscoroutinefunction(client.send):
            asyncio.run(twice(client, request))
        else:
            client.open()
            for _ in range(2):
                assert client.send(request)[0] == 200
            client.close()
        return dict(server.seen[-1].headers)


async def twice(client, request) -> None:
    """Send a request twice with an asyncio client."""
    await client.open()
    for _ in range(2):
        assert (await client.send(request))[0] == 200
    await client.close()


@pytest.mark.parametrize("name", OVER_HTTP_1)
def test_a_client_sends_the_pinned_headers_and_no_others(name):
    """Only those whose library cannot leave it out send `Connection: keep-alive`."""
    headers = {key.lower(): value for key, value in sent_headers(name).items()}
    assert headers.pop("connection", None) == ("keep-alive" if CLIENTS[name].quirks.keep_alive_header else None)
    assert set(headers) == PINNED


@pytest.mark.parametrize("name", OVER_HTTP_1)
def test_a_client_sends_a_host_of_the_workload_in_place_of_that_of_the_url(name):
    """Once: behind a link, the URL has the link's port, and the server is to see its own name."""
    assert sent_headers(name, Host="shop.test:8000")["host"] == "shop.test:8000"
