"""What the time limit limits: each wait for bytes, for every client, and not the whole of a body."""

from __future__ import annotations

import contextlib
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from clientlab import strategies
from clientlab.conformance.server import Stall, counting_server, ok
from clientlab.workload.workload import Workload
from clients.ahead import begun_ahead
from clients.each_library import one_of_each_library
from clients.measured import Measured, measure

pytestmark = pytest.mark.slow

CLIENTS = [name for name, spec in strategies.CLIENTS.items() if spec.http == "1.1" and not spec.program]
LIMIT = 1.0
PIECES, PAUSE = 6, 0.25
EXTRA = 2.0
"""Seconds beyond the limit after which a client is late."""
LONGER = 3
"""Limit and body are this many times longer for a client that measures the speed of a body once a second."""


def late(strategy: str) -> float:
    """Seconds after the limit within which the strategy's library notices silence in a body, if it is slow to do so."""
    return strategies.client_spec(strategies.find(strategy).client).quirks.late_in_bodies


class _Slowly(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        times = int(self.rfile.readline().split()[1][1:])
        while self.rfile.readline() not in (b"\r\n", b""):
            continue
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (times * PIECES * 1000))
        with contextlib.suppress(ConnectionError):
            for _ in range(times * PIECES):
                time.sleep(PAUSE)  # the server's slowness, not a wait for a condition
                self.wfile.write(bytes(1000))


@pytest.fixture(scope="module")
def slow() -> Iterator[str]:
    """A server whose bodies come slowly, and steadily."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Slowly) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def read_slowly(request, slow):
    """A body that takes longer than the time limit."""

    def trial(strategy: str) -> Measured:
        times = LONGER if late(strategy) else 1
        workload = Workload(path=f"/{times}", requests=1, concurrency=1, warmup=0, timeout=times * LIMIT)
        return measure(strategy, workload, slow)

    yield from begun_ahead(request, "strategy", trial)


@pytest.fixture(scope="module")
def silenced(request):
    """A body of which the end does not come."""

    def trial(strategy: str) -> Measured:
        with counting_server(lambda _: Stall(ok(bytes(200_000))[:-5])) as server:
            return measure(strategy, Workload(requests=1, concurrency=1, warmup=0, timeout=LIMIT), server.url)

    yield from begun_ahead(request, "strategy", trial)


@pytest.mark.parametrize("strategy", [*one_of_each_library(CLIENTS), "pycurl@multi"])
def test_a_body_that_comes_slowly_but_steadily_is_no_error(strategy, read_slowly):
    """Though all of it takes longer than the time limit."""
    times = LONGER if late(strategy) else 1
    measured = read_slowly(strategy)
    assert measured.samples.errors == {}
    assert measured.samples.records["bytes"].tolist() == [times * PIECES * 1000]
    assert measured.samples.records["seconds"][0] > times * LIMIT


@pytest.mark.parametrize("strategy", [*one_of_each_library(CLIENTS), "pycurl@multi"])
def test_silence_in_a_body_is_a_time_out(strategy, silenced):
    """Within the time limit, and later only for a library with that quirk."""
    measured = silenced(strategy)
    assert measured.samples.errors == {"timeout-read": 1}
    assert LIMIT <= measured.samples.records["seconds"][0] < LIMIT + (late(strategy) or EXTRA)
