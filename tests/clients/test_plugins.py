"""A user's own strategies: classes and functions of a file, and classes of an installed
package.
"""

from __future__ import annotations

import sys
from textwrap import dedent
from types import SimpleNamespace

import pytest

from clientlab import plugins, strategies
from clientlab.cli import run_command_line
from clientlab.cli.catalogue import client_rows, executor_rows, strategy_rows
from clientlab.errors import PluginError
from clientlab.results.surroundings import distributions_of
from clientlab.strategies import check_settings, client_spec, executor_spec, find
from clientlab.workload.workload import make_workload
from clients.measured import measure

MINE = """
    from clientlab.clients.http_client import HttpClient
    from clientlab.clients.aiohttp_clients import AiohttpSession

    class Blocking(HttpClient):
        '''Mine, and blocking.

        In many words.'''
        policy = "per thread"

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

FUNCTIONS = """
    import httpx
    import requests

    session = requests.Session()

    def fetch(url):
        '''With one session.'''
        return session.get(url, allow_redirects=False)

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
        raise ValueError("late")
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A user's file in the working folder, whose path holds an @."""
    folder = tmp_path / "a@b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = folder / "mine.py"
    path.write_text(dedent(MINE))
    (folder / "functions.py").write_text(dedent(FUNCTIONS))
    return path


@pytest.mark.parametrize(
    ("name", "client", "executor", "concurrency"),
    [
        ("mine.py:Blocking", "mine.py:Blocking", "serial", 1),
        ("aiohttp@../a@b/mine.py:Executor?times=2", "aiohttp", "mine.py:Executor", 32),
        (
            "../a@b/mine.py:Awaiting@mine.py:Executor",
            "mine.py:Awaiting",
            "mine.py:Executor",
            32,
        ),
    ],
)
def test_a_class_of_a_file_is_a_client_or_an_executor(
    name, client, executor, concurrency, mine
):
    plugins.admit([name])
    found = find(name)
    check_settings(found)
    wanted = tuple(
        str(mine.parent / part) if ".py:" in part else part
        for part in (client, executor)
    )
    assert (found.name, found.client, found.executor) == (name, *wanted)
    assert found.concurrency == concurrency


