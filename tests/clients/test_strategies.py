"""The lists, and how a strategy is found by name."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from clientlab.cli.listing import strategy_rows
from clientlab.errors import LabError
from clientlab.experiments.file import articles
from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES, check_settings, find, unavailable


def test_every_pair_fits_and_every_setting_exists():
    """No listed strategy pairs a client with an executor of the other kind, or has a setting that nobody takes."""
    for client in CLIENTS.values():
        assert {EXECUTORS[name].needs for name in (*client.executors, *client.on_uvloop)} <= {client.kind}, client.name
    for strategy in STRATEGIES.values():
        assert CLIENTS[strategy.client].kind == EXECUTORS[strategy.executor].needs, strategy.name
        if not CLIENTS[strategy.client].program or not unavailable(strategy):
            check_settings(strategy)


def test_every_trap_says_what_is_wrong_and_what_mends_it():
    """The strategy that mends it is a listed one, and no trap itself."""
    traps = [strategy for strategy in STRATEGIES.values() if strategy.source == "trap"]
    assert len(traps) >= 6
    for trap in traps:
        assert trap.wrong
        assert STRATEGIES[trap.mended_by].source != "trap"


def test_settings_are_read_as_what_they_look_like():
    """Whole numbers, numbers, words, truth and none; the name stays as it was written."""
    found = find("aiohttp@workers?pool=7&loop=uvloop&a=0.5&b=true&c=none")
    assert found.name == "aiohttp@workers?pool=7&loop=uvloop&a=0.5&b=true&c=none"
    assert found.settings == {"pool": 7, "loop": "uvloop", "a": 0.5, "b": True, "c": None}
    assert (found.client, found.executor) == ("aiohttp", "workers")


def test_settings_given_win_over_the_strategys_own():
    """A trap's pool can be widened."""
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
        ("httpx2-async?trust=system", "trust=system"),
        ("requests@processes?start_method=3", "start_method=3"),
    ],
)
def test_a_setting_that_there_is_not_is_refused(name, names):
    """With the strategy, and the setting or those that there are."""
    with pytest.raises(LabError, match=rf"strategy '{re.escape(name)}'.*{names}"):
        check_settings(find(name))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("sync_thread", "sync_threads"),
        ("aiohttp@threads", "await"),
        ("nothing@threads", "nothing@threads"),
        ("geventhttpclient@threads", "serial, gevent"),
        ("aiohttp@trio", "httpx-async"),
        ("urllib3@multi", "pycurl"),
    ],
)
def test_an_unknown_strategy_is_answered_with_what_there_is(name, names):
    """The nearest names, or the executors that fit."""
    with pytest.raises(LabError, match=names):
        find(name)


def test_any_fitting_pair_can_be_asked_for():
    """Any client and executor that fit together can be named as a strategy, listed or not."""
    assert "urllib3@processes" not in STRATEGIES
    assert find("urllib3@processes").executor == "processes"


def test_in_flight_is_what_is_asked_one_or_all():
    """By the executor: serial ones have one, unbounded ones all requests."""
    assert find("requests").in_flight(50, 100) == 1
    assert find("sync_threads").in_flight(None, 100) == 100
    assert find("sync_threads").in_flight(7, 100) == 7
    assert find("trap-gather-everything").in_flight(7, 100) == 100
    assert find("aiohttp@gather?pool=none").in_flight(7, 100) == 100
    assert find("aiohttp@workers?pool=none").in_flight(7, 100) == 7


def test_a_size_of_its_own_wins_over_what_is_asked_of_all():
    """The articles' pools: 100 processes, two workers."""
    assert find("sync_multiprocess?processes=100").in_flight(7, 1000) == 100
    assert find("requests-session@futures?max_workers=2").in_flight(None, 10) == 2


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


def test_the_list_names_the_articles_of_a_strategy():
    """The list of strategies names the articles that use a strategy, or else its category."""
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
    """It says what to install, and the others are not concerned."""
    assert unavailable(find(name)) is None
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(LabError, match=re.escape(f"clientlab[{extra}]")):
        check_settings(find(name))
    check_settings(find("http.client"))


def urllib3_of_version(number: str, folder: Path, monkeypatch) -> None:
    """Put a package urllib3 of that version before the one that is installed."""
    (folder / "urllib3").mkdir()
    (folder / "urllib3" / "__init__.py").touch()
    (folder / "urllib3" / "_version.py").write_text(f"__version__ = version = '{number}'\n")
    monkeypatch.delitem(sys.modules, "urllib3", raising=False)
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.parametrize("name", ["requests", "urllib3@threads"])
def test_requests_is_not_measured_on_a_urllib3_that_is_another_library(name, tmp_path, monkeypatch):
    """Niquests' urllib3-future overwrites urllib3: refused with what to do about it."""
    urllib3_of_version("2.25.904", tmp_path, monkeypatch)
    with pytest.raises(LabError, match="urllib3-future"):
        check_settings(find(name))
    check_settings(find("niquests"))


def test_urllib3s_own_versions_are_told_from_the_others(tmp_path, monkeypatch):
    """Below .900 it is urllib3 itself."""
    assert unavailable(find("requests")) is None
    urllib3_of_version("2.99.899", tmp_path, monkeypatch)
    assert unavailable(find("requests")) is None
