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


def test_each_number_that_is_missing_is_greenwich_s() -> None:
    """An observer given in part is completed, and told."""
    assert json.loads(position("mars", {"lat": "-33.5"}))["observer"] == {"lon": -0.0005, "lat": -33.5, "elevation": 0}


def test_the_observer_matters() -> None:
    """On the other side of the Earth a planet that is up is down."""
    here, there = (json.loads(position("venus", {**NOON, "lon": lon, "lat": "0"})) for lon in ("0", "180"))
    assert here["altitude"].startswith("-") != there["altitude"].startswith("-")


def test_times_in_other_zones_are_turned_to_utc() -> None:
    """The same moment gives the same document, in whichever zone it is told."""
    assert position("mars", NOON) == position("mars", {"when": "2018-11-01T13:00:00+01:00"})


def test_an_unknown_planet_is_not_found() -> None:
    """A planet that is none is 404, and those that are one are told."""
    with pytest.raises(RefusedError, match="vulcan") as refused:
        position("vulcan", {})
    assert refused.value.status == 404
    assert "neptune" in refused.value.body().decode()


@pytest.mark.parametrize(
    ("name", "text"),
    [("lon", "nan"), ("lat", "91"), ("elevation", "inf"), ("when", "now"), ("when", "9999-12-31T23:59:59-12:00")],
)
def test_a_bad_number_is_refused(name: str, text: str) -> None:
    """What is no number within reason is 400, and named."""
    with pytest.raises(RefusedError, match=f"^{name} ") as refused:
        position("mars", {name: text})
    assert refused.value.status == 400
