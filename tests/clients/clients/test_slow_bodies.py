"""The time limit is that of each wait for bytes, and not of a whole body."""

from __future__ import annotations

import contextlib
import socketserver
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from clients.one_client import outcomes, request_to

LIMIT = 1.5
PIECES, PAUSE = 8, 0.25


class _Slowly(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while self.rfile.readline() not in (b"\r\n", b""):
            continue
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (PIECES * 1000))
        with contextlib.suppress(ConnectionError):
            for _ in range(PIECES):
                time.sleep(PAUSE)  # the server's slowness, not a wait for a condition
                self.wfile.write(bytes(1000))


@pytest.fixture(scope="module")
def slow() -> Iterator[str]:
    """A server whose bodies come slowly, and steadily."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Slowly) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.real
def test_a_body_that_comes_slowly_but_steadily_is_no_error(slow):
    """Though all of it takes longer than the time limit. The clients wait at once."""

    def answers(name: str) -> list[object]:
        return outcomes(name, request_to(slow), timeout=LIMIT)

    clients = ["urllib3", "aiohttp", "httpx-client", "pycurl"]
    with ThreadPoolExecutor(len(clients)) as pool:
        assert list(pool.map(answers, clients)) == [[(200, bytes(PIECES * 1000))]] * len(clients)
