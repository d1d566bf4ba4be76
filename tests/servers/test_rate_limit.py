"""The limit of requests per second, which all workers of an upstream share."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mockupstream.rate_limit import RateLimit, retry_after
from mockupstream.settings import BadVariableError, read_limit
from running import FRAMEWORKS, ask, development, eventually, gunicorn

if TYPE_CHECKING:
    from running import Response, Server

RATE, SECONDS, THREADS = 50, 3.0, 6
BURST = RATE  # a second's: no token is lost while a busy machine lets nobody ask


class _Asking:
    """Asks over several connections, as fast as it can. `answers`: when each came, and what it was."""

    def __init__(self, server: Server) -> None:
        self.answers: list[tuple[float, Response]] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(server,)) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    @property
    def refusals(self) -> list[float]:
        """When each came. At these moments, no token was left."""
        return sorted(moment for moment, response in self.answers if response.status == 429)

    def _ask(self, server: Server) -> None:
        with contextlib.closing(server.connect()) as connection:
            while not self._is_over.is_set():
                response = ask(connection, "/")
                self.answers.append((time.monotonic(), response))


_THREE_PROCESSES = """
import json, os, time
from mockupstream.rate_limit import RateLimit
limit, ours, theirs = RateLimit(200.0, 200), *os.pipe()
for _ in range(3):
    if not os.fork():
        taken, end = [], time.monotonic() + 2
        while (now := time.monotonic()) < end:
            if not limit.wait():
                taken.append(now)
        os.write(theirs, (json.dumps(taken) + "\\n").encode())
        os._exit(0)
for _ in range(3):
    os.wait()
os.close(theirs)
with os.fdopen(ours) as lines:
    print(json.dumps(sorted(sum(map(json.loads, lines), []))))
"""


def test_the_rate_is_exact_over_all_processes() -> None:
    """Three of them that take whatever they get have the burst, and then the rate within 1 %."""
    command = [sys.executable, "-c", _THREE_PROCESSES]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    taken = json.loads(found.stdout)
    assert len(taken) - 200 == pytest.approx(200 * (taken[-1] - taken[0]), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_all_workers_have_the_rate_together(framework: str) -> None:
    """Between two refusals, three workers together answer the rate; all others get 429 and Retry-After."""
    with gunicorn(framework, workers="3", rate=str(RATE), burst=str(BURST)) as server:
        asking = _Asking(server)
        try:
            eventually(lambda: (times := asking.refusals) and times[-1] - times[0] > SECONDS, "refusals for 3 s")
        finally:
            asking.end()
        limited = server.metric("mockupstream_requests_limited_total")
        assert server.ask("/healthz").status == 200
    first, last = asking.refusals[0], asking.refusals[-1]
    served = [moment for moment, response in asking.answers if response.status == 200]
    between = sum(first < moment <= last for moment in served)
    assert between == pytest.approx(RATE * (last - first), abs=THREADS)  # an answer may be on its way at each end
    refused = [response for _, response in asking.answers if response.status != 200]
    assert {response.status for response in refused} == {429}
    assert len(refused) == limited
    headers = {response.headers.get("Retry-After") for response in refused}
    assert headers == {"1"}


def test_a_burst_is_answered_at_once_and_the_next_request_is_not() -> None:
    """By a development server, too; the header has the whole seconds until the next token."""
    with development("aiohttp", rate="0.25", burst="3") as server:
        answers = [server.ask(f"/todos/{number}") for number in (1, 1, 1, 1)]
    assert [one.status for one in answers] == [200, 200, 200, 429]
    assert answers[-1].headers["Retry-After"] == "4"
    assert "MOCKUPSTREAM_RATE" in answers[-1].body.decode()


def test_a_token_comes_after_the_interval() -> None:
    """The wait that a refused request is given is the time until one is within the limit."""
    limit = RateLimit(20.0, 1)
    assert limit.wait() == 0
    wait = limit.wait()
    assert 0.03 < wait <= 0.05
    time.sleep(wait)
    assert limit.wait() == 0
    assert [retry_after(seconds) for seconds in (0.01, 1.0, 1.2)] == ["1", "1", "2"]


@pytest.mark.parametrize("rate", ["0", "-1", "many", "1e9", "nan"])
def test_a_rate_that_can_not_be_is_refused(rate: str) -> None:
    """The message names the variable and the limits."""
    with pytest.raises(BadVariableError, match=r"MOCKUPSTREAM_RATE: '.*' is not .* from 0.01 to 1000000"):
        read_limit({"MOCKUPSTREAM_RATE": rate})
    with pytest.raises(BadVariableError, match="MOCKUPSTREAM_BURST"):
        read_limit({"MOCKUPSTREAM_BURST": "0"})
    with pytest.raises(BadVariableError, match="MOCKUPSTREAM_BURST: it needs MOCKUPSTREAM_RATE"):
        read_limit({"MOCKUPSTREAM_BURST": "10"})
