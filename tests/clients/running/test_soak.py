"""Long trials: what grew in them, from readings of real processes and from the slices of a trial."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from clientlab.conformance.server import counting_server
from clientlab.measuring.soak_readings import MOST_READINGS, SoakReadings
from clientlab.results.trial import Slice
from clientlab.running.soak import file_growth, latency_growth, memory_growth, soak_of
from clientlab.workload.workload import Workload
from clients.leaky import BYTES, REQUESTS_PER_FILE
from clients.measured import measure

LEAKY = f"{Path(__file__).parents[1] / 'leaky.py'}:Leaky@threads"
SECONDS = 9.0
HOUR = 3600.0


def slices(latency, count=60) -> list[Slice]:
    """A trial of an hour; `latency`: seconds, as a function of the share of its time."""
    return [Slice(at=HOUR * i / count, requests=10, errors=0, p50=latency(i / count)) for i in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [LEAKY, "urllib3@threads"], ids=["leaky", "honest"])
def test_a_planted_leak_is_found_and_an_honest_client_is_not_accused(strategy):
    """Of memory and of file descriptors, in nine seconds of a real trial. The leak's size is found as well."""
    workload = Workload(duration=SECONDS, concurrency=2)
    with counting_server() as server:
        measured = measure(strategy, workload, server.url)
    memory, files = memory_growth(measured.readings), file_growth(measured.readings)
    leaks = strategy == LEAKY
    assert (memory.grows, files.grows) == (leaks, leaks)
    if leaks:
        per_hour = len(measured.samples.records) / measured.outcome.wall_seconds * HOUR
        assert 0.8 < memory.per_hour / (per_hour * BYTES) < 1.5
        assert 0.8 < files.per_hour / (per_hour / REQUESTS_PER_FILE) < 1.25


def test_a_short_trial_states_no_growth():
    """Caches and allocators still settle in it."""
    assert soak_of([], slices(lambda _: 0.01), 59.0) is None
    assert soak_of([], slices(lambda _: 0.01), 60.0).latency.per_hour == 0


def test_a_latency_that_grows_is_found():
    """From 10 ms to 20 ms within an hour; slices without a median are left out."""
    growing = [*slices(lambda share: 0.01 + 0.01 * share), Slice(at=HOUR, requests=0, errors=0)]
    found = latency_growth(growing)
    assert found.grows
    assert found.per_hour == pytest.approx(0.01, rel=1e-6)


def test_the_readings_of_a_trial_are_few_however_long_it_is(monkeypatch):
    """When there are 120, every second one goes, and the next ones come half as often: they stay evenly spaced."""
    now = [0.0]
    monkeypatch.setattr("clientlab.measuring.soak_readings.time.monotonic", lambda: now[0])
    soak = SoakReadings(list)
    soak.begin()
    for _ in range(20 * MOST_READINGS):
        soak.look()
        now[0] += 0.5
    at = [reading.at for reading in soak.readings]
    steps = [later - one for one, later in itertools.pairwise(at)]
    assert MOST_READINGS / 2 <= len(at) < MOST_READINGS
    assert max(steps) <= 2 * min(steps)
    assert at[-1] > 0.95 * now[0]


def test_pauses_between_slices_are_no_time(monkeypatch):
    """While others are measured, nothing of the trial can grow."""
    now = [0.0]
    monkeypatch.setattr("clientlab.measuring.soak_readings.time.monotonic", lambda: now[0])
    soak = SoakReadings(list)
    for _ in range(3):
        soak.begin()
        now[0] += 2.0
        soak.look()
        soak.end()
        now[0] += 100.0
    assert [reading.at for reading in soak.readings] == [2.0, 4.0, 6.0]
