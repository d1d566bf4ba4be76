"""Strategies of a user's file."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from textwrap import dedent

import pytest

from clientlab.conformance.server import counting_server
from clientlab.errors import PluginError
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.results.surroundings import distributions_of, surroundings
from clientlab.strategies import check_settings, client_spec, executor_spec, find, plugins
from clientlab.workload.workload import Workload
from clients.measured import measure

MINE = """
    from clientlab.clients.http_client import HttpClient
    from clientlab.clients.aiohttp_clients import AiohttpSession

    class Blocking(HttpClient):
        '''Mine, and blocking.

        In many words.
        '''
        policy = "per thread"

        def __init__(self, budget, opened, *, fails: bool = False):
            super().__init__(budget, opened)
            self.fails = fails

        def open(self):
            if self.fails:
                raise RuntimeError("not today")

    class Awaiting(AiohttpSession):
        pass

    class Executor:
        needs = "asyncio"
        needs_count = True

        def __init__(self, context, *, times: int = 1):
            self.context = context

        def open(self):
            import asyncio
            self.runner = asyncio.Runner()
            self.call = self.runner.run(self.context.aopen(self.context.concurrency))

        def run(self, numbers):
            self.runner.run(self.call.send_all(numbers))

        def close(self):
            self.runner.run(self.call.close())
            self.runner.close()

    class NoSend:
        def open(self): ...
        def close(self): ...

    class StrangePolicy(Blocking):
        policy = "sometimes"

    class StrangeNeeds(Executor):
        needs = "threads"

    number = 3

    class NoArguments:
        def send(self, request): ...
        def open(self): ...
        def close(self): ...
"""


@pytest.fixture
def server():
    """A server that answers at once."""
    with counting_server() as running:
        yield running


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A user's file in the working folder, whose path holds an @."""
    folder = tmp_path / "a@b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = folder / "mine.py"
    path.write_text(dedent(MINE))
    return path


@pytest.mark.parametrize(
    ("name", "client", "executor", "concurrency"),
    [
        ("mine.py:Blocking", "mine.py:Blocking", "serial", 1),
        ("../a@b/mine.py:Awaiting", "mine.py:Awaiting", "await", 1),
        ("mine.py:Blocking@threads", "mine.py:Blocking", "threads", 32),
        ("aiohttp@mine.py:Executor", "aiohttp", "mine.py:Executor", 32),
        ("aiohttp@../a@b/mine.py:Executor?times=2", "aiohttp", "mine.py:Executor", 32),
        ("../a@b/mine.py:Awaiting@mine.py:Executor", "mine.py:Awaiting", "mine.py:Executor", 32),
    ],
)
def test_a_class_of_a_file_is_a_client_or_an_executor(name, client, executor, concurrency, mine):
    """By its path, alone or paired; found again from any folder."""
    plugins.admit([name])
    found = find(name)
    check_settings(found)
    wanted = tuple(str(mine.parent / part) if ".py:" in part else part for part in (client, executor))
    assert (found.name, found.client, found.executor) == (name, *wanted)
    assert found.concurrency == concurrency


def test_a_class_says_what_a_row_of_the_lists_says(mine):
    """Kind by its `send`, the rest by attributes; what it says of itself by its docstring's first line."""
    plugins.admit([str(mine)])
    blocking, awaiting = client_spec(f"{mine}:Blocking"), client_spec(f"{mine}:Awaiting")
    assert (blocking.kind, blocking.policy, blocking.description) == ("blocking", "per thread", "Mine, and blocking.")
    assert (awaiting.kind, awaiting.policy) == ("asyncio", "pool")
    executor = executor_spec(f"{mine}:Executor")
    assert (executor.needs, executor.needs_count, executor.concurrent, executor.unbounded) == (
        "asyncio",
        True,
        True,
        False,
    )


@pytest.mark.real
@pytest.mark.parametrize("name", ["mine.py:Blocking?fails=false", "mine.py:Awaiting@mine.py:Executor"])
@pytest.mark.usefixtures("mine")
def test_a_users_strategy_is_measured(name, server):
    """In its own process, as any other."""
    measured = measure(name, Workload(requests=7, concurrency=2, warmup=1), server.url)
    assert measured.numbers == list(range(7))
    assert measured.samples.errors == {}
    assert len(server.seen) == 8


@pytest.mark.real
@pytest.mark.usefixtures("mine")
def test_a_users_strategy_that_raises_is_a_failed_trial(server):
    """With file and line of the user's own code."""
    with pytest.raises(TrialFailed, match=r"RuntimeError: not today \(.*mine.py:18\)"):
        measure("mine.py:Blocking?fails=true", Workload(requests=3), server.url)


@pytest.mark.real
def test_a_run_notes_the_file_and_its_hash(mine):
    """In place of a version, for clients and executors."""
    names = ["mine.py:Blocking", "aiohttp@mine.py:Executor"]
    plugins.admit(names)
    noted = distributions_of(names)
    assert noted == {str(mine), "aiohttp"}
    found = surroundings(noted, {}).libraries
    assert found[str(mine)] == f"sha256:{hashlib.sha256(mine.read_bytes()).hexdigest()}"
    assert found["aiohttp"] == version("aiohttp")


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("mine.py:Nobody", "Nobody"),
        ("other.py:Client", "other.py"),
        ("mine.py:NoSend", "line 42.*send"),
        ("aiohttp@mine.py:NoSend", "line 42.*run"),
        ("mine.py:StrangePolicy", "policy is 'sometimes'"),
        ("mine.py:NoArguments", "budget and opened"),
        ("mine.py:Executor", "aiohttp@mine.py:Executor"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_a_class_that_lacks_the_shape_is_refused(name, names):
    """With file and line."""
    plugins.admit([name])
    with pytest.raises(PluginError, match=f"(?s){names}"):
        find(name)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("import os\nimport no_such_module", "(?s)line 2.*no_such_module"),
        ("x = 1\n\ndef f(:", "(?s)line 3.*SyntaxError"),
        ("raise SystemExit(3)", "(?s)line 1.*SystemExit"),
    ],
)
def test_a_file_that_does_not_import_is_told_with_its_line(text, where, tmp_path):
    """A user's file that fails to import is reported with its line and its own error."""
    path = tmp_path / "mine.py"
    path.write_text(text)
    plugins.admit([f"{path}:Client"])
    with pytest.raises(PluginError, match=where):
        find(f"{path}:Client")
