"""The load model of a workload.

Closed: `concurrency` requests in flight. Open: requests arrive by a schedule.

In an open load, the planned start of request k depends only on (seed, k), so every
process of a trial and the analysis can compute it. Poisson arrivals have independent,
exponentially distributed gaps. Stages map arrivals of rate 1 through the inverse of the
cumulative rate (Çinlar 1975, Introduction to Stochastic Processes, 4.7).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from clientlab.errors import FieldError
from clientlab.workload.parts import MOST_REQUESTS
from clientlab.workload.recordings import read_recorded_requests
from clientlab.workload.values import Stages, draw_share
from clientlab.workload.workload import ShardWorkload, Workload

# Poisson arrivals in a trial; drawing that many takes about 20 s and 80 MB.
_MOST_DRAWN = 10_000_000
# Poisson arrivals in a trial on average; with 11, one round in 60,000 would have no
# request.
_FEWEST_DRAWN = 12
_STREAM = 2  # of `draw_share`
_ROUNDING = 1e-9


class Arrivals:
    """The planned starts of `count` requests.

    `length`: seconds, or None to end when the next request would begin.
    """

    def __init__(
        self,
        stages: Stages,
        spacing: Literal["uniform", "poisson"],
        seed: int,
        count: int | None,
        length: float | None,
    ) -> None:
        self._begins = [begins for begins, _ in stages.steps]
        self._rates = [rate for _, rate in stages.steps]
        self._reached = [0.0]  # arrivals that are expected before each stage
        for (begins, rate), (following, _) in pairwise(stages.steps):
            self._reached.append(self._reached[-1] + (following - begins) * rate)
        most = math.inf if length is None else self._expected(length)
        self._places: array[float] | None = None
        # Draw the first `count` of a process of rate 1, or those before `most`, and one
        # more.
        if spacing == "poisson":
            self._places = array("d")
            place = 0.0
            while place < most and (count is None or len(self._places) <= count):
                place -= math.log(draw_share(seed, len(self._places), _STREAM))
                self._places.append(place)
        if count is not None:
            self.count = count
        elif self._places is not None:
            self.count = len(self._places) - 1
        else:
            self.count = math.ceil(most - _ROUNDING)
        # The next request would begin then: 10 requests at 1/s take 10 s, also if the
        # schedule ends after 9.5 s.
        next_start = self.start_of(self.count)
        self.length = next_start if length is None else length
        self.span = next_start if self._places is None else self.length

    def start_of(self, number: int) -> float:
        """Return the planned start of a request, in seconds of the schedule."""
        if self._places is None:
            return self._time_of(float(number))
        return self._time_of(self._places[number])

    def due(self, moment: float) -> int:
        """Return how many requests are planned up to a moment.

        `moment`: in seconds since the schedule began.
        """
        if moment < 0:
            return 0
        expected = self._expected(moment)
        if self._places is None:
            reached = math.floor(expected + _ROUNDING) + 1
        else:
            reached = bisect_right(self._places, expected)
        return min(self.count, reached)

    @property
    def longest_gap(self) -> float:
        """Seconds of the longest pause before a planned start."""
        if self._places is None:
            return 1 / min(self._rates)
        starts = [0.0, *map(self._time_of, self._places)]
        return max(later - earlier for earlier, later in pairwise(starts))

    def _time_of(self, place: float) -> float:
        """Return when a place among arrivals of rate 1 is reached.

        It is the inverse of `_expected`.
        """
        if len(self._rates) == 1:
            return place / self._rates[0]
        at = bisect_right(self._reached, place) - 1
        return self._begins[at] + (place - self._reached[at]) / self._rates[at]

    def _expected(self, moment: float) -> float:
        """Return the number of arrivals that are expected until a moment."""
        at = bisect_right(self._begins, moment) - 1
        return self._reached[at] + (moment - self._begins[at]) * self._rates[at]


class _RecordedArrivals(Arrivals):
    """Starts that a file records, in seconds after the first.

    The last one is followed by a gap of the mean length.
    """

    def __init__(self, starts: Sequence[float]) -> None:
        self._starts = starts
        self.count = len(starts)
        self.length = starts[-1] * self.count / (self.count - 1)
        self.span = self.length

    def start_of(self, number: int) -> float:
        return self._starts[number]

    def due(self, moment: float) -> int:
        return bisect_right(self._starts, moment)

    @property
    def longest_gap(self) -> float:
        return max(later - earlier for earlier, later in pairwise(self._starts))


class _ShardArrivals(Arrivals):
    """Every n-th request of a schedule, as a shard sends them.

    `length` is that of the whole schedule.
    """

    def __init__(self, whole: Arrivals, first: int, step: int) -> None:
        self._whole = whole
        self._first = first
        self._step = step
        self.count = len(range(first, whole.count, step))
        self.length = whole.length
        self.span = whole.span

    def start_of(self, number: int) -> float:
        return self._whole.start_of(self._first + number * self._step)

    def due(self, moment: float) -> int:
        return len(range(self._first, self._whole.due(moment), self._step))

    @property
    def longest_gap(self) -> float:
        return self._step * self._whole.longest_gap


plan_arrivals = lru_cache(maxsize=4)(Arrivals)
"""Return a schedule.

