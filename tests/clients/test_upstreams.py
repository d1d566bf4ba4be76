"""Names of upstreams, with the settings written behind them."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.upstreams import find, special


def test_a_plain_name_leaves_all_to_the_lab():
    """It is not special, and says no number."""
    found = find("flask")
    assert (found.special, found.server, found.workers, found.threads) == (False, "gunicorn", None, None)


def test_settings_say_how_it_is_served():
    """By the words of a strategy's settings."""
    found = find("flask?workers=4&threads=8")
    assert (found.framework, found.special, found.workers, found.threads) == ("flask", True, 4, 8)
    assert find("aiohttp?server=development").development
    assert find("aiohttp?keep_alive=2").keep_alive == 2
    limited = find("aiohttp?server=development&rate=0.5&burst=3")
    assert (limited.rate, limited.burst) == (0.5, 3)
    assert special(["flask", "aiohttp?workers=1"]) == ["aiohttp?workers=1"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nginx", "upstream 'nginx' is unknown; there are flask, aiohttp"),
        ("nginx?workers=2", "'nginx.workers=2' is unknown; there are flask, aiohttp"),
        ("flask?worker=2", "has no setting 'worker'; it has server, workers, threads, worker_class"),
        ("aiohttp?threads=2", "has no setting 'threads'; it has server, workers"),
        ("flask?workers=four", "setting workers=four is to be a whole number"),
        ("flask?workers=true", "setting workers=true is to be a whole number"),
        ("flask?workers=0", "setting workers=0; write 1 to 256"),
        ("flask?threads=5000", "setting threads=5000; write 1 to 4096"),
        ("flask?server=waitress", "setting server=waitress; write gunicorn or development"),
        ("flask?worker_class=gevent", "setting worker_class=gevent; write gthread or sync"),
        ("flask?server=development&workers=2", "workers is of gunicorn, not of a development server; leave it out"),
        ("aiohttp?keep_alive=0", "setting keep_alive=0; write 1 to 86400"),
        ("aiohttp?server=development&keep_alive=2", "keep_alive is of gunicorn, not of a development server"),
        ("flask?worker_class=sync&keep_alive=2", "a worker of class sync keeps no connection; leave keep_alive out"),
        ("flask?worker_class=sync&threads=2", "a worker of class sync has one thread; leave threads out"),
        ("flask?rate=0", "setting rate=0; write 0.01 to 1000000"),
        ("flask?rate=fast", "setting rate=fast is to be a whole number or a number"),
        ("flask?burst=5", "burst goes with rate; write rate=100&burst=5, or leave it out"),
        ("flask?", "has no settings behind its '[?]'; leave it out, or write one of server, workers, threads"),
        ("flask?workers", "setting workers= is to be a whole number"),
    ],
)
def test_what_can_not_be_is_answered_with_what_there_is(name, says):
    """An unknown upstream is refused in one line that lists the known ones."""
    with pytest.raises(LabError, match=says) as raised:
        find(name)
    assert "\n" not in str(raised.value)
