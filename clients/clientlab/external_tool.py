"""The report of an external program that sends all requests of a trial itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ToolReport:
    """The figures of an external program, by its own clock.

    `seconds`: from the first request to the last response. `times`: seconds of each request, ascending. `kept_alive`:
    requests whose connection was kept for the next. `errors`: error kind → count.
    """

    seconds: float
    times: Sequence[float]
    bytes_received: int
    connections: int
    kept_alive: int
    errors: Mapping[str, int]
