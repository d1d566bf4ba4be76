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


def fetch(url):
    busy(0.006)
    burn(0.003)
    answer = POOL.request("GET", url)
    return answer.status, answer.data
"""


@pytest.mark.parametrize("upstream", ["aiohttp", "flask"])
def test_a_limit_of_the_client_is_named_with_what_reached_the_server(
    clientlab, results, upstream
):
    said = clientlab(
        *("run", "-t", "aiohttp@workers?pool=2", "--upstream", upstream, "-c", 8),
        *("-n", 100, "--delay", "50ms", "--rounds", 1, "--explain"),
    )
    assert said.code == 0, said.err
    [found] = results.read("last").explained
    waits = found.waits
    assert (waits.requests, waits.most_at_server, found.concurrency) == (100, 2, 8)
    assert waits.in_handler.p50 == pytest.approx(0.05, abs=0.01)
    assert waits.to_handler.mean > 0.1
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
    assert shares["busy"] == pytest.approx(0.6, abs=0.08)
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
        (("--find-max", "errors<1%", "-d", "200ms"), "a search"),
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