Cached, because the arrivals of a Poisson process are drawn one by one.
"""


def is_open(workload: Workload) -> bool:
    """Return whether requests arrive by a schedule."""
    return (
        workload.load.rate is not None
        or workload.load.stages is not None
        or workload.keeps_times
    )


def is_warm(workload: Workload) -> bool:
    """Return whether connections are opened before the clock starts.

    By default they are in a load for a duration. A number of requests is a job, which
    includes opening its connections. A duration is a part of a running service, and so
    are requests at their recorded times.
    """
    load = workload.load
    if load.connections is None:
        return load.duration is not None or workload.keeps_times
    return load.connections == "warm"


def is_steady(workload: Workload) -> bool:
    """Return whether only the steady part of a trial counts.

    It does for a closed load for a duration, on warm connections, whose server does not
    fail.
    """
    lasts = workload.load.duration is not None and workload.faults is None
    return lasts and not is_open(workload) and is_warm(workload)


def is_staggered(workload: Workload) -> bool:
    """Return whether the first request of each slot has a part of its delay only.

    All slots of a closed load begin at once. After a constant delay, the upstream
    would get their requests as one burst again and again, and the sooner a client
    sends, the later it would be served. With a part of the delay, another one in each
    slot, requests are spread as if the load had been going on.
    """
    return workload.delay is not None and is_steady(workload)


def first_share(place: int, slots: int) -> float:
    """Return the share of its delay that a request of a staggered load asks for.

    `place`: of the request in its slice, from 0; below 0 in the warm-up.
    """
    return (place + 1) / slots if 0 <= place < slots else 1.0


_WARM_UP_WAVES = 3


def count_warm_up(workload: Workload, in_flight: int) -> int:
    """Return the number of requests that warm up the connections; 0 for cold ones.

    A steady load warms up for three waves of requests. The second one shows how long a
    wave takes: the first opens the connections, and during the last one the load falls.
    Streams may be long, so they get a single wave.
    """
    if not is_warm(workload):
        return 0
    waves = _WARM_UP_WAVES if is_steady(workload) and workload.stream is None else 1
    return max(workload.load.warmup, waves * in_flight)


def arrivals_of(workload: Workload) -> Arrivals | None:
    """Return the schedule of an open load, or None for a closed load."""
    if not is_open(workload):
        return None
    whole: Arrivals
    load = workload.load
    if workload.replay is not None and workload.replay.times:
        whole = _RecordedArrivals(read_recorded_requests(workload.replay).times)
    else:
        stages = load.stages or Stages(((0.0, load.rate or 0.0),))
        whole = plan_arrivals(
            stages, load.arrivals, workload.seed, load.requests, load.duration
        )
    if isinstance(workload, ShardWorkload):
        return _ShardArrivals(whole, workload.index, workload.of)
    return whole


def expected_schedule(workload: Workload) -> Arrivals | None:
    """Return the schedule of an open load as if its arrivals were evenly spaced.

    Return None for a closed load.
    """
    load = replace(workload.load, arrivals="uniform")
    return arrivals_of(replace(workload, load=load))


def requests_in(workload: Workload) -> int | None:
    """Return how many requests a trial has; None for a closed load for a duration."""
    schedule = arrivals_of(workload)
    return workload.load.requests if schedule is None else schedule.count


def expected_requests(workload: Workload) -> int | None:
    """Return how many requests a trial has; if random, their mean.

    Return None for a closed load for a duration.
    """
    schedule = expected_schedule(workload)
    return workload.load.requests if schedule is None else schedule.count


def most_late(workload: Workload) -> float:
    """Return the seconds behind its planned start after which a request is dropped.

    They are `max_late`, or the timeout.
    """
    most = workload.load.max_late
    return workload.limits.timeout if most is None else most


def longest_pause(workload: Workload) -> float:
    """Return the seconds of the longest pause between two planned requests.

    It is 0 for a closed load.
    """
    schedule = arrivals_of(workload)
    return 0.0 if schedule is None else schedule.longest_gap


def check_load(workload: Workload) -> None:
    """Raise FieldError for an open load that cannot be sent.

    Raise it for the options of an open load in a closed load, too.
    """
    load = workload.load
    stages = load.stages
    duration = load.duration
    schedule = expected_schedule(workload)
    if schedule is None:
        _check_closed(workload)
        return
    if workload.keeps_times:
        _check_recorded_times(workload)
        return
    if load.rate is not None and stages is not None:
        raise FieldError(
            ["rate"],
            "a load has one rate or several stages; leave out one of them",
            also=["stages"],
        )
    key = "requests" if duration is None else "duration"
    last_begins = 0.0 if stages is None else stages.steps[-1][0]
    if last_begins >= schedule.length:
        message = (
            f"the last stage begins at {last_begins:g} s, when the trial is over; write"
            " more"
        )
        raise FieldError([key], message)
    is_drawn = load.arrivals == "poisson"
    most = _MOST_DRAWN if is_drawn else MOST_REQUESTS
    if schedule.count > most:
        why = ", because each arrival is drawn before the trial" if is_drawn else ""
        message = (
            f"it plans {schedule.count:,} requests; a trial can have at most"
            f" {most:,}{why}"
        )
        raise FieldError([key], message)
    fewest = _FEWEST_DRAWN * workload.shards if is_drawn else 1
    if duration is not None and schedule.count < fewest:
        message = (
            f"{schedule.count:,} requests arrive in it; write a duration in which at"
            f" least {fewest} arrive"
        )
        raise FieldError(["duration"], message, value=duration)


def _check_closed(workload: Workload) -> None:
    for field in ("arrivals", "max_late"):
        given = getattr(workload.load, field)
        if given not in {"uniform", None}:
            message = (
                "only an open load has it; set `rate` or `stages`, or leave it out"
            )
            raise FieldError([field], message, value=given)


def _check_recorded_times(workload: Workload) -> None:
    for field in ("rate", "stages", "arrivals"):
        if getattr(workload.load, field) not in {None, "uniform"}:
            raise FieldError(
                [field],
                "the recorded times are the schedule; leave it out",
                also=["replay_times"],
            )
