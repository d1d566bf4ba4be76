"""Strategies of a user's file, and of an installed package."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest

from clientlab.cli.catalogue import client_rows, executor_rows, strategy_rows
from clientlab.conformance.server import counting_server
from clientlab.errors import PluginError
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.results.surroundings import distributions_of
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

    class NoArguments:
        def send(self, request): ...
        def open(self): ...
        def close(self): ...
"""


@pytest.fixture
def server():
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
        ("mine.py:Blocking@threads", "mine.py:Blocking", "threads", 32),
        ("aiohttp@../a@b/mine.py:Executor?times=2", "aiohttp", "mine.py:Executor", 32),
        ("../a@b/mine.py:Awaiting@mine.py:Executor", "mine.py:Awaiting", "mine.py:Executor", 32),
    ],
)
def test_a_class_of_a_file_is_a_client_or_an_executor(name, client, executor, concurrency, mine):
    plugins.admit([name])
    found = find(name)
    check_settings(found)
    wanted = tuple(str(mine.parent / part) if ".py:" in part else part for part in (client, executor))
    assert (found.name, found.client, found.executor) == (name, *wanted)
    assert found.concurrency == concurrency


def test_a_class_says_what_a_row_of_the_lists_says(mine):
    """Kind by its `send`, the rest by attributes; what it says of itself by its docstring's first line."""
    plugins.admit([f"{mine}:{name}" for name in ("Blocking", "Awaiting", "Executor")])
    blocking, awaiting = client_spec(f"{mine}:Blocking"), client_spec(f"{mine}:Awaiting")
    assert (blocking.kind, blocking.policy, blocking.description) == ("blocking", "per thread", "Mine, and blocking.")
    assert (awaiting.kind, awaiting.policy) == ("asyncio", "pool")
    executor = executor_spec(f"{mine}:Executor")
    assert (executor.needs, executor.needs_count, executor.concurrent) == ("asyncio", True, True)


@pytest.mark.real
@pytest.mark.parametrize("name", ["mine.py:Blocking?fails=false", "mine.py:Awaiting@mine.py:Executor"])
@pytest.mark.usefixtures("mine")
def test_a_users_strategy_is_measured(name, server):
    measured = measure(name, Workload(requests=7, concurrency=2, warmup=1), server.url)
    assert measured.numbers == list(range(7))
    assert measured.samples.errors == {}
    assert len(server.seen) == 8


@pytest.mark.real
@pytest.mark.usefixtures("mine")
def test_a_users_strategy_that_raises_is_a_failed_trial(server):
    with pytest.raises(TrialFailed, match=r"RuntimeError: not today \(.*mine.py:18\)"):
        measure("mine.py:Blocking?fails=true", Workload(requests=3), server.url)


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
    path = tmp_path / "mine.py"
    path.write_text(text)
    plugins.admit([f"{path}:Client"])
    with pytest.raises(PluginError, match=where):
        find(f"{path}:Client")


POINTS = """
    [clientlab.strategies]
    their-class = their_package:Awaiting
    their-executor = their_package:Executor
    number = their_package:__name__
    missing = their_package:nothing
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed distribution with entry points, seen by this process and by those it starts. None is loaded yet."""
    (tmp_path / "their_package.py").write_text(dedent(MINE))
    info = tmp_path / "their_package-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(dedent(POINTS))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(plugins, "ADMITTED", {})
    yield
    sys.modules.pop("their_package", None)


@pytest.mark.usefixtures("package")
def test_all_that_packages_bring_is_listed_except_for_what_fails():
    plugins.admit_packages()
    assert {row["name"] for row in strategy_rows() if row["source"] == "their-package"} == {"their-class"}
    assert "their-class" in {row["name"] for row in client_rows()}
    assert "their-executor" in {row["name"] for row in executor_rows()}
    faults = "\n".join(str(found) for found in plugins.of_packages() if isinstance(found, PluginError))
    assert all(f"'{name}'" in faults for name in ("number", "missing"))
    with pytest.raises(PluginError, match="can't be loaded"):
        find("missing")


@pytest.mark.real
@pytest.mark.usefixtures("package")
def test_what_a_package_brings_is_measured(server):
    """The trial's process finds it by itself. Only the entry points that are named are loaded."""
    name = "their-class@their-executor"
    plugins.admit([name])
    check_settings(find(name))
    assert set(plugins.ADMITTED) == {"their-class", "their-executor"}
    measured = measure(name, Workload(requests=6, concurrency=2, warmup=1), server.url)
    assert measured.numbers == list(range(6))
    assert measured.samples.errors == {}
    assert distributions_of(["their-class"]) == {"their-package"}
