"""The lists, how a strategy is found by its name, and which settings and workloads it
takes.
"""

from __future__ import annotations

import importlib
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clientlab import clients, executors
from clientlab.cli.catalogue import strategy_rows
from clientlab.errors import LabError
from clientlab.experiments.file import articles
from clientlab.strategies import (
    CLIENTS,
    EXECUTORS,
    STRATEGIES,
    ClientSpec,
    ExecutorSpec,
    check_capabilities,
    check_settings,
    find,
    unavailable,
)
from clientlab.text import first_paragraph
from clientlab.workload.workload import make_workload


@pytest.mark.parametrize(
    ("package", "spec_class", "listed"),
    [(clients, ClientSpec, CLIENTS), (executors, ExecutorSpec, EXECUTORS)],
)
def test_the_entries_in_the_source_are_those_of_the_decorators_that_run(
    package, spec_class, listed, monkeypatch
):
    """The regular expression misses no decorator, and finds its class and what the
    class's docstring begins with.
    """
    called = {}

    def note(spec, cls):
        place = f"{package.__name__}.{file.stem}:{cls.__name__}"
        description = first_paragraph(cls.__doc__).removesuffix(".")
        called[spec.name] = replace(spec, import_path=place, description=description)
        return cls

    files = sorted(Path(package.__file__).parent.glob("*.py"))
    for file in files:  # a module may import another one
        importlib.import_module(f"{package.__name__}.{file.stem}")
    monkeypatch.setattr(spec_class, "__call__", note)
    for file in files:
        runpy.run_path(str(file))
    assert called == listed


@pytest.mark.real
def test_the_lists_import_no_library():
    code = "import sys; from clientlab import strategies; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {
        "aiohttp",
        "asyncio",
        "gevent",
        "httpx",
        "pycurl",
        "requests",
        "ssl",
        "urllib3",
    } & set(modules)


def test_every_listed_pair_fits_and_its_settings_exist():
    for strategy in STRATEGIES.values():
        assert EXECUTORS[strategy.executor].runs(CLIENTS[strategy.client]), (
            strategy.name
        )
        if not CLIENTS[strategy.client].program or not unavailable(strategy):
            check_settings(strategy)
        if strategy.source == "trap":
            assert strategy.wrong
            assert STRATEGIES[strategy.mended_by].source != "trap"


def test_settings_have_the_type_that_their_text_suggests():
    """Given settings override those of the strategy.

    The name stays as it was written.
    """
    assert "urllib3@processes" not in STRATEGIES
    assert find("urllib3@processes?pool=7").executor == "processes"
    found = find("aiohttp@workers?pool=7&loop=uvloop&a=0.5&b=true&c=none")
    assert found.name == "aiohttp@workers?pool=7&loop=uvloop&a=0.5&b=true&c=none"
    assert found.settings == {
        "pool": 7,
        "loop": "uvloop",
        "a": 0.5,
        "b": True,
        "c": None,
    }
    assert found.client == "aiohttp"
    assert found.executor == "workers"
    assert find("trap-small-pool?pool=9").settings == {"pool": 9}


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("aiohttp@workers?limit=3", "limit_per_host"),
        ("requests?library_defaults=true", "library_defaults"),
        ("requests-session?pool=0", "pool=0"),
        ("requests-session?pool=none", "pool=none"),
        ("aiohttp?pool=true", "pool=true"),
        ("requests@threads?max_workers=0", "max_workers=0"),
        ("aiohttp@workers?loop=trio", "loop=trio"),
    ],
)
def test_an_unknown_setting_is_refused(name, names):
    with pytest.raises(LabError, match=rf"strategy '{re.escape(name)}'.*{names}"):
        check_settings(find(name))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("sync_thread", "sync_threads"),
        ("aiohttp@worker", "aiohttp@workers"),
        ("aiohttp@asyncio", "write aiohttp@workers"),
        ("httpx@async", "write httpx-async@workers"),
        ("nothing@threads", "nothing@threads"),
        (
            "geventhttpclient@threads",
            ": geventhttpclient goes with serial, gevent only",
        ),
        ("aiohttp@trio", "httpx-async"),
        ("mine.py", "mine.py:fetch"),
        ("mine:fetch", "mine.py:fetch"),
        ("mine.py:fetch", "add -t"),
    ],
)
def test_the_error_for_an_unknown_strategy_names_alternatives(name, names):
    """The nearest names, the executors that fit, or how to write it."""
    with pytest.raises(LabError, match=names):
        find(name)


@pytest.mark.parametrize(
    ("name", "asked", "in_flight"),
    [
        ("requests", 50, 1),
        ("sync_threads", None, 100),
        ("sync_threads", 7, 7),
        ("trap-gather-everything", 7, 1000),
        ("aiohttp@gather?pool=none", 7, 1000),
        ("aiohttp@workers?pool=none", 7, 7),
        ("sync_multiprocess?processes=100", 7, 100),
    ],
)
def test_requests_in_flight(name, asked, in_flight):
    """A serial executor has one, an unbounded one all 1,000 requests.

    The executor's size overrides the concurrency.
    """
    assert find(name).in_flight(asked, 1000) == in_flight


def test_the_articles_of_a_strategy_are_those_of_the_bundled_experiments():
    """An article's arms may have settings. Control arms do not count."""
    assert (
        "requests-session@sync_to_async" not in articles()
    )  # a control arm of six-strategies
    sources = {row["name"]: row["source"] for row in strategy_rows()}
    assert sources["requests"] == "keepalive, semaphore, sessions"
    assert (
        sources["pycurl@threads"] == "ecosystem"
    )  # of the demo, which reproduces no article


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("niquests", "niquests", "niquests"),
        ("httpx-client-h2", "h2", "all"),
        ("requests-session@futures", "requests_futures", "all"),
        ("aiohttp-uvloop@workers", "uvloop", "all"),
    ],
)
def test_a_strategy_whose_library_is_missing_is_unavailable(
    name, module, extra, monkeypatch
):
    assert unavailable(find(name)) is None
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(LabError, match=re.escape(f"clientlab[{extra}]")):
        check_settings(find(name))
    check_settings(find("http.client"))


@pytest.mark.parametrize(
    ("number", "is_merged"), [("2.25.904", True), ("2.99.899", False)]
)
def test_requests_is_unavailable_if_urllib3_is_another_library(
    number, is_merged, tmp_path, monkeypatch
):
    """The urllib3-future of niquests overwrites urllib3, with versions from .900 on."""
    (tmp_path / "urllib3").mkdir()
    (tmp_path / "urllib3" / "__init__.py").touch()
    Path(tmp_path / "urllib3" / "_version.py").write_text(
        f"__version__ = version = '{number}'\n"
    )
    monkeypatch.delitem(sys.modules, "urllib3", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("requests", "urllib3@threads"):
        assert ("urllib3-future" in (unavailable(find(name)) or "")) == is_merged
    assert unavailable(find("niquests")) is None


@pytest.mark.parametrize(
    ("strategy", "changes", "field"),
    [
        ("httplib2@threads", {"read": "chunks"}, "read"),
        ("pycurl@multi", {"read": "chunks"}, "read"),
        ("geventhttpclient", {"upload_size": 5, "upload": "stream"}, "upload"),
        ("urllib3", {"elapsed": True}, "elapsed"),
        ("httplib2", {"first_byte": True}, "first_byte"),
    ],
)
def test_a_workload_that_the_client_cannot_do_is_refused(strategy, changes, field):
    with pytest.raises(LabError, match=f"^{field}: .*'{strategy}'"):
        check_capabilities(find(strategy), make_workload(**changes))
