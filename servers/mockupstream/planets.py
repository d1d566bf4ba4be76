"""Positions of planets for an observer, computed by the `ephem` package."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import ephem

from mockupstream.refusals import RefusedError, as_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLANETS = {
    planet.__name__.lower(): planet
    for planet in (
        ephem.Mercury,
        ephem.Venus,
        ephem.Mars,
        ephem.Jupiter,
        ephem.Saturn,
        ephem.Uranus,
        ephem.Neptune,
        ephem.Pluto,
    )
}
# ephem's models hold for some millennia around now; its own dates go wrong far outside of it.
_FIRST_YEAR, _LAST_YEAR = 1, 9998


class _Axis(NamedTuple):
    """A number of the observer: its default (Greenwich) and the range where it means something."""

    default: float
    least: float
    most: float


_OBSERVER = {
    "lon": _Axis(-0.0005, -360.0, 360.0),
    "lat": _Axis(51.4769, -90.0, 90.0),
    # From the deepest sea to the edge of space, in metres.
    "elevation": _Axis(0.0, -11_000.0, 100_000.0),
}


def position(name: str, parameters: Mapping[str, str]) -> bytes:
    """Return the JSON of where planet `name` (any case) is.

    `parameters` may hold `lon` and `lat` (degrees, east and north), `elevation` (metres; each that is missing is that
    of Greenwich) and `when` (ISO 8601, UTC where it names no zone; now where missing). The document holds `name`,
    `when`, `observer`, `right_ascension` (h:m:s), `declination`, `altitude`, `azimuth` (d:m:s) and `magnitude`.
    RefusedError is 404 for an unknown planet and 400 for a bad number or time.
    """
    planet = _PLANETS.get(name.lower())
    if planet is None:
        raise RefusedError(404, f"no planet is called {name!r}", planets=sorted(_PLANETS))
    place = {axis: _number(parameters, axis) for axis in _OBSERVER}
    when = _when(parameters)
    return as_json(
        {"name": planet.__name__, "when": when.isoformat(), "observer": place, **_compute(planet(), place, when)}
    )


def _compute(body: ephem.Planet, place: Mapping[str, float], when: datetime) -> dict[str, object]:
    observer = ephem.Observer()
    observer.lon = math.radians(place["lon"])
    observer.lat = math.radians(place["lat"])
    observer.elevation = place["elevation"]
    observer.date = when.replace(tzinfo=None)
    body.compute(observer)
    return {
        "right_ascension": str(body.ra),
        "declination": str(body.dec),
        "altitude": str(body.alt),
        "azimuth": str(body.az),
        "magnitude": body.mag,
    }


def _number(parameters: Mapping[str, str], name: str) -> float:
    axis = _OBSERVER[name]
    text = parameters.get(name)
    if text is None:
        return axis.default
    try:
        value = float(text)
    except ValueError as error:
        raise RefusedError(400, f"{name} must be a number, not {text!r}") from error
    if not axis.least <= value <= axis.most:
        raise RefusedError(400, f"{name} must be a number from {axis.least:g} to {axis.most:g}, not {text!r}")
    return value


def _when(parameters: Mapping[str, str]) -> datetime:
    text = parameters.get("when")
    if text is None:
        return datetime.now(UTC)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise RefusedError(400, f"when must be a time like 2018-11-01T12:00:00, not {text!r}") from error
    if not _FIRST_YEAR < when.year < _LAST_YEAR:
        raise RefusedError(400, f"when must be in the years {_FIRST_YEAR + 1} to {_LAST_YEAR - 1}, not {text!r}")
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
