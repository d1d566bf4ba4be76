"""Arrivals of the open model: the planned start of each request, whatever happened to the requests before it.

    RATE      requests per second (``500``, ``500/s``) or per minute (``30/m``)
    STAGES    TIME:RATE,TIME:RATE: from each time on, requests arrive at that rate; the first time is 0s

The planned start of request k is a function of (seed, k); each round has a seed of its own. Every process of a trial
computes it, and so does the analysis. Uniform arrivals are evenly spaced. Poisson arrivals have independent,
exponentially distributed gaps. With several stages, arrivals of rate 1 are mapped through the inverse of the cumulative
rate (Çinlar 1975, Introduction to Stochastic Processes, 4.7).
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from clientlab.workload.delays import seconds, share
from clientlab.workload.written import Written

Spacing = Literal["uniform", "poisson"]

RATE_FORMS = "500/s, 500 or 30/m"
STAGE_FORMS = "'0s:100/s,30s:1000/s'"
_RATE = re.compile(r"(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(/s|/m|)", re.ASCII)
_STREAM = 2
"""Delays are drawn from stream 0, recorded requests from stream 1: gaps are independent of both."""

_ROUNDING = 1e-9
LEAST_RATE, MOST_RATE = 1e-6, 1e9
"""Requests per second."""


@dataclass(frozen=True)
class Stages(Written):
    """From each time on (seconds; the first is 0), requests arrive at a rate (per second)."""

    steps: tuple[tuple[float, float], ...]

    @classmethod
    def parse(cls, text: str) -> Stages:
        """Return the stages of a text. Raises ValueError."""
        found = []
        for part in text.split(","):
            time, colon, rate = part.partition(":")
            if not colon:
                raise ValueError(f"{part.strip()!r} is not a stage; write {STAGE_FORMS}")
            found.append((seconds(time), rate_of(rate)))
        if found[0][0] or any(later <= earlier for (earlier, _), (later, _) in pairwise(found)):
            raise ValueError(f"the first stage begins at 0s, and each after the one before it; write {STAGE_FORMS}")
        return cls(tuple(found))

    def __str__(self) -> str:
        return ",".join(f"{_plain(begins)}s:{_plain(rate)}/s" for begins, rate in self.steps)


def _plain(value: float) -> str:
    """Return a number without an exponent, and with as many decimals as a rate may have."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


class Arrivals:
    """The planned starts of `count` requests. `length`: seconds of the whole schedule.

    A schedule ends after its duration, or else when the request after its last one would begin.
    """

    def __init__(self, stages: Stages, spacing: Spacing, seed: int, count: int | None, length: float | None) -> None:
        self._begins = [begins for begins, _ in stages.steps]
        self._rates = [rate for _, rate in stages.steps]
        self._reached = [0.0]  # arrivals that are expected before each stage
        for (begins, rate), (following, _) in pairwise(stages.steps):
            self._reached.append(self._reached[-1] + (following - begins) * rate)
        most = math.inf if length is None else self._expected(length)
        self._places = _poisson_places(seed, count, most) if spacing == "poisson" else None
        if count is not None:
            self.count = count
        else:
            self.count = math.ceil(most - _ROUNDING) if self._places is None else len(self._places) - 1
        self.length = self.start_of(self.count) if length is None else length

    def start_of(self, number: int) -> float:
        """Return the planned start of a request, in seconds since the schedule began."""
        return self._time_of(float(number) if self._places is None else self._places[number])

    def due(self, moment: float) -> int:
        """Return how many requests are planned up to a moment, in seconds since the schedule began."""
        if moment < 0:
            return 0
        expected = self._expected(moment)
        reached = math.floor(expected + _ROUNDING) + 1 if self._places is None else bisect_right(self._places, expected)
        return min(self.count, reached)

    @property
    def longest_gap(self) -> float:
        """Seconds of the longest pause between two planned starts, or before the first."""
        if self._places is None:
            return 1 / min(self._rates)
        starts = [0.0, *map(self._time_of, self._places)]
        return max(later - earlier for earlier, later in pairwise(starts))

    def _time_of(self, place: float) -> float:
        """Return when a place among arrivals of rate 1 is reached: the inverse of `_expected`."""
        if len(self._rates) == 1:
            return place / self._rates[0]
        at = bisect_right(self._reached, place) - 1
        return self._begins[at] + (place - self._reached[at]) / self._rates[at]

    def _expected(self, moment: float) -> float:
        """Return the number of arrivals that are expected until a moment."""
        at = bisect_right(self._begins, moment) - 1
        return self._reached[at] + (moment - self._begins[at]) * self._rates[at]


class EveryNth(Arrivals):
    """Every n-th request of a schedule from one on, as a shard of the trial sends them. Its `length` is the whole's."""

    def __init__(self, whole: Arrivals, first: int, step: int) -> None:
        self._whole, self._first, self._step = whole, first, step
        self.count = len(range(first, whole.count, step))
        self.length = whole.length

    def start_of(self, number: int) -> float:
        return self._whole.start_of(self._first + number * self._step)

    def due(self, moment: float) -> int:
        return len(range(self._first, self._whole.due(moment), self._step))

    @property
    def longest_gap(self) -> float:
        return self._step * self._whole.longest_gap


@lru_cache(maxsize=4)
def planned(  # noqa: PLR0913, PLR0917 - the fields of a workload that decide it
    rate: float | None, stages: Stages | None, spacing: Spacing, seed: int, count: int | None, length: float | None
) -> Arrivals:
    """Return the arrivals at a rate or in stages. Cached: those of a Poisson process are computed one by one."""
    return Arrivals(stages or Stages(((0.0, rate or 0.0),)), spacing, seed, count, length)


def rate_of(text: str) -> float:
    """Parse a rate to requests per second. Raises ValueError."""
    found = _RATE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a rate; write {RATE_FORMS}")
    value = float(found[1]) / (60 if found[2] == "/m" else 1)
    if not LEAST_RATE <= value <= MOST_RATE:
        raise ValueError(f"{value:g} requests per second; write {LEAST_RATE:g} to {MOST_RATE:g}")
    return value


def _poisson_places(seed: int, count: int | None, most: float) -> array[float]:
    """Return the arrivals of a Poisson process of rate 1: `count`, or those before `most`, and the one after them."""
    places: array[float] = array("d")
    place, number, last = 0.0, 0, math.inf if count is None else count
    while place < most and number <= last:
        place -= math.log(share(seed, number, _STREAM))
        places.append(place)
        number += 1
    return places
