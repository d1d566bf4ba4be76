"""How a trial kept to its schedule: lateness, backlog, achieved rate, latency from the planned start."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.errors import DROPPED
from clientlab.running.open_load import KeptSchedule, most_at_once, most_backlog
from clientlab.samples.log import ERROR_CODES
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload import arrivals

BEGAN = 100.0


def records(starts, seconds, errors=None):
    """Records of requests that began at those seconds of the trial."""
    found = np.zeros(len(starts), RECORD)
    found["start"], found["seconds"] = BEGAN + np.asarray(starts), seconds
    found["error"] = 0 if errors is None else errors
    return found


def kept(found, rate: float, length: float) -> KeptSchedule:
    """These records beside a schedule of so many requests per second."""
    kinds = {code: kind for kind, code in ERROR_CODES.items()}
    schedule = arrivals.planned(rate, None, "uniform", 1, None, length)
    return KeptSchedule(Samples(found, np.arange(len(found)), {}, {}, kinds, BEGAN), schedule)


def frozen(places: int):
    """A schedule of 200/s over 10 s against a server that answers in 1 ms, frozen from 2 s to 3 s.

    The starts with so many places, computed request by request.
    """
    free = np.zeros(places)
    starts, seconds = [], []
    for planned in np.arange(2000) / 200:
        place = int(free.argmin())
        start = max(planned, free[place] + 1e-6)
        end = (start if not 2 <= start < 3 else 3.0) + 0.001
        free[place] = end
        starts.append(start)
        seconds.append(end - start)
    return kept(records(starts, seconds), 200, 10.0)


def test_a_frozen_server_shows_in_the_latency_from_the_planned_start():
    """200 of 2,000 requests fall into the freeze, so p99 is what a tenth of them exceed: 0.9 s of it is left."""
    found = frozen(10)
    figures = found.figures(BEGAN, 10.0)
    moved = found.from_planned
    assert np.quantile(moved["seconds"], 0.99) == pytest.approx(0.9, rel=0.05)
    assert figures.sent_seconds.p99 < 0.01
    assert figures.lateness_seconds.p99 == pytest.approx(0.85, rel=0.05)  # ten of them were in flight already
    assert figures.most_backlog == pytest.approx(191, abs=2)
    assert figures.most_in_flight == 10
    assert figures.achieved_per_second == figures.planned_per_second == 200


def test_a_strategy_that_is_too_slow_achieves_what_it_sends_until_its_last_request():
    """100 requests planned in 1 s, sent in 2 s: half the rate, and half of them wait when the plan ends."""
    figures = kept(records(np.arange(100) / 50, 0.02), 100, 1.0).figures(BEGAN, 2.0)
    assert (figures.planned_per_second, figures.achieved_per_second) == pytest.approx((100, 100 / 1.98))
    assert figures.most_backlog == pytest.approx(50, abs=1)
    rows = figures.over_time
    assert [row.at for row in rows] == pytest.approx(np.arange(60) / 30)
    assert sum(row.planned for row in rows[:30]) == sum(row.sent for row in rows) == 100
    assert [rows[slice_].backlog for slice_ in (14, 29, 44, 59)] == [25, 49, 24, 0]


def test_a_dropped_request_is_at_least_as_late_as_it_was_then():
    """It was not sent, so it has no latency from the real start, and its lateness is a lower bound."""
    starts = np.arange(100) / 100
    starts[90:] += 0.5
    dropped = np.arange(100) >= 90
    found = records(starts, np.where(dropped, 0.0, 0.01), dropped * ERROR_CODES[DROPPED])
    figures = kept(found, 100, 1.0).figures(BEGAN, 1.5)
    assert (figures.dropped, figures.achieved_per_second) == (10, 90)
    assert figures.sent_seconds.max == pytest.approx(0.01)
    late = figures.lateness_seconds
    assert (late.p50, late.p99) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.5))
    assert ("p50" in late.at_least, "p99" in late.at_least) == (False, True)


def test_the_most_requests_in_flight_and_the_largest_backlog_are_those_of_a_moment():
    """One that begins when another ends is not beside it."""
    assert most_at_once(records([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])) == 1
    assert most_at_once(records([0.0, 0.5, 0.9, 3.0], [1.0, 1.0, 1.0, 1.0])) == 3
    assert most_backlog(np.array([0.0, 0.0, 0.0]), np.array([0.0, 1.0, 2.0])) == 3
    assert most_at_once(records([], [])) == most_backlog(np.array([]), np.array([])) == 0
