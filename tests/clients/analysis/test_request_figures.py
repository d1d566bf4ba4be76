"""From samples to figures: against numpy, over time, and beside the schedule of an open
load.
"""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.request_figures import (
    TrialRequests,
    compute_quantiles,
    count_at_once,
    slice_over_time,
)
from clientlab.errors import DROPPED
from clientlab.results.trial import PathFigures, Quantiles, Slice
from clientlab.statistics.histogram import QUANTILES
from clientlab.trial.sample_log import ERROR_CODES
from clientlab.workload.values import Delay, Link
from clientlab.workload.workload import make_workload, unavoidable_of
from clients.sampled import records_of, samples_of

DRAW = np.random.default_rng(3)
NONE = np.empty(0)


def overhead_of(records, unavoidable) -> Quantiles | None:
    requests = TrialRequests(samples_of(records), make_workload())
    return requests.compute_overhead(unavoidable)


def exact_quantile(seconds, name: str):
    share = QUANTILES[name] / 100
    return np.quantile(seconds, share, method="inverted_cdf")


@pytest.mark.parametrize("count", [99, 100, 1001, 20_001])
def test_quantiles_are_exact(count):
    """As numpy has them, by the nearest rank. A p99.9 needs 1,000 requests."""
    seconds = DRAW.lognormal(-5, 1, count)
    latency = compute_quantiles(seconds, NONE)
    known = set(QUANTILES)
    if count < 1000:
        known.remove("p999")
        assert latency.p999 is None
    for name in known:
        assert getattr(latency, name) == exact_quantile(seconds, name), name
    assert latency.mean == pytest.approx(seconds.mean(), rel=1e-12)
    assert latency.max == seconds.max()


def test_no_lower_bound_is_above_what_patience_would_have_shown():
    """Whenever each failed request would have been answered, the true figure is no less
    than its lower bound.
    """
    draw = np.random.default_rng(8)
    for _ in range(200):
        answered = draw.lognormal(-5, 1, draw.integers(1, 200))
        failed = draw.lognormal(-5, 2, draw.integers(1, 200))
        found = compute_quantiles(answered, failed)
        later = failed + draw.exponential(0.01, len(failed))
        patient = compute_quantiles(np.concatenate([answered, later]), NONE)
        for name in found.at_least:
            assert getattr(found, name) <= getattr(patient, name), name
        never = np.full(len(failed), np.inf)
        seconds = np.concatenate([answered, never])
        for name in {"p50", "p90", "p95", "p99"} - {*found.at_least}:
            assert getattr(found, name) == exact_quantile(seconds, name), name


def test_without_a_successful_request_there_are_no_quantiles():
    assert compute_quantiles(NONE, np.array([0.3])) is None
    assert overhead_of(records_of([], []), lambda _: 0.0) is None


def test_overhead_is_latency_minus_the_delay_of_that_very_request():
    """Exact, also if a request was answered earlier than it asked for."""
    asked = [0.1, 0.2, 0.3]
    records = records_of(0, [0.101, 0.205, 0.299])
    overhead = overhead_of(records, lambda number: asked[number])
    assert overhead.p50 == pytest.approx(0.001)
    assert overhead.mean == pytest.approx(0.005 / 3)
    assert overhead.max == pytest.approx(0.005)


def test_the_overhead_of_failed_requests_ranks_as_their_latency():
    """Whatever its code, an error is no success, even one that came before the delay
    was over.
    """
    records = records_of(0, [0.101, 0.102, 0.001, 0.4], [0, 0, 1, 64])
    overhead = overhead_of(records, lambda _: 0.1)
    assert overhead.p50 == pytest.approx(0.002)
    assert overhead.p90 == pytest.approx(0.3)
    assert overhead.at_least == ["mean", "p90", "p95", "p99", "max"]


def test_the_time_to_the_first_byte_is_latency_minus_the_time_after_it():
    """A failed request ranks as its latency.

    Without the switch, the field has the library's own time.
    """
    records = records_of(0, [0.3, 0.2, 0.1, 0.4], [0, 0, 0, 1])
    records["elapsed"] = [0.1, 0.1, 0.0, 0.0]

    def first_byte(workload) -> Quantiles | None:
        requests = TrialRequests(samples_of(records), workload)
        return requests.compute_figures(0.0, 1.0).first_byte_seconds

    found = first_byte(make_workload(first_byte=True))
    assert found.p50 == pytest.approx(0.1)
    assert found.p99 == pytest.approx(0.4)
    assert found.at_least == ["mean", "p90", "p95", "p99", "max"]
    assert first_byte(make_workload(elapsed=True)) is None


@pytest.mark.parametrize(
    ("delay", "link", "seconds"),
    [(None, Link(0.1), 0.1), ("20ms", Link(0.1), 0.12), ("20ms", None, 0.02)],
)
def test_the_overhead_leaves_out_the_delay_and_one_round_trip(delay, link, seconds):
    """It is unknown without both."""
    workload = make_workload(delay=delay and Delay.parse(delay))
    assert unavoidable_of(workload, link)(7) == pytest.approx(seconds)
    assert unavoidable_of(make_workload(), None) is None


def test_a_slice_has_the_counts_and_quantiles_of_its_requests():
    """And none that falls on a failed one.

    The last slice has those that end with the clock or just after it.
    """
    starts = [0, 0, 0, 30, 40, 40, 59, 59]
    seconds = [0.1, 0.3, 0.5, 0.2, 0.3, 0.1, 1.0, 1.01]
    records = records_of(starts, seconds, [0, 0, 0, 1, 0, 1, 0, 0])
    rows = slice_over_time(records, 0, 60)
    assert [row.at for row in rows] == pytest.approx(range(60))
    assert rows[59].requests == 2
    assert rows[0] == Slice(at=0.0, requests=3, errors=0, p99=0.5)
    assert rows[1] == Slice(at=1.0, requests=0, errors=0)
    assert rows[30] == Slice(at=30.0, requests=1, errors=1)
    assert rows[40] == Slice(at=40.0, requests=2, errors=1)


