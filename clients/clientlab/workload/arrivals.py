"""Arrivals of the open model: the planned start of each request, whatever became of the requests before it.

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
class Stage:
    """From `begins` (seconds) on, requests arrive at `rate` (per second)."""

    begins: float
    rate: float


@dataclass(frozen=True)
class Stages(Written):
    """Stages in the order of their times, the first of which is 0."""

    steps: tuple[Stage, ...]

    @classmethod
    def parse(cls, text: str) -> Stages:
        """The stages of a text. Raises ValueError."""
        found = []
        for part in text.split(","):
            time, colon, rate = part.partition(":")
            if not colon:
                raise ValueError(f"{part.strip()!r} is not a stage; write {STAGE_FORMS}")
            found.append(Stage(seconds(time), rate_of(rate)))
        if found[0].begins:
            raise ValueError(f"the first stage begins at {found[0].begins:g} s; write {STAGE_FORMS}, from 0s on")
        if any(later.begins <= earlier.begins for earlier, later in pairwise(found)):
            raise ValueError("each stage begins after the one before it; write them in the order of their times")
        return cls(tuple(found))

    def __str__(self) -> str:
        return ",".join(f"{_plain(step.begins)}s:{_plain(step.rate)}/s" for step in self.steps)

    @property
    def last_begins(self) -> float:
        """Seconds from the begin of the schedule to that of the last stage."""
        return self.steps[-1].begins


def _plain(value: float) -> str:
    """Without an exponent, and with as many decimals as a rate may have."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


class Arrivals:
    """The planned starts of `count` requests. `length`: seconds of the whole schedule, to its end.

    A schedule ends after its duration, or else when the request behind its last one would begin.
    """

    def __init__(
        self, stages: tuple[Stage, ...], spacing: Spacing, seed: int, count: int | None, length: float | None
    ) -> None:
        self._stages = stages
        self._begins = [stage.begins for stage in stages]
        self._reached = [0.0]  # arrivals that are expected before each stage
        for stage, following in pairwise(stages):
            self._reached.append(self._reached[-1] + (following.begins - stage.begins) * stage.rate)
        most = math.inf if length is None else self._expected(length)
        self._places = _poisson_places(seed, count, most) if spacing == "poisson" else None
        if count is not None:
            self.count = count
        else:
            self.count = math.ceil(most - _ROUNDING) if self._places is None else len(self._places) - 1
        self.length = self._time_of(self._place(self.count)) if length is None else length

    def start_of(self, number: int) -> float:
        """The planned start of a request, in seconds since the schedule began."""
        return self._time_of(self._place(number))

    def due(self, moment: float) -> int:
        """How many requests have a planned start that is not after a moment, in seconds since the schedule began."""
        if moment < 0:
            return 0
        expected = self._expected(moment)
        reached = math.floor(expected + _ROUNDING) + 1 if self._places is None else bisect_right(self._places, expected)
        return min(self.count, reached)

    @property
    def longest_gap(self) -> float:
        """Seconds of the longest pause between two planned starts, or before the first."""
        if self._places is None:
            return 1 / min(stage.rate for stage in self._stages)
        starts = [0.0, *map(self._time_of, self._places)]
        return max(later - earlier for earlier, later in pairwise(starts))

    def _place(self, number: int) -> float:
        """The request's place among arrivals of rate 1."""
        return float(number) if self._places is None else self._places[number]

    def _time_of(self, place: float) -> float:
        """The inverse of `_expected`."""
        if len(self._stages) == 1:
            return place / self._stages[0].rate
        at = bisect_right(self._reached, place) - 1
        return self._begins[at] + (place - self._reached[at]) / self._stages[at].rate

    def _expected(self, moment: float) -> float:
        """Arrivals that are expected until a moment."""
        at = bisect_right(self._begins, moment) - 1
        return self._reached[at] + (moment - self._begins[at]) * self._stages[at].rate


class EveryNth(Arrivals):
    """Every n-th request of a schedule from one on, as a shard of the trial sends them. Its `length` is the whole's."""

    def __init__(self, whole: Arrivals, first: int, step: int) -> None:
        self._whole, self._first, self._step = whole, first, step
        self.count = len(range(first, whole.count, step))
        self.length = whole.length

    def start_of(self, number: int) -> float:
        """As of the whole schedule, whose beginning is also this one's."""
        return self._whole.start_of(self._first + number * self._step)

    def due(self, moment: float) -> int:
        """As `Arrivals.due`, of these requests."""
        return len(range(self._first, self._whole.due(moment), self._step))

    @property
    def longest_gap(self) -> float:
        """Seconds, no less than the longest pause between two of these requests, or before the first."""
        return self._step * self._whole.longest_gap


@lru_cache(maxsize=4)
def planned(  # noqa: PLR0913, PLR0917 - the fields of a workload that decide it
    rate: float | None, stages: Stages | None, spacing: Spacing, seed: int, count: int | None, length: float | None
) -> Arrivals:
    """The arrivals at a rate or in stages. Kept, since those of a Poisson process are computed one after the other.

    Forked processes share them. There is a rate, or there are stages.
    """
    steps = stages.steps if rate is None and stages is not None else (Stage(0.0, rate or 0.0),)
    return Arrivals(steps, spacing, seed, count, length)


def rate_of(text: str) -> float:
    """Requests per second. Raises ValueError for a text that is no rate above 0."""
    found = _RATE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a rate; write {RATE_FORMS}")
    value = float(found[1]) / (60 if found[2] == "/m" else 1)
    if not LEAST_RATE <= value <= MOST_RATE:
        raise ValueError(f"{value:g} requests per second; write {LEAST_RATE:g} to {MOST_RATE:g}")
    return value


def _poisson_places(seed: int, count: int | None, most: float) -> array[float]:
    """Arrivals of a Poisson process of rate 1: `count` or those before `most`, and the one behind them."""
    places: array[float] = array("d")
    place, number, last = 0.0, 0, math.inf if count is None else count
    while place < most and number <= last:
        place -= math.log(share(seed, number, _STREAM))
        places.append(place)
        number += 1
    return places
