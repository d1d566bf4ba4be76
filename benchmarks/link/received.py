"""What the program `bulk` measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Received:
    """What was received in the time of the measurement.

    `bits_per_second`: of all connections. `exchange`: median seconds of a small request and its response on a
    connection beside them. `fairness`: Jain's index of the bytes of each connection, 1 if all got as much.
    """

    bits_per_second: float
    exchange: float
    fairness: float
