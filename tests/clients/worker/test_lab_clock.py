"""How a worker estimates the lab's clock."""

from __future__ import annotations

import asyncio
import time

import pytest

from clientlab.results.store import Store
from clientlab.worker.job import by_lab_clock
from clientlab.worker.lab_client import LabClient
from clientlab.worker.lab_clock import EstimatedClock, RoundTrip, offset_of
from clients.documents import a_trial
from clients.service.requests_to_lab import TOKEN, listening


def test_the_shortest_round_trip_decides_and_bounds_the_error():
    """The lab's clock is 100 s ahead; a long way back shifts the other estimates."""
    found = offset_of([RoundTrip(1.0, 101.01, 1.2), RoundTrip(2.0, 102.002, 2.004), RoundTrip(3.0, 103.3, 3.31)])
    assert found.seconds == pytest.approx(100.0)
    assert found.error_seconds == pytest.approx(0.002)


@pytest.mark.parametrize("ahead", [-7200.0, 0.0, 1234.5])
def test_a_clock_that_is_off_is_estimated_over_real_connections(tmp_path, ahead):
    """To half of the round trip, as it promises; a moment of the worker's monotonic clock gets the lab's time."""

    async def go() -> EstimatedClock:
        async with listening(Store(tmp_path / "results"), clock=lambda: time.time() + 600.0) as port:
            clock = EstimatedClock(LabClient(f"http://127.0.0.1:{port}", TOKEN), clock=lambda: time.time() + ahead)
            await asyncio.to_thread(clock.estimate)
            return clock

    found = asyncio.run(go()).now
    assert abs(found.offset.seconds - (600.0 - ahead)) <= found.offset.error_seconds
    assert 0 < found.offset.error_seconds < 0.5
    assert found.at(time.perf_counter()) == pytest.approx(time.time() + 600.0, abs=0.5)
    assert found.monotonic(found.at(12.5)) == pytest.approx(12.5, abs=1e-6)


def test_a_lab_that_is_away_leaves_the_last_estimate(tmp_path):
    """Without any, the clock is unknown."""

    async def go() -> tuple:
        async with listening(Store(tmp_path / "results")) as port:
            clock = EstimatedClock(LabClient(f"http://127.0.0.1:{port}", TOKEN))
            await asyncio.to_thread(clock.estimate)
        before = clock.now
        await asyncio.to_thread(clock.estimate)
        other = EstimatedClock(LabClient(f"http://127.0.0.1:{port}", TOKEN))
        await asyncio.to_thread(other.estimate)
        return before, clock.now, other.now

    before, after, never = asyncio.run(go())
    assert before is not None
    assert after is before
    assert never is None


def test_a_trials_start_is_told_by_the_labs_clock(tmp_path):
    """And the offset is kept with it."""

    async def go() -> EstimatedClock:
        async with listening(Store(tmp_path / "results"), clock=lambda: time.time() + 3600.0) as port:
            clock = EstimatedClock(LabClient(f"http://127.0.0.1:{port}", TOKEN))
            await asyncio.to_thread(clock.estimate)
            return clock

    clock = asyncio.run(go()).now
    trial = by_lab_clock(a_trial(started="2024-05-06T07:08:09.000+00:00"), clock)
    assert trial.started[:16] == "2024-05-06T08:08"
    assert trial.clock == clock.offset
    assert by_lab_clock(trial, None) == trial
