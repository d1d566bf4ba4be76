"""`clientlab run --explain`, on the lab's own upstreams and on a user's server."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.real

MINE = """
import time
import urllib3

POOL = urllib3.PoolManager(maxsize=8)


def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def busy(seconds):
    burn(seconds)


def other(seconds):
    burn(seconds)


def fetch(url):
    busy(0.006)
    other(0.003)
    answer = POOL.request("GET", url)
    return answer.status, answer.data
"""

HELD_BACK = """
import asyncio
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import urllib3

POOL = urllib3.PoolManager(maxsize=64)
SIX = ThreadPoolExecutor(6)


def get(url):
    answer = POOL.request("GET", url)
    return answer.status, answer.data


async def in_executor(url):
    return await asyncio.get_running_loop().run_in_executor(SIX, get, url)
"""

CARELESS = """
import os
import time

import aiohttp

KEPT = []


class Careless:
    def __init__(self, budget, opened):
        pass

    async def open(self):
        self.session = aiohttp.ClientSession()

    async def send(self, request):
        KEPT.append((bytearray(10_000), os.open("/dev/null", os.O_RDONLY)))
        if len(KEPT) % 100 == 0:
            time.sleep(0.05)
        async with self.session.get(
            request.url, headers=request.headers
        ) as answer:
            return answer.status, await answer.read()

    async def close(self):
        await self.session.close()
"""


@pytest.mark.parametrize(
    "words",
    [
        ("aiohttp@workers?limit_per_host=10", "-c", 40, "-n", 80),
        ("mine.py:in_executor@workers", "-c", 64, "-d", "3s"),
    ],
)
def test_delays_are_no_verdict_if_few_requests_are_at_the_server(
    clientlab, results, words
):
    Path("mine.py").write_text(HELD_BACK)
    said = clientlab(
        *("run", "--delay", "100ms", "--rounds", 1, "-t", *words),
    )
    assert said.code == 0, said.err
    [trial] = results.read("last").trials
    assert trial.bound == "client-connections"


def test_leaks_and_stalls_are_found_and_an_honest_client_is_not_accused(
    clientlab, results
):
    Path("mine.py").write_text(CARELESS)
    said = clientlab(
        *("run", "-t", "mine.py:Careless@workers", "-t", "aiohttp@workers", "-c", 4),
        *("--delay", "10ms", "-d", "2200ms", "--rounds", 1, "--explain"),
        *("--html", "report.html"),
    )
    assert said.code == 0, said.err
    careless, honest = results.read("last").explained
    assert careless.waits.longest_stall == pytest.approx(0.05, abs=0.02)
    assert careless.memory_growth.mean == pytest.approx(10.2e6, rel=0.1)
    assert careless.files_growth.mean == pytest.approx(1000, abs=20)
    assert honest.waits.longest_stall < 0.05
    assert honest.files_growth.low <= 0
    assert "aiohttp@workers: its memory" not in said.out
    assert "aiohttp@workers: it leaves" not in said.out
    page = Path("report.html").read_text()
    for name in (honest.profile.flame_graph, honest.profile.speedscope):
        assert f'/explained/{name}">' in page


@pytest.mark.parametrize(
    "upstream",
    [
        "aiohttp",
        "flask",
        pytest.param("aiohttp?server=development", marks=pytest.mark.release),
    ],
)
def test_a_limit_of_the_client_is_named_with_what_reached_the_server(
    clientlab, results, upstream
):
    said = clientlab(
        *("run", "-t", "aiohttp@workers?pool=2", "--upstream", upstream, "-c", 8),
        *("-n", 30, "--delay", "30ms", "--rounds", 1, "--explain"),
    )
    assert said.code == 0, said.err
    [found] = results.read("last").explained
    waits = found.waits
    assert (waits.requests, waits.most_at_server, found.concurrency) == (30, 2, 8)
    assert waits.in_handler.p50 == pytest.approx(0.03, abs=0.01)
    assert waits.to_handler.mean > 0.06
    parts = (waits.to_handler, waits.in_handler, waits.to_read)
    assert sum(part.mean for part in parts) == pytest.approx(waits.latency.mean)
    assert "at most 2 of 8 were at the server at once" in said.out
    assert "the setting pool=2" in said.out


def test_the_code_that_takes_the_cpu_is_named_with_its_share(clientlab, results):
    Path("mine.py").write_text(MINE)
    said = clientlab(
        *("run", "-t", "mine.py:fetch", "-n", 300, "--rounds", 1, "--explain"),
    )
    assert said.code == 0, said.err
    [found] = results.read("last").explained
    shares = {function.name: function.total for function in found.profile.functions}
    # Their shares of both: the rest is the client's work, whose share varies.
    both = shares["busy"] + shares["other"]
    assert shares["busy"] == pytest.approx(0.6, abs=0.08)
    assert shares["other"] == pytest.approx(0.3, abs=0.05)
    assert shares["busy"] / both == pytest.approx(2 / 3, abs=0.06)
    assert found.waits.most_at_server == 1
    folder = results.folder / results.names()[-1] / "explained"
    assert {path.name for path in folder.iterdir()} == {
        found.profile.flame_graph,
        found.profile.speedscope,
    }


def test_what_cannot_be_explained_is_said_and_the_rest_is_shown(
    clientlab, results, server, monkeypatch
):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    said = clientlab(
        *("run", "-t", "urllib3", "-n", 5, "--rounds", 1, "--explain"),
        *("--url", server.url),
    )
    assert said.code == 0, said.err
    [found] = results.read("last").explained
    assert [line.partition(":")[0] for line in found.left_out] == [
        "times at the server",
        "the code",
    ]
    assert found.waits.to_handler is None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--cold",), "a cold trial"),
        pytest.param(
            *(("--find-max", "errors<1%", "-d", "200ms"), "a search"),
            marks=pytest.mark.release,
        ),
    ],
)
def test_a_trial_that_is_not_looked_at_says_why_and_claims_nothing(
    clientlab, results, server, words, reason
):
    said = clientlab(
        *("run", "-t", "requests", "--rounds", 1, "--explain", "--url", server.url),
        *words,
    )
    assert said.code == 0, said.err
    [found] = results.read("last").explained
    assert [line.startswith(f"all: {reason}") for line in found.left_out] == [True]
    assert "nothing stands out" not in said.out
