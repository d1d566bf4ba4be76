"""The lists, and how a strategy is found by name."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from clientlab.cli.catalogue import strategy_rows
from clientlab.errors import LabError
from clientlab.experiments.file import articles
from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES, check_settings, find, unavailable


def test_every_listed_pair_fits_and_its_settings_exist():
    """No listed strategy pairs a client with an executor of the other kind, or has a setting that nobody takes."""
    for strategy in STRATEGIES.values():
        assert EXECUTORS[strategy.executor].runs(CLIENTS[strategy.client]), strategy.name
        if not CLIENTS[strategy.client].program or not unavailable(strategy):
            check_settings(strategy)


def test_every_trap_says_what_is_wrong_and_what_fixes_it():
    traps = [strategy for strategy in STRATEGIES.values() if strategy.source == "trap"]
    assert len(traps) >= 6
    for trap in traps:
        assert trap.wrong
        assert STRATEGIES[trap.mended_by].source != "trap"


def test_settings_have_the_type_that_their_text_suggests():
    """Settings given win over those of the strategy; the name stays as it was written."""
    found = find("aiohttp@workers?pool=7&loop=uvloop&a=0.5&b=true&c=none")
    assert found.name == "aiohttp@workers?pool=7&loop=uvloop&a=0.5&b=true&c=none"
    assert found.settings == {"pool": 7, "loop": "uvloop", "a": 0.5, "b": True, "c": None}
    assert (found.client, found.executor) == ("aiohttp", "workers")
    assert find("trap-small-pool?pool=9").settings == {"pool": 9}


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("aiohttp@workers?limit=3", "limit_per_host"),
        ("requests?library_defaults=true", "library_defaults"),
        ("requests-session?pool=many", "pool=many"),
        ("requests-session?pool=0", "pool=0"),
        ("requests-session?pool=none", "pool=none"),
        ("aiohttp?pool=true", "pool=true"),
        ("requests@threads?max_workers=0", "max_workers=0"),
        ("aiohttp@workers?loop=trio", "loop=trio"),
        ("requests@processes?start_method=3", "start_method=3"),
    ],
)
def test_an_unknown_setting_is_refused(name, names):
    with pytest.raises(LabError, match=rf"strategy '{re.escape(name)}'.*{names}"):
        check_settings(find(name))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("sync_thread", "sync_threads"),
        ("aiohttp@threads", "await"),
        ("aiohttp@worker", "aiohttp@workers"),
        ("nothing@threads", "nothing@threads"),
        ("geventhttpclient@threads", "serial, gevent"),
        ("aiohttp@trio", "httpx-async"),
        ("mine.py", "mine.py:fetch"),
        ("mine:fetch", "mine.py:fetch"),
        ("mine.py:fetch", "add -t"),
    ],
)
def test_an_unknown_strategy_is_answered_with_what_there_is(name, names):
    """The nearest names, the executors that fit, or how to write it."""
    with pytest.raises(LabError, match=names):
        find(name)


def test_any_fitting_pair_can_be_named():
    assert "urllib3@processes" not in STRATEGIES
    assert find("urllib3@processes").executor == "processes"


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
    """Serial executors have one, unbounded ones all of 1,000 requests; the executor's size wins over what is asked."""
    assert find(name).in_flight(asked, 1000) == in_flight


def test_the_articles_of_a_strategy_are_those_of_the_bundled_experiments():
    """Those with a published source, in whose arms it stands with or without settings; control arms do not count."""
    found = articles()
    assert set().union(*found.values()) == {
        "six-strategies", "sessions", "semaphore", "keepalive", "frameworks", "httpx2", "pythons",
    }  # fmt: skip
    assert found["requests"] == ["keepalive", "semaphore", "sessions"]
    assert found["sync_threads"] == ["six-strategies"]
    assert "requests-session@sync_to_async" not in found  # a control arm of six-strategies
    assert "pycurl@threads" not in found  # of the demo, which reproduces no article
    sources = {row["name"]: row["source"] for row in strategy_rows()}
    assert sources["requests"] == "keepalive, semaphore, sessions"
    assert sources["pycurl@threads"] == "ecosystem"
    assert sources["trap-small-pool"] == "trap"


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("niquests", "niquests", "niquests"),
        ("httpx-client-h2", "h2", "all"),
        ("pyqwest@threads", "pyqwest", "more"),
        ("requests-session@futures", "requests_futures", "all"),
        ("aiohttp-uvloop@workers", "uvloop", "all"),
    ],
)
def test_a_strategy_whose_library_is_missing_is_unavailable(name, module, extra, monkeypatch):
    assert unavailable(find(name)) is None
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(LabError, match=re.escape(f"clientlab[{extra}]")):
        check_settings(find(name))
    check_settings(find("http.client"))


@pytest.mark.parametrize(("number", "is_merged"), [("2.25.904", True), ("2.99.899", False)])
def test_requests_is_not_measured_on_a_urllib3_that_is_another_library(number, is_merged, tmp_path, monkeypatch):
    """Niquests' urllib3-future overwrites urllib3, with versions from .900 on."""
    (tmp_path / "urllib3").mkdir()
    (tmp_path / "urllib3" / "__init__.py").touch()
    Path(tmp_path / "urllib3" / "_version.py").write_text(f"__version__ = version = '{number}'\n")
    monkeypatch.delitem(sys.modules, "urllib3", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("requests", "urllib3@threads"):
        assert ("urllib3-future" in (unavailable(find(name)) or "")) == is_merged
    assert unavailable(find("niquests")) is None
