"""Attempts of calls, and how long an arm takes to come back after an outage."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.attempts import (
    count_successes,
    find_attempts,
    find_foreign_calls,
)
from clientlab.observing.samples import RECORD, Samples
from clientlab.results.server_counters import FaultCounts
from clientlab.workload.faults import Faults

BEGAN = 1000.0
WALL = 12.0
OUTAGE = Faults.parse("outage:4s..6s")


def samples_of(ends, *, failed=0, status=200) -> Samples:
    """Calls of 1 ms that end at these seconds of the trial; the first ones fail."""
    records = np.zeros(len(ends), RECORD)
    records["start"] = BEGAN + np.asarray(ends) - 1e-3
    records["seconds"] = 1e-3
    records["status"] = status
    records["error"][:failed] = 1
    return Samples(records, np.arange(len(ends)), {}, {}, {})


def counts_of(bins=(), **others) -> FaultCounts:
    known = {
        "calls": 10,
        "attempts": sum(bins),
        "carried_out": 10,
        "repeated": 0,
        "kinds": {"good": 10},
        "width": 0.1,
        "bins": list(bins),
    }
    return FaultCounts(**known | others)


def find(ends, faults=OUTAGE, counts=None, **others):
    samples = samples_of(ends, **others)
    return find_attempts(samples, counts or counts_of(), faults, BEGAN, WALL)


def steady(begin, end, rate=100):
    return np.arange(begin, end, 1 / rate)


@pytest.mark.parametrize("late", [0.0, 0.5, 2.0])
def test_the_time_until_an_arm_is_back_is_found(late):
    ends = np.concatenate([steady(0.005, 4), steady(6.005 + late, WALL)])
    [recovery] = find(ends).recoveries
    assert recovery.rate_before == pytest.approx(100, rel=0.01)
    assert recovery.seconds == pytest.approx(late, abs=0.03)


def test_a_burst_after_an_outage_that_falls_silent_again_counts():
    """What is stated is when the rate was back, not that it stayed."""
    ends = np.concatenate([steady(0.005, 4), steady(6.005, 6.5), steady(9, WALL)])
    [recovery] = find(ends).recoveries
    assert recovery.seconds == pytest.approx(0, abs=0.03)


def test_an_arm_that_stays_slow_is_never_back():
    ends = np.concatenate([steady(0.005, 4), steady(6.005, WALL, rate=80)])
    [recovery] = find(ends).recoveries
    assert recovery.seconds is None


def test_without_a_rate_before_nothing_is_stated():
    [recovery] = find(steady(6, WALL), Faults.parse("outage:0s..6s")).recoveries
    assert recovery.rate_before == 0
    assert recovery.seconds is None


def test_failed_calls_are_no_successes():
    samples = samples_of(steady(0.5, 1.5, rate=10), failed=4)
    assert count_successes(samples, BEGAN, 0.95) == 1


def test_attempts_are_divided_among_the_slices_of_the_trial():
    bins = [5] * 60 + [50] + [5] * 59
    attempts = find(steady(0.005, WALL), counts=counts_of(bins))
    assert sum(attempts.over_time) == pytest.approx(sum(bins))
    assert attempts.over_time[30] == max(attempts.over_time)
    assert attempts.densest_share == pytest.approx(50 / sum(bins))


def test_statuses_are_those_that_the_client_saw():
    attempts = find([1.0, 2.0], failed=1, status=502)
    assert attempts.statuses == {"502": 2}


def test_calls_of_another_program_are_noticed():
    assert find_foreign_calls(10, counts_of()) is None
    assert "another" in find_foreign_calls(9, counts_of())
