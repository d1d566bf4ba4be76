"""What grew in a long trial: memory, open files and latency, each per hour with an interval."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clientlab.analysis.growth import Drift
from clientlab.bounded_numbers import Count, Seconds, Signed
from clientlab.results.part import MeasuredPart

MOST_READINGS = 1000
"""Of a run document. The lab keeps up to 120 for each trial."""

SOAK_SECONDS = 60.0
"""Growth is stated of trials of this length and longer: in a shorter one, caches and allocators still settle."""

_MOST_PER_HOUR = 1e12


class Growth(MeasuredPart):
    """Growth of a level per hour: bytes, files or seconds, by the figure. Negative: it shrank."""

    per_hour: Signed
    low: Annotated[Signed, Field(description="lower end of its 95 % interval")]
    high: Annotated[Signed, Field(description="upper end of its 95 % interval")]
    level: Annotated[Signed, Field(description="median of what grew, in the same unit")]
    grows: Annotated[
        bool,
        Field(
            description="whether the interval is above 0, and the growth went on, by more than 1 % of memory or latency"
        ),
    ]

    @classmethod
    def of(cls, drift: Drift | None) -> Growth | None:
        """The growth as the run document holds it."""
        if drift is None:
            return None
        ends = {name: _bounded(getattr(drift, name)) for name in ("per_hour", "low", "high", "level")}
        return cls(**ends, grows=drift.grows)

    @property
    def sure_per_hour(self) -> float:
        """The growth that the interval bears out: its lower end; 0 where nothing grows."""
        return max(0.0, self.low) if self.grows else 0.0


class Reading(MeasuredPart):
    """Memory and open files of a trial's processes at one moment."""

    at: Annotated[Seconds, Field(description="seconds of measured time")]
    memory_bytes: Annotated[Count, Field(description="of all its processes, without pages that files back")]
    open_files: Annotated[Count | None, Field(description="file descriptors, sockets included; null: not readable")]


class Soak(MeasuredPart):
    """What grew. The first quarter of the trial does not count. None: too few readings, or not readable."""

    memory: Annotated[Growth | None, Field(description="bytes per hour")] = None
    open_files: Annotated[Growth | None, Field(description="files per hour")] = None
    latency: Annotated[Growth | None, Field(description="of the median latency, in seconds per hour")] = None
    readings: Annotated[list[Reading], Field(max_length=MOST_READINGS)]


def _bounded(value: float) -> float:
    """As a run document permits it: no number is that close to 0, or that far away."""
    nearest = 0.0 if abs(value) < 1e-30 else value
    return max(-_MOST_PER_HOUR, min(_MOST_PER_HOUR, nearest))
