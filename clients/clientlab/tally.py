"""What a program found that sends all requests of a trial by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tally:
    """Its figures, by its own clock.

    `seconds`: from its first request to the last answer. `times`: of each request, in rising order. `kept_alive`:
    requests whose connection was kept for another. `errors`: kind → how many.
    """

    seconds: float
    times: Sequence[float]
    bytes_received: int
    connections: int
    kept_alive: int
    errors: Mapping[str, int]
