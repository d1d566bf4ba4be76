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


@pytest.mark.parametrize(
    "name", ["mine.py:Blocking?fails=false", "mine.py:Awaiting@workers", "mine.py:Awaiting@mine.py:Executor"]
)
@pytest.mark.usefixtures("mine")
def test_a_users_strategy_is_measured(name, server):
    """In its own process, as any other."""
    measured = measure(name, Workload(requests=7, concurrency=2, warmup=1), server.url)
    assert measured.numbers == list(range(7))
    assert measured.samples.errors == {}
    assert len(server.seen) == 8


@pytest.mark.usefixtures("mine")
def test_a_users_strategy_that_raises_is_a_failed_trial(server):
    """With file and line of the user's own code."""
    with pytest.raises(TrialFailed, match=r"RuntimeError: not today \(.*mine.py:18\)"):
        measure("mine.py:Blocking?fails=true", Workload(requests=3), server.url)


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
    ("name", "says"),
    [
        ("mine.py:Nobody", "mine.py has no class or function Nobody; it has Blocking, Awaiting, Executor, NoSend"),
        ("mine.py:number", "mine.py has no class or function number; it has"),
        ("other.py:Client", "there is no file .*other.py; write the path of a Python file"),
        ("mine.py:NoSend", "mine.py, line 42: class NoSend\nit lacks send: a client has open, send, close"),
        ("aiohttp@mine.py:NoSend", "line 42: class NoSend\nit lacks run: an executor has open, run, close"),
        ("mine.py:StrangePolicy", "\npolicy is 'sometimes'; it must be one of per call, pool, per thread"),
        ("aiohttp@mine.py:StrangeNeeds", "\nneeds is 'threads'; it must be one of blocking, asyncio"),
        (
            "mine.py:NoArguments",
            r"class NoArguments\nit is called with budget and opened \(.*\); write 'def __init__\(self, budget, op",
        ),
        ("mine.py:Executor", "'mine.py:Executor' is an executor, and runs a client; write aiohttp@mine.py:Executor"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_a_class_that_lacks_the_shape_is_told(name, says):
    """In two lines at most, with file and line."""
    plugins.admit([name])
    with pytest.raises(PluginError, match=says) as raised:
        find(name)
    assert str(raised.value).count("\n") <= 1


def test_a_class_that_only_reads_streams_is_a_client(tmp_path):
    """It states what it hands over; a class that does not is told."""
    text = "class Reads:\n    events_as = 'bytes'\n    pieces = 'lines'\n" + _READER
    text += "class Vague:\n" + _READER
    (tmp_path / "reads.py").write_text(text, encoding="utf-8")
    names = [f"{tmp_path}/reads.py:{name}" for name in ("Reads", "Vague")]
    plugins.admit(names)
    spec = client_spec(find(names[0]).client)
    assert (spec.streams_only, spec.kind) == (True, "asyncio")
    with pytest.raises(PluginError, match="events_as is ''; it must be one of bytes, str"):
        find(names[1])


_READER = """    def __init__(self, budget, opened): ...
    async def open(self): ...
    async def events(self, request, sink): ...
    async def close(self): ...
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import os\nimport no_such_module", "line 2\nModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1\n\ndef f(:", "line 3\nSyntaxError: "),
        ("def f():\n    raise ValueError('late')\n\nf()", "line 2\nValueError: late"),
        ("raise SystemExit(3)", "line 1\nSystemExit: 3"),
    ],
)
def test_a_file_that_does_not_import_is_told_with_its_line(text, says, tmp_path):
    """A user's file that fails to import is reported with its line and its own error."""
    path = tmp_path / "mine.py"
    path.write_text(text)
    plugins.admit([f"{path}:Client"])
    with pytest.raises(PluginError, match=f"{path} can't be imported, {says}"):
        find(f"{path}:Client")
