"""Names of upstreams, with the settings written behind them."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.upstreams import find


def test_settings_say_how_it_is_served():
    """A plain name leaves all to the lab, and is not special."""
    found = find("flask")
    assert (found.special, found.server, found.workers, found.threads) == (False, "gunicorn", None, None)
    found = find("flask?workers=4&threads=8")
    assert (found.framework, found.special, found.workers, found.threads) == ("flask", True, 4, 8)
    assert find("aiohttp?server=development").development


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("nginx", "flask, aiohttp"),
        ("flask?worker=2", "worker"),
        ("flask?workers=four", "workers=four"),
        ("flask?threads=5000", "threads=5000"),
        ("flask?worker_class=gevent", "worker_class=gevent"),
        ("flask?server=development&workers=2", "workers"),
        ("flask?", "flask"),
    ],
)
def test_what_can_not_be_is_refused(name, names):
    with pytest.raises(LabError, match=names):
        find(name)
