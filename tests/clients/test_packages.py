"""Strategies that an installed package brings by entry points."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest

from clientlab.cli.listing import client_rows, executor_rows, strategy_rows
from clientlab.conformance.server import counting_server
from clientlab.errors import PluginError
from clientlab.results.surroundings import distributions_of
from clientlab.strategies import check_settings, find, known, plugins, resolve
from clientlab.workload.workload import Workload
from clients.measured import measure

PACKAGE = """
    from clientlab.clients.http_client import HttpClient
    from clientlab.strategies import ClientSpec, ExecutorSpec, Strategy

    class Theirs(HttpClient):
        "A class of a package."

    class Runs:
        "An executor of a package."
        concurrent = False
        def __init__(self, context): self.context = context
        def open(self): self.call = self.context.open(1)
        def run(self, numbers): self.call.send_all(numbers)
        def close(self): self.call.close()

    spec = ClientSpec("their-spec", "their_package:Theirs", "blocking", "their-package", "per thread", "a spec")
    runs = ExecutorSpec("their-serial", "clientlab.executors.threads:Serial", "blocking", "described", concurrent=False)
    pair = Strategy("their-pair", "their-class", "threads", 5)
    taken = ClientSpec("aiohttp", "their_package:Theirs", "blocking", "their-package", "pool", "")
    again = Strategy("sync", "requests", "serial")
    number = 3
"""
POINTS = """
    [clientlab.strategies]
    their-class = their_package:Theirs
    their-executor = their_package:Runs
    a = their_package:spec
    b = their_package:runs
    c = their_package:pair
    taken = their_package:taken
    again = their_package:again
    number = their_package:number
    missing = their_package:nothing
"""


@pytest.fixture
def server():
    """A server that answers at once."""
    with counting_server() as running:
        yield running


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed distribution with entry points, seen by this process and by those it starts. None is loaded yet."""
    (tmp_path / "their_package.py").write_text(dedent(PACKAGE))
    info = tmp_path / "their_package-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(dedent(POINTS))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(known.ADMITTED, "packages", None)
    yield
    sys.modules.pop("their_package", None)


@pytest.mark.usefixtures("package")
def test_what_a_package_brings_is_listed_with_it_as_the_source():
    """A class and a spec are a client each and a strategy of that name; executors and strategies are as they say."""
    plugins.installed()
    listed = {row["name"]: row for row in strategy_rows() if row["source"] == "their-package"}
    assert set(listed) == {"their-class", "their-spec", "their-pair"}
    assert (listed["their-pair"]["concurrency"], listed["their-pair"]["executor"]) == (5, "threads")
    assert listed["their-spec"]["connections"] == "per thread"
    assert {"their-class", "their-spec"} <= {row["name"] for row in client_rows()}
    assert {"their-executor", "their-serial"} <= {row["name"] for row in executor_rows()}


@pytest.mark.real
@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", ["their-pair", "their-spec@their-executor"])
def test_what_a_package_brings_is_measured(name, server):
    """The trial's process finds it by itself."""
    plugins.admit([name])
    check_settings(find(name))
    measured = measure(name, Workload(requests=6, concurrency=2, warmup=1), server.url)
    assert measured.numbers == list(range(6))
    assert measured.samples.errors == {}
    assert distributions_of(["their-class"]) == {"their-package"}


@pytest.mark.usefixtures("package")
def test_entry_points_that_bring_nothing_are_told_and_the_others_go_on():
    """Each with its name and package; asked for by name, it is the error."""
    plugins.installed()
    told = "\n".join(str(fault) for fault in resolve.faults())
    assert all(f"'{name}'" in told for name in ("aiohttp", "sync", "number", "missing"))
    with pytest.raises(PluginError, match="can't be loaded"):
        find("missing")
    assert find("their-class").source == "their-package"
