"""Positions of planets for an observer, computed by the `ephem` package."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

import ephem

from mockupstream.refusals import RefusedError, as_json

_NAMES = ("Mercury", "Venus", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune", "Pluto")
_PLANETS = {name.lower(): getattr(ephem, name) for name in _NAMES}
# ephem's models hold for some millennia around now; its own dates go wrong far outside of it.
_FIRST_YEAR, _LAST_YEAR = 1, 9998

_GREENWICH = {"lon": -0.0005, "lat": 51.4769, "elevation": 0.0}
_RANGES = {"lon": (-360.0, 360.0), "lat": (-90.0, 90.0), "elevation": (-11_000.0, 100_000.0)}


def position(name: str, parameters: Mapping[str, str]) -> bytes:
    """Return the JSON of where planet `name` (any case) is for an observer. Raise RefusedError.

    `parameters` may hold `lon` and `lat` (degrees, east and north), `elevation` (metres; each defaults to that of
    Greenwich) and `when` (ISO 8601, UTC without a zone; defaults to now).
    """
    planet = _PLANETS.get(name.lower())
    if planet is None:
        raise RefusedError(404, f"no planet is called {name!r}", planets=sorted(_PLANETS))
    place = {axis: _number(parameters, axis) for axis in _GREENWICH}
    when, observer, body = _when(parameters), ephem.Observer(), planet()
    observer.lon, observer.lat = math.radians(place["lon"]), math.radians(place["lat"])
    observer.elevation = place["elevation"]
    observer.date = when.replace(tzinfo=None)
    body.compute(observer)
    return as_json(
        {
            "name": planet.__name__,
            "when": when.isoformat(),
            "observer": place,
            "right_ascension": str(body.ra),
            "declination": str(body.dec),
            "altitude": str(body.alt),
            "azimuth": str(body.az),
            "magnitude": body.mag,
        }
    )


def _number(parameters: Mapping[str, str], axis: str) -> float:
    text, (least, most) = parameters.get(axis), _RANGES[axis]
    if text is None:
        return _GREENWICH[axis]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise RefusedError(400, f"{axis} must be a number from {least:g} to {most:g}, not {text!r}")
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
