"""The lists, and how a strategy is found by name."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES, check_settings, find


def test_every_pair_fits_and_every_setting_exists():
    """No listed strategy pairs a client with an executor of the other kind, or has a setting that nobody takes."""
    for strategy in STRATEGIES.values():
        assert CLIENTS[strategy.client].kind == EXECUTORS[strategy.executor].needs, strategy.name
        check_settings(strategy)


def test_every_trap_says_what_is_wrong_and_what_mends_it():
    """The strategy that mends it is a listed one, and no trap itself."""
    traps = [strategy for strategy in STRATEGIES.values() if strategy.source == "trap"]
    assert len(traps) >= 6
    for trap in traps:
        assert trap.wrong
        assert STRATEGIES[trap.mended_by].source != "trap"


def test_settings_are_read_as_what_they_look_like():
    """Whole numbers, numbers, words and truth; the name stays as it was written."""
    found = find("aiohttp@workers?pool=7&loop=uvloop&a=0.5&b=true")
    assert found.name == "aiohttp@workers?pool=7&loop=uvloop&a=0.5&b=true"
    assert found.settings == {"pool": 7, "loop": "uvloop", "a": 0.5, "b": True}
    assert (found.client, found.executor) == ("aiohttp", "workers")


def test_settings_given_win_over_the_strategys_own():
    """A trap's pool can be widened."""
    assert find("trap-small-pool?pool=9").settings == {"pool": 9}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("aiohttp@workers?limit=3", "has no setting 'limit'; it has loop, pool"),
        ("pycurl?pool=3", "has no setting 'pool'; it has none"),
        ("requests-session?pool=many", "setting pool=many is to be of type int"),
        ("requests-session?pool=0", "setting pool=0; write 1 or more"),
        ("requests@processes?start_method=3", "setting start_method=3 is to be of type str"),
    ],
)
def test_a_setting_that_there_is_not_is_answered_with_those_there_are(name, says):
    """In one line that names the strategy."""
    with pytest.raises(LabError, match=f"strategy '.*': ?.*{says}|strategy '.*' {says}"):
        check_settings(find(name))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sync_thread", "'sync_thread' is unknown; nearest: sync_threads"),
        ("aiohttp@threads", "aiohttp is a client of kind asyncio and threads runs blocking ones; it goes with await"),
        ("nothing@threads", "'nothing@threads' is unknown"),
    ],
)
def test_an_unknown_strategy_is_answered_with_what_there_is(name, says):
    """The nearest names, or the executors that fit."""
    with pytest.raises(LabError, match=says):
        find(name)


def test_any_fitting_pair_can_be_asked_for():
    """Listed or not."""
    assert "urllib3@processes" not in STRATEGIES
    assert find("urllib3@processes").executor == "processes"


def test_in_flight_is_what_is_asked_one_or_all():
    """By the executor: serial ones have one, unbounded ones all requests."""
    assert find("requests").in_flight(50, 100) == 1
    assert find("sync_threads").in_flight(None, 100) == 100
    assert find("sync_threads").in_flight(7, 100) == 7
    assert find("trap-gather-everything").in_flight(7, 100) == 100
