"""A function of a URL as a client."""

from __future__ import annotations

from textwrap import dedent
from types import SimpleNamespace

import pytest

from clientlab.cli import run_command_line
from clientlab.clients.function_client import FunctionClient, status_and_body
from clientlab.conformance.server import counting_server, ok
from clientlab.errors import PluginError
from clientlab.strategies import client_spec, find, plugins
from clientlab.workload.workload import Workload
from clients.measured import measure

MINE = """
    import httpx
    import requests

    session = requests.Session()

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

    def two(url, timeout): ...

    def nothing(url):
        session.get(url)

    def idle(url):
        return 200, b"body"

    def raises(url):
        raise ValueError("late\\nand long")

"""


@pytest.fixture
def server():
    with counting_server(lambda _: ok(b"{}")) as running:
        yield running


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(dedent(MINE))
    return path


def run(*words: str, url: str) -> int:
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
    plugins.admit([f"mine.py:{name}"])
    strategy = find(f"mine.py:{name}")
    spec = client_spec(strategy.client)
    assert (spec.kind, strategy.executor, strategy.policy, spec.description) == (kind, executor, policy, description)


@pytest.mark.real
@pytest.mark.parametrize("name", ["fetch@threads", "afetch@workers"])
def test_a_function_is_measured(name, server):
    found = measure(f"mine.py:{name}", Workload(path="/item/{k}", requests=7, concurrency=2, warmup=1), server.url)
    assert found.numbers == list(range(7))
    assert found.samples.errors == {}
    assert set(found.samples.records["status"].tolist()) == {200}
    assert set(found.samples.records["bytes"].tolist()) == {2}
    assert {seen.target for seen in server.seen} == {f"/item/{k}" for k in range(7)}


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("two", "timeout"),
        ("nothing", "nothing"),
        ("raises", "ValueError: late and long"),
    ],
)
def test_a_function_that_cannot_work_is_refused(name, names, server, capsys):
    assert run("-t", f"mine.py:{name}", url=server.url) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert names in said.err


@pytest.mark.real
def test_a_function_that_sends_nothing_is_refused(capsys):
    """Its trial fails, because the upstream got no request; otherwise it would be the fastest of all."""
    assert run_command_line(["run", "-t", "mine.py:idle", "-n", "5", "--rounds", "1"]) == 3
    assert "mine.py:idle" in capsys.readouterr().err


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
    assert status_and_body(returned) == (200, b"body")


@pytest.mark.parametrize(
    "returned",
    [
        None,
        200,
        (200, "body"),
        ("200", b""),
        SimpleNamespace(status=200, content=object()),
    ],
)
def test_half_an_answer_is_refused(returned):
    """Without a status, errors would be successes; without a body, nobody would know that it was read."""
    with pytest.raises(PluginError):
        status_and_body(returned)


def test_what_is_more_than_a_url_is_refused():
    """A function could not send it, and other clients would."""
    refused = [{"method": "POST"}, {"headers": {"A": "b"}}, {"payload_size": 5}, {"timeout": 5.0}, {"read": "chunks"}]
    for fields in refused:
        assert FunctionClient.refuses(Workload(**fields))[0] in fields
    assert FunctionClient.refuses(Workload(path="/{k}", duration=2.0, concurrency=3)) is None