@pytest.mark.parametrize(
    ("name", "kind", "executor", "policy", "description"),
    [
        ("mine.py:Blocking", "blocking", "serial", "per thread", "Mine, and blocking."),
        ("mine.py:Awaiting", "asyncio", "await", "pool", "One aiohttp.ClientSession."),
        ("functions.py:fetch", "blocking", "serial", "pool", "With one session."),
        (
            "functions.py:per_call",
            "blocking",
            "serial",
            "per call",
            "the function per_call",
        ),
        ("functions.py:afetch", "asyncio", "await", "pool", "the function afetch"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_a_client_describes_itself(name, kind, executor, policy, description):
    """`async` decides the kind, the docstring the description, and
    attributes the rest.
    """
    plugins.admit([name])
    strategy = find(name)
    spec = client_spec(strategy.client)
    assert spec.kind == kind
    assert strategy.executor == executor
    assert strategy.policy == policy
    assert spec.description == description


def test_an_executor_describes_itself(mine):
    plugins.admit([f"aiohttp@{mine}:Executor"])
    executor = executor_spec(f"{mine}:Executor")
    assert executor.needs == "asyncio"
    assert executor.needs_count
    assert executor.concurrent


@pytest.mark.real
@pytest.mark.parametrize(
    "name",
    [
        "mine.py:Awaiting@mine.py:Executor",
        "functions.py:fetch@threads",
        "functions.py:afetch@workers",
    ],
)
@pytest.mark.usefixtures("mine")
def test_a_users_strategy_is_measured(name, server):
    measured = measure(
        name,
        make_workload(path="/item/{k}", requests=7, concurrency=2, warmup=1),
        server.url,
    )
    assert measured.numbers == list(range(7))
    assert measured.samples.errors == {}
    assert set(measured.samples.records["status"].tolist()) == {200}
    assert set(measured.samples.records["bytes"].tolist()) == {len(b'{"ok": true}')}
    assert len(server.seen) == 8
    assert {seen.target for seen in server.seen} == {f"/item/{k}" for k in range(7)}


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("mine.py:Nobody", "Nobody"),
        ("other.py:Client", "other.py"),
        ("mine.py:NoSend", "line 33.*send"),
        ("aiohttp@mine.py:NoSend", "line 33.*run"),
        ("mine.py:StrangePolicy", "policy is 'sometimes'"),
        ("mine.py:NoArguments", "budget and opened"),
        ("mine.py:Executor", "aiohttp@mine.py:Executor"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_a_class_without_the_right_methods_is_refused(name, names):
    plugins.admit([name])
    with pytest.raises(PluginError, match=f"(?s){names}"):
        find(name)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("import os\nimport no_such_module", "(?s)line 2.*no_such_module"),
        ("x = 1\n\ndef f(:", "(?s)line 3.*SyntaxError"),
    ],
)
def test_the_error_of_a_file_names_its_line(text, where, tmp_path):
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
    """An installed distribution with entry points, for this process and those that it
    starts.

    None is loaded yet.
    """
    (tmp_path / "their_package.py").write_text(dedent(MINE))
    info = tmp_path / "their_package-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: their-package\nVersion: 2.5\n"
    )
    (info / "entry_points.txt").write_text(dedent(POINTS))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(strategies, "ADMITTED", {})
    yield
    sys.modules.pop("their_package", None)


@pytest.mark.usefixtures("package")
def test_the_lists_hold_what_packages_bring_without_errors():
    plugins.admit_packages()
    assert {
        row["name"] for row in strategy_rows() if row["source"] == "their-package"
    } == {"their-class"}
    assert "their-class" in {row["name"] for row in client_rows()}
    assert "their-executor" in {row["name"] for row in executor_rows()}
    faults = "\n".join(
        str(found)
        for found in strategies.of_packages()
        if isinstance(found, PluginError)
    )
    for name in ("number", "missing"):
        assert f"'{name}'" in faults
    with pytest.raises(PluginError, match="can't be loaded"):
        find("missing")


@pytest.mark.real
@pytest.mark.usefixtures("package")
def test_a_packages_strategy_is_measured(server):
    """The trial's process finds it too. Only the named entry points are loaded."""
    name = "their-class@their-executor"
    plugins.admit([name])
    check_settings(find(name))
    assert set(strategies.ADMITTED) == {"their-class", "their-executor"}
    measured = measure(
        name, make_workload(requests=6, concurrency=2, warmup=1), server.url
    )
    assert measured.numbers == list(range(6))
    assert measured.samples.errors == {}
    assert distributions_of(["their-class"]) == {"their-package"}


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("two", 2, "timeout"),
        ("nothing", 2, "nothing"),
        ("raises", 2, "ValueError: late"),
        ("idle", 3, "idle"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_a_function_that_does_not_do_its_work_is_refused(
    name, code, message, server, capsys
):
    """The trial of `idle` fails, because the upstream gets no request; otherwise it
    would be the fastest of all.
    """
    words = [] if name == "idle" else ["--url", server.url]
    assert (
        run_command_line(
            ["run", "-t", f"functions.py:{name}", "-n", "8", "--rounds", "1", *words]
        )
        == code
    )
    assert message in capsys.readouterr().err


def test_status_and_body_are_found_in_the_response_of_any_library():
    made = SimpleNamespace
    responses = (
        (200, b"body"),
        made(status_code=200, content=b"body"),
        made(status=200, data=b"body"),
        made(status=200, content=object(), data=memoryview(b"body")),
    )
    for returned in responses:
        assert plugins.status_and_body(returned) == (200, b"body")
    for returned in (
        None,
        200,
        (200, "body"),
        ("200", b""),
        made(status=200, content=1),
    ):
        with pytest.raises(PluginError):
            plugins.status_and_body(returned)


def test_a_function_refuses_a_workload_that_needs_more_than_a_url():
    refused = [
        {"method": "POST"},
        {"headers": {"A": "b"}},
        {"payload_size": 5},
        {"timeout": 5.0},
        {"read": "chunks"},
    ]
    refused.append({"first_byte": True})
    for fields in refused:
        assert plugins.FunctionClient.refuses(make_workload(**fields))[0] in fields
    assert (
        plugins.FunctionClient.refuses(
            make_workload(path="/{k}", duration=2.0, concurrency=3)
        )
        is None
    )
