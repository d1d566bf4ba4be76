"""Positions of planets."""

from __future__ import annotations

import json

import pytest

from mockupstream.planets import position
from mockupstream.refusals import RefusedError

NOON = {"when": "2018-11-01T12:00:00"}


def test_mars_from_greenwich() -> None:
    """Without an observer, the position is the one seen from Greenwich (it was in Capricornus, at about 21h 38m)."""
    mars = json.loads(position("Mars", NOON))
    assert mars["observer"] == {"lon": -0.0005, "lat": 51.4769, "elevation": 0.0}
    assert mars["right_ascension"].startswith("21:38:")
    assert mars["declination"].startswith("-16:")
    assert mars["magnitude"] == pytest.approx(-0.6, abs=0.1)


def test_an_unknown_planet_is_not_found() -> None:
    with pytest.raises(RefusedError, match="vulcan") as refused:
        position("vulcan", {})
    assert refused.value.status == 404
    assert "neptune" in refused.value.body().decode()


@pytest.mark.parametrize(
    ("name", "text"),
    [("lon", "nan"), ("lat", "91"), ("elevation", "inf"), ("when", "now"), ("when", "9999-12-31T23:59:59-12:00")],
)
def test_a_bad_number_is_refused(name: str, text: str) -> None:
    with pytest.raises(RefusedError, match=f"^{name} ") as refused:
        position("mars", {name: text})
    assert refused.value.status == 400
