"""The time limit is that of each wait for bytes, and not of a whole body."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from clientlab.conformance.server import counting_server
from clients.one_client import outcomes, request_to

LIMIT = 1.5
PIECES, PAUSE = 8, 0.25


def slowly() -> Iterator[bytes]:
    """A body that comes slowly, and steadily."""
    yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (PIECES * 1000)
    for _ in range(PIECES):
        time.sleep(PAUSE)  # the server's slowness, not a wait for a condition
        yield bytes(1000)


@pytest.mark.real
def test_a_body_that_comes_slowly_but_steadily_is_no_error():
    """Though all of it takes longer than the time limit. The clients wait at once."""

    def answers(name: str) -> list[object]:
        with counting_server(lambda _: slowly()) as server:
            return outcomes(name, request_to(server.url), timeout=LIMIT)

    clients = ["urllib3", "aiohttp", "httpx-client", "pycurl"]
    with ThreadPoolExecutor(len(clients)) as pool:
        assert list(pool.map(answers, clients)) == [[(200, bytes(PIECES * 1000))]] * len(clients)
