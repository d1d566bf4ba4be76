"""What grew in a long trial, from its readings and from the slices of its time."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab.analysis.growth import Drift, drift_of
from clientlab.measuring.soak_readings import SoakReading
from clientlab.results.soak import SOAK_SECONDS, Growth, Reading, Soak
from clientlab.results.trial import Slice

TRIFLE = 0.01
"""Of memory and of a latency: an honest client's allocator takes some pages now and then, all in one direction."""


def soak_of(readings: Sequence[SoakReading], over_time: Sequence[Slice], wall: float) -> Soak | None:
    """The growth over a trial of so many seconds; None for one that is too short for it."""
    if wall < SOAK_SECONDS:
        return None
    return Soak(
        memory=Growth.of(memory_growth(readings)),
        open_files=Growth.of(file_growth(readings)),
        latency=Growth.of(latency_growth(over_time)),
        readings=[Reading(**vars(reading)) for reading in readings],
    )


def memory_growth(readings: Sequence[SoakReading]) -> Drift | None:
    """Bytes per hour."""
    return drift_of([one.at for one in readings], [one.memory_bytes for one in readings], TRIFLE)


def file_growth(readings: Sequence[SoakReading]) -> Drift | None:
    """Open files per hour; None where they were not readable at every moment."""
    files = [one.open_files for one in readings if one.open_files is not None]
    return drift_of([one.at for one in readings], files) if len(files) == len(readings) else None


def latency_growth(over_time: Sequence[Slice]) -> Drift | None:
    """Seconds of the median latency per hour, from the slices in which it is known."""
    known = [(one.at, one.p50) for one in over_time if one.p50 is not None]
    return drift_of([at for at, _ in known], [median for _, median in known], TRIFLE)
