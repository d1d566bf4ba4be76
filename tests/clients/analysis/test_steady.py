"""The steady part of a closed load: its rate beside that of a queue whose rate is
known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
import pytest

from clientlab.analysis.steady import Steady, find_long_seconds, find_steady
from clientlab.observing.samples import Records
from clientlab.results.trial import Outcome, rate_of
from clients.sampled import records_of, samples_of

Draw = Callable[[np.random.Generator], float]
COUNTS = dict.fromkeys(
    ("connections_begun", "connections_opened", "connections_in_all", "processes"), 1
)


def queue(
    draw: Draw,
    slots: int,
    seconds: float,
    places: int | None = None,
    began: float = 0.0,
) -> Records:
    """Return the records of a slice: each of the slots sends one request after the
    other.

    `draw`: the seconds of service of a request. `places`: requests that are served at
    once, first come, first served; None serves all.
    """
    random = np.random.default_rng(1)
    free = [0.0] * (places or slots)
    ready = [0.0] * slots
    rows = []
    while ready[0] < seconds:
        start = heapq.heappop(ready)
        served = max(start, heapq.heappop(free))
        end = served + draw(random)
        heapq.heappush(free, end)
        heapq.heappush(ready, end)
        rows.append((began + start, end - start))
    return by_start(rows)


def by_start(rows: list[tuple[float, float]]) -> Records:
    """Return the records of pairs of start and seconds."""
    starts, seconds = np.array(rows).T
    return np.sort(records_of(starts, seconds), order="start")


def steady_of(records: Records, slots: int, seconds: float) -> Steady:
    """Return the steady part of a trial in one slice."""
    wall = float((records["start"] + records["seconds"]).max())
    outcome = Outcome(began=0.0, wall_seconds=wall, cpu_seconds=0.0, **COUNTS)
    return find_steady(samples_of(records), outcome, seconds, slots)


def constant(_random: np.random.Generator) -> float:
    return 0.2


def hang(random: np.random.Generator) -> float:
    return 1.0 if random.random() < 0.01 else 0.015


@pytest.mark.parametrize(
    ("draw", "slots", "places", "seconds", "rate"),
    [
        (constant, 32, 4, 16.5, 4 / 0.2),
        (lambda random: 0.05 * random.uniform(0.98, 1.02), 32, None, 0.55, 32 / 0.05),
        (lambda random: random.exponential(0.002), 32, 1, 2.0, 1 / 0.002),
        (lambda random: random.exponential(0.05), 16, None, 8.0, 16 / 0.05),
        (hang, 16, None, 20.0, 16 / (0.99 * 0.015 + 0.01 * 1.0)),
    ],
    ids=["pool of 4", "constant", "one place", "exponential", "1 % hang"],
)
def test_the_rate_is_that_of_a_load_without_an_end(draw, slots, places, seconds, rate):
    """However the first requests of a slice are served, and whatever ends after it."""
    records = queue(draw, slots, seconds, places)
    steady = steady_of(records, slots, seconds)
    assert rate_of(steady.windows) == pytest.approx(rate, rel=0.06)


def test_only_requests_between_the_first_and_the_last_wave_count():
    """In a queue of 32 for 4 places, the first 4 requests take 0.2 s, and steady ones
    1.6 s.
    """
    records = queue(constant, 32, 16.5, 4)
    steady = steady_of(records, 32, 16.5)
    counted = records[steady.counted]
    assert records["seconds"].min() == pytest.approx(0.2)
    assert counted["seconds"] == pytest.approx(1.6)


def test_a_slice_of_a_few_waves_has_no_rate():
    """Of a pool of 4, 32 requests take 1.6 s. Then, all requests count."""
    steady = steady_of(queue(constant, 32, 3.0, 4), 32, 3.0)
    assert rate_of(steady.windows) is None
    assert steady.windows[0].wave_seconds == pytest.approx(1.6)
    assert steady.counted.all()


def test_threads_that_wait_between_their_requests_have_windows():
    """32 threads take turns with the GIL: 25 requests are in flight on average, and all
    32 once, near the end.
    """
    random = np.random.default_rng(3)
    rows = []
    ready = [0.0] * 32
    gil = 0.0
    while ready[0] < 0.35:
        free = heapq.heappop(ready)
        gil = max(free, gil) + 0.001  # it prepares the request, and nobody else runs
        seconds = random.uniform(0.02, 0.03) if gil < 0.31 else 0.05
        rows.append((gil, seconds))
        heapq.heappush(ready, gil + seconds)
    steady = steady_of(by_start(rows), 32, 0.35)
    assert rate_of(steady.windows) == pytest.approx(1000, rel=0.05)


def test_a_client_with_fewer_places_than_planned_is_judged_by_these():
    """A pool that hands over only 4 of 32 requests at a time, outside the clock."""
    steady = steady_of(queue(constant, 4, 3.0), 32, 3.0)
    assert rate_of(steady.windows) == pytest.approx(20.0)


def test_slices_have_windows_of_their_own():
    parts = [queue(lambda _random: 0.05, 8, 0.98, began=began) for began in (0.0, 1.1)]
    outcome = Outcome(
        began=0.0, wall_seconds=2.2, slices=(1.1, 1.1), cpu_seconds=0.0, **COUNTS
    )
    steady = find_steady(samples_of(np.concatenate(parts)), outcome, 1.96, 8)
    first, second = steady.windows
    assert first.rate == pytest.approx(160.0)
    assert second.rate == pytest.approx(160.0)
    assert steady.counted.sum() == 2 * 8 * 17  # of 20 waves, without those at its ends


def test_long_requests_hold_a_twentieth_of_the_time_in_flight():
    """Of 400 s, a request of 20 s holds a twentieth, and two of 10 s the next one."""
    some_long = [1.0] * 360 + [10.0] * 2 + [20.0]
    few_long = [1.0] * 380 + [5.0] * 4
    assert find_long_seconds(np.array(some_long)) == 10.0
    assert find_long_seconds(np.array(few_long)) == 1.0
    assert find_long_seconds(np.array([])) is None
