"""Bodies: seeded bytes, todo documents, the pieces of a slow drip, and the positions of
planets.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

import ephem

from mockupstream.refusals import RefusedError, as_json

BLOCK = 1 << 16
_SHORTEST_PAUSE = 0.001  # pieces that follow faster would arrive together
_WORDS = (
    "ad",
    "aut",
    "delectus",
    "dolor",
    "et",
    "fugiat",
    "illo",
    "ipsum",
    "nisi",
    "quis",
    "rerum",
    "ut",
    "vero",
)
_PLANETS = {
    name.lower(): getattr(ephem, name)
    for name in (
        "Mercury",
        "Venus",
        "Mars",
        "Jupiter",
        "Saturn",
        "Uranus",
        "Neptune",
        "Pluto",
    )
}
# ephem's models hold for some millennia around now. Its own dates are wrong far outside
# of this range.
_FIRST_YEAR, _LAST_YEAR = 1, 9998
_GREENWICH = {"lon": -0.0005, "lat": 51.4769, "elevation": 0.0}
_RANGES = {
    "lon": (-360.0, 360.0),
    "lat": (-90.0, 90.0),
    "elevation": (-11_000.0, 100_000.0),
}


class Piece(NamedTuple):
    """A part of a body, sent `pause` seconds after the one before it.

    `data` may be a function of the planned moment (monotonic seconds), which is called
    when the part is sent. `ends`: the end of the body is sent in the same write, if the
    server can.
    """

    pause: float
    data: bytes | Callable[[float], bytes]
    ends: bool = False

    def write(self, due: float) -> bytes:
        """Return the bytes to send now."""
        return self.data if isinstance(self.data, bytes) else self.data(due)


def seeded(size: int, seed: int | None) -> bytes:
    """Return `size` bytes (at most 64 KiB), which are always the first ones of the
    seed's block.
    """
    return _block(seed or 0)[:size]


def chunks(size: int, chunk: int, seed: int | None) -> Iterator[Piece]:
    """Yield `size` bytes in pieces of `chunk` bytes (at most 64 KiB); the last one may
    be shorter.

    They repeat the same block, so that a large body needs little memory.
    """
    block = _block(seed or 0)
    for start in range(0, size, chunk):
        yield Piece(0.0, block[: min(chunk, size - start)])


def drip(size: int, duration: float) -> Iterator[Piece]:
    """Yield `size` bytes `*` evenly over `duration` seconds as httpbin does, the first
    of them at once.
    """
    pieces = max(1, min(size, int(duration / _SHORTEST_PAUSE)))
    for number in range(pieces):
        start, end = size * number // pieces, size * (number + 1) // pieces
        yield Piece(duration / pieces if number else 0.0, b"*" * (end - start))


def spread(body: bytes, duration: float) -> Iterator[Piece]:
    """Yield the headers at once and the body evenly over `duration` seconds; the last
    byte ends it.
    """
    yield Piece(0.0, b"")
    count = max(1, min(len(body), int(duration / _SHORTEST_PAUSE)))
    for number in range(count):
        start, end = len(body) * number // count, len(body) * (number + 1) // count
        yield Piece(duration / count, body[start:end])


@lru_cache(maxsize=4096)
def todo(number: int) -> bytes:
    """Return the JSON of todo `number`: userId (ten todos each), id, title and
    completed.

    It is always the same.
    """
    source = random.Random(number)  # noqa: S311
    title = " ".join(source.choices(_WORDS, k=source.randint(3, 7)))
    completed = source.random() < 0.5
    return as_json(
        {
            "userId": (number - 1) // 10 + 1,
            "id": number,
            "title": title,
            "completed": completed,
        }
    )


@lru_cache(maxsize=16)
def _block(seed: int) -> bytes:
    return random.Random(seed).randbytes(BLOCK)  # noqa: S311


def planet_position(name: str, parameters: Mapping[str, str]) -> bytes:
    """Return the JSON of where planet `name` (any case) is for an observer.

    Raise RefusedError.

    `parameters` may hold `lon` and `lat` (degrees, east and north), `elevation`
    (metres; each defaults to that of Greenwich) and `when` (ISO 8601, UTC without a
    zone; defaults to now).
    """
    planet = _PLANETS.get(name.lower())
    if planet is None:
        raise RefusedError(
            404, f"no planet is called {name!r}", planets=sorted(_PLANETS)
        )
    place = {axis: _parse_coordinate(parameters, axis) for axis in _GREENWICH}
    when, observer, body = (
        _parse_moment(parameters.get("when")),
        ephem.Observer(),
        planet(),
    )
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


def _parse_coordinate(parameters: Mapping[str, str], axis: str) -> float:
    text, (least, most) = parameters.get(axis), _RANGES[axis]
    if text is None:
        return _GREENWICH[axis]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise RefusedError(
            400, f"{axis} must be a number from {least:g} to {most:g}, not {text!r}"
        )
    return value


def _parse_moment(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise RefusedError(
            400, f"when must be a time like 2018-11-01T12:00:00, not {text!r}"
        ) from error
    if not _FIRST_YEAR < when.year < _LAST_YEAR:
        raise RefusedError(
            400,
            f"when must be in the years {_FIRST_YEAR + 1} to {_LAST_YEAR - 1}, not"
            f" {text!r}",
        )
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