@pytest.mark.parametrize(
    ("seconds", "share"),
    [(0.011 * np.arange(1, 21), 1.0), ([0.05] * 20, 0.0), ([0.01, 0.02, 0.021], 0.5)],
    ids=["in turn", "at once", "half of them"],
)
def test_requests_in_turn_end_their_own_delay_after_the_one_before(seconds, share):
    """With a delay of 10 ms for each of them; the order of their numbers does not
    matter.
    """
    samples = samples_of(records_of(0, seconds)[::-1])
    requests = TrialRequests(samples, make_workload(delay=Delay.parse("10ms")))
    assert requests.share_in_turn == pytest.approx(share)


def test_paths_of_recorded_requests_have_their_own_figures_without_their_queries(
    tmp_path,
):
    """The most frequent first. A p99 that falls on a failed request is unknown."""
    recording = tmp_path / "r.jsonl"
    recording.write_text('{"path": "/b"}\n{"path": "/a?x=1"}\n{"path": "/a?x=2"}\n')
    records = records_of(0, [0.1, 0.2, 0.3, 0.4, 0.2, 0.3], [0, 0, 0, 1, 0, 0])
    workload = make_workload(replay=str(recording))
    requests = TrialRequests(samples_of(records), workload)
    assert requests.compute_paths() == [
        PathFigures(path="/a", requests=4, errors=0, p50=0.2, p99=0.3),
        PathFigures(path="/b", requests=2, errors=1, p50=0.1),
    ]


BEGAN = 100.0


def kept(records, rate: float, length: float) -> TrialRequests:
    """These records beside a schedule of so many requests per second, which begins at
    BEGAN.
    """
    records["start"] += BEGAN
    kinds = {code: kind for kind, code in ERROR_CODES.items()}
    samples = samples_of(records, kinds=kinds, schedule_began=BEGAN)
    return TrialRequests(samples, make_workload(rate=rate, duration=length))


def frozen(places: int):
    """A schedule of 200/s over 10 s against a server that answers in 1 ms, frozen from
    2 s to 3 s.

    The starts with so many places, computed request by request.
    """
    free = np.zeros(places)
    starts = []
    seconds = []
    for planned in np.arange(2000) / 200:
        place = int(free.argmin())
        start = max(planned, free[place] + 1e-6)
        is_frozen = 2 <= start < 3
        served = 3.0 if is_frozen else start
        free[place] = served + 0.001
        starts.append(start)
        seconds.append(free[place] - start)
    return kept(records_of(starts, seconds), 200, 10.0)


def test_a_frozen_server_shows_in_the_latency_from_the_planned_start():
    """200 of 2,000 requests fall into the freeze, so p99 is what a tenth of them
    exceed: 0.9 s of it is left.
    """
    found = frozen(10)
    figures = found.compute_load(BEGAN, 10.0)
    assert np.quantile(found.timed["seconds"], 0.99) == pytest.approx(0.9, rel=0.05)
    assert figures.sent_seconds.p99 < 0.01
    # Ten of them were in flight already.
    assert figures.lateness_seconds.p99 == pytest.approx(0.85, rel=0.05)
    assert figures.most_backlog == pytest.approx(191, abs=2)
    assert figures.most_in_flight == 10
    assert figures.achieved_per_second == figures.planned_per_second == 200


def test_a_strategy_that_is_too_slow_achieves_what_it_sends_until_its_last_request():
    """100 requests planned in 1 s, sent in 2 s: half the rate, and half of them wait
    when the plan ends.
    """
    records = records_of(np.arange(100) / 50, [0.02] * 100)
    figures = kept(records, 100, 1.0).compute_load(BEGAN, 2.0)
    assert figures.planned_per_second == pytest.approx(100)
    assert figures.achieved_per_second == pytest.approx(100 / 1.98)
    assert figures.most_backlog == pytest.approx(50, abs=1)
    rows = figures.over_time
    assert [row.at for row in rows] == pytest.approx(np.arange(60) / 30)
    assert sum(row.planned for row in rows[:30]) == 100


def test_a_dropped_request_is_at_least_as_late_as_it_was_then():
    starts = np.arange(100) / 100
    starts[90:] += 0.5
    records = records_of(starts, [0.01] * 90 + [0.0] * 10)
    records["error"][90:] = ERROR_CODES[DROPPED]
    figures = kept(records, 100, 1.0).compute_load(BEGAN, 1.5)
    assert figures.dropped == 10
    assert figures.achieved_per_second == 90
    assert figures.sent_seconds.max == pytest.approx(0.01)
    late = figures.lateness_seconds
    assert late.p50 == pytest.approx(0.0, abs=1e-9)
    assert late.p99 == pytest.approx(0.5)
    assert "p50" not in late.at_least
    assert "p99" in late.at_least


def test_the_most_requests_in_flight_and_the_largest_backlog_are_those_of_a_moment():
    in_turn = np.array([0.0, 1.0, 2.0])
    assert count_at_once(in_turn, in_turn + 1.0) == 1
    together = np.array([0.0, 0.5, 0.9, 3.0])
    assert count_at_once(together, together + 1.0) == 3
    assert count_at_once(NONE, NONE) == 0
