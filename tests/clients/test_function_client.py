"""A function of a URL as a client."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest

from clientlab.cli import run_command_line
from clientlab.clients.function_client import status_and_body
from clientlab.conformance.server import counting_server, ok
from clientlab.errors import PluginError
from clientlab.results.store import Store
from clientlab.strategies import client_spec, find, plugins
from clientlab.workload.workload import Workload
from clients.measured import measure

MINE = """
    import httpx
    import requests

    session = requests.Session()
    client = httpx.AsyncClient()
    get = session.get

    def fetch(url):
        '''With one session.

        For all threads.
        '''
        return session.get(url, allow_redirects=False)

    def pair(url, timeout=5):
        response = session.get(url, timeout=timeout)
        return response.status_code, response.content

    def per_call(url):
        return requests.get(url)

    per_call.policy = "per call"

    async def afetch(url):
        async with httpx.AsyncClient() as own:
            return await own.get(url)

    async def of_another_loop(url):
        return await client.get(url)

    def two(url, timeout): ...

    async def none_needed(): ...

    def nothing(url):
        session.get(url)

    def idle(url):
        return 200, b"body"

    def text(url):
        return session.get(url).text

    def unawaited(url):
        return client.get(url)

    def raises(url):
        raise ValueError("late\\nand long")

    number = 3
"""


@pytest.fixture
def server():
    """A server that answers at once."""
    with counting_server(lambda _: ok(b"{}")) as running:
        yield running


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """A user's file in the working folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(dedent(MINE))
    return path


def run(*words: str, url: str) -> int:
    """A short run of one round."""
    return run_command_line(["run", *words, "-n", "8", "--rounds", "1", "--url", url])


@pytest.mark.parametrize(
    ("name", "kind", "executor", "policy", "description"),
    [
        ("fetch", "blocking", "serial", "pool", "With one session."),
        ("per_call", "blocking", "serial", "per call", "the function per_call"),
        ("afetch", "asyncio", "await", "pool", "the function afetch"),
    ],
)
def test_a_function_is_a_client(name, kind, executor, policy, description):
    """Kind by its `def`, policy by its attribute, description by its docstring."""
    plugins.admit([f"mine.py:{name}"])
    strategy = find(f"mine.py:{name}")
    spec = client_spec(strategy.client)
    assert (spec.kind, strategy.executor, strategy.policy, spec.description) == (kind, executor, policy, description)


@pytest.mark.parametrize("name", ["fetch@threads", "pair@queue", "get", "per_call", "afetch@workers"])
def test_a_function_is_measured(name, server):
    """Each request gets the URL of the workload; status and size of the body are recorded."""
    found = measure(f"mine.py:{name}", Workload(path="/item/{k}", requests=7, concurrency=2, warmup=1), server.url)
    assert found.numbers == list(range(7))
    assert found.samples.errors == {}
    assert set(found.samples.records["status"].tolist()) == {200}
    assert set(found.samples.records["bytes"].tolist()) == {2}
    assert {seen.target for seen in server.seen} == {f"/item/{k}" for k in range(7)}


def test_an_error_status_is_an_error():
    """A function cannot win by answers that are none."""
    with counting_server(lambda _: ok(status="503 Service Unavailable")) as server:
        found = measure("mine.py:fetch", Workload(requests=3, warmup=0), server.url)
    assert found.samples.errors == {"status-5xx": 3}


def test_it_is_measured_beside_a_listed_one(server):
    """In one run, with a hash of its file."""
    assert run("-t", "mine.py:fetch", "-t", "urllib3", url=server.url) == 0
    found = Store(Path("results")).read("last")
    assert {trial.strategy: (trial.requests, trial.errors) for trial in found.trials} == {
        "mine.py:fetch": (8, {}), "urllib3": (8, {}),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("two", "function two cannot be called with a URL alone (missing a required argument: 'timeout')"),
        ("none_needed", "function none_needed cannot be called with a URL alone (too many positional arguments"),
        ("number", "mine.py has no class or function number; it has fetch, pair, per_call, afetch, of"),
        ("nothing", "'mine.py:nothing': the function returned nothing; return your library's response, or its status"),
        ("text", "the function returned an object of type str; return your library's response, or its status and body"),
        ("unawaited", "the function returned an object of type coroutine; write 'async def', and await it"),
        ("raises", "strategy 'mine.py:raises': its first request raised ValueError: late and long"),
        ("of_another_loop", "Event loop is closed; what asyncio keeps belongs to one event loop, which a class opens"),
        ("fetch@workers", "mine.py:fetch is a client of kind blocking and workers runs asyncio ones; it goes with"),
        ("afetch@threads", "mine.py:afetch is a client of kind asyncio and threads runs blocking ones; it goes with"),
    ],
)  # fmt: skip
def test_a_function_that_cannot_work_is_one_line(name, says, server, capsys):
    """Exit code 2, and no trial was begun."""
    assert run("-t", f"mine.py:{name}", url=server.url) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert says in said.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--method", "post"), "--method"),
        (("--header", "X-Mine: yes"), "--header"),
        (("--payload-size", "9"), "--pay"),
        (("--timeout", "1s"), "--timeout"),
    ],
)
def test_what_is_more_than_a_url_is_refused(words, option, server, capsys):
    """A function could not send it, and other clients would."""
    assert run("-t", "mine.py:fetch", *words, url=server.url) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"clientlab: {option}")
    assert "a function of a URL gets nothing else; write a class, or leave out" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-t", "mine.py:idle"), "it was called 2 times, and the upstream got 0 requests: send one with each call"),
        (("-t", "mine.py:fetch", "--route", "proxy-tls"), "a function is not given the CA of route proxy-tls"),
    ],
)
def test_a_function_that_reaches_no_upstream_is_one_line(words, says, capsys):
    """It would be the fastest client of all, or fail in each trial."""
    assert run_command_line(["run", *words, "-n", "5", "--rounds", "1"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "returned",
    [
        (200, b"body"),
        SimpleNamespace(status_code=200, content=b"body"),
        SimpleNamespace(status=200, data=b"body"),
        SimpleNamespace(status=200, content=object(), data=memoryview(b"body")),
    ],
)
def test_a_response_of_any_library_has_status_and_body(returned):
    """Requests and httpx have `status_code` and `content`, urllib3 `status` and `data`."""
    assert status_and_body(returned) == (200, b"body")


@pytest.mark.parametrize(
    "returned",
    [
        None,
        200,
        b"body",
        "body",
        (200, "body"),
        ("200", b""),
        (True, b""),
        (0, b""),
        SimpleNamespace(status=200, content=object()),
    ],
)
def test_half_an_answer_is_refused(returned):
    """Without a status, errors would be successes; without a body, nobody would know that it was read."""
    with pytest.raises(
        PluginError, match=r"return your library's response, or its status and body, an int and bytes: "
    ):
        status_and_body(returned)


@pytest.mark.slow
def test_a_function_that_follows_no_redirects_does_the_work_right(capsys):
    """What a URL cannot say is not checked: methods, headers, the lab's CA and its time limits."""
    run_command_line(["conform", "mine.py:fetch"])
    said = capsys.readouterr().out
    assert said.startswith("mine.py:fetch: does the work right: yes, passes all ")
    assert "time limit kept: not checked, the time limits of a function are its own" in said
    assert "method PUT" not in said
    assert "certificate" not in said
