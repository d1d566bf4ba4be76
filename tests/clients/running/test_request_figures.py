"""From samples to figures: against numpy, and over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clientlab.analysis.latencies import QUANTILES
from clientlab.measuring.outcome import Outcome
from clientlab.results.trial import Quantiles, Slice
from clientlab.running.quantiles import quantiles_of
from clientlab.running.request_figures import TrialRequests, slices_of
from clientlab.running.trial_result import connections_opened
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.delays import Delay
from clientlab.workload.link import Link, unavoidable_of
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial


def records(start, seconds, error=0):
    """Records of requests, by column."""
    made = np.zeros(len(seconds), RECORD)
    made["start"], made["seconds"], made["error"], made["done"] = start, seconds, error, 1
    return made


def overhead_of(made, numbers, unavoidable) -> Quantiles | None:
    """The overhead of these records."""
    return TrialRequests(Samples(made, numbers, {}, {}, {}), Workload()).overhead(unavoidable)


DRAW = np.random.default_rng(3)
NONE = np.empty(0)


@pytest.mark.parametrize("count", [99, 100, 1001, 20_001])
def test_quantiles_are_exact(count):
    """As numpy has them, by the nearest rank. A p99.9 needs 1,000 requests."""
    seconds = DRAW.lognormal(-5, 1, count)
    latency = quantiles_of(seconds, NONE)
    for name, percent in QUANTILES.items():
        exact = np.quantile(seconds, percent / 100, method="inverted_cdf")
        assert getattr(latency, name) == (exact if count > 1000 or name != "p999" else None), name
    assert latency.mean == pytest.approx(seconds.mean(), rel=1e-12)
    assert latency.max == seconds.max()


def test_no_lower_bound_is_above_what_patience_would_have_shown():
    """Whenever each failed request would have been answered, the true figure is no less than its lower bound."""
    draw = np.random.default_rng(8)
    for _ in range(200):
        answered, failed = draw.lognormal(-5, 1, draw.integers(1, 200)), draw.lognormal(-5, 2, draw.integers(1, 200))
        found = quantiles_of(answered, failed)
        patient = quantiles_of(np.concatenate([answered, failed + draw.exponential(0.01, len(failed))]), NONE)
        for name in found.at_least:
            assert getattr(found, name) <= getattr(patient, name), name
        never = np.sort(np.concatenate([answered, np.full(len(failed), np.inf)]))
        for name in {"p50", "p90", "p95", "p99"} - {*found.at_least}:
            assert getattr(found, name) == np.quantile(never, QUANTILES[name] / 100, method="inverted_cdf"), name


def test_without_a_successful_request_there_are_no_quantiles():
    assert quantiles_of(NONE, np.array([0.3])) is None
    assert overhead_of(records([], []), np.empty(0, np.int64), lambda _: 0.0) is None


def test_overhead_is_latency_minus_the_delay_of_that_very_request():
    """Exact, also if a request was answered earlier than it asked for."""
    asked = {7: 0.1, 8: 0.2, 9: 0.3}
    overhead = overhead_of(records([0] * 3, [0.101, 0.205, 0.299]), np.array([7, 8, 9]), lambda number: asked[number])
    assert (overhead.p50, overhead.mean, overhead.max) == pytest.approx((0.001, 0.005 / 3, 0.005))


def test_the_overhead_of_failed_requests_ranks_as_their_latency():
    """Whatever its code, an error is no success, even one that came before the delay was over."""
    overhead = overhead_of(records([0] * 4, [0.101, 0.102, 0.001, 0.4], [0, 0, 1, 64]), np.arange(4), lambda _: 0.1)
    assert (overhead.p50, overhead.p90) == pytest.approx((0.002, 0.3))
    assert overhead.at_least == ["mean", "p90", "p95", "p99", "max"]


@pytest.mark.parametrize(
    ("delay", "link", "seconds"), [(None, Link(0.1), 0.1), ("20ms", Link(0.1), 0.12), ("20ms", None, 0.02)]
)
def test_the_overhead_leaves_out_the_delay_and_one_round_trip(delay, link, seconds):
    """It is unknown without both."""
    workload = Workload(delay=delay and Delay.parse(delay))
    assert unavoidable_of(workload, link)(7) == pytest.approx(seconds)
    assert unavoidable_of(Workload(), None) is None


def test_a_slice_has_the_counts_and_quantiles_of_its_requests():
    """And none that falls on a failed one. The last slice has those that end with the clock or just after it."""
    starts, seconds = [0, 0, 0, 30, 40, 40, 59, 59], [0.1, 0.3, 0.5, 0.2, 0.3, 0.1, 1.0, 1.01]
    rows = slices_of(records(starts, seconds, [0, 0, 0, 1, 0, 1, 0, 0]), 0, 60)
    assert [row.at for row in rows] == pytest.approx(range(60))
    assert rows[59].requests == 2
    assert rows[0] == Slice(at=0.0, requests=3, errors=0, p50=0.3, p99=0.5)
    assert rows[1] == Slice(at=1.0, requests=0, errors=0)
    assert rows[30] == Slice(at=30.0, requests=1, errors=1)
    assert rows[40] == Slice(at=40.0, requests=2, errors=1, p50=0.3)


@pytest.mark.parametrize(
    ("starts", "seconds", "share"),
    [
        (np.zeros(20), 0.011 * np.arange(1, 21), 1.0),
        (np.zeros(20), np.full(20, 0.05), 0.0),
        (np.zeros(3), np.array([0.01, 0.02, 0.021]), 0.5),
    ],
    ids=["in turn", "at once", "half of them"],
)
def test_requests_in_turn_end_their_own_delay_after_the_one_before(starts, seconds, share):
    """With a delay of 10 ms for each of them; the order of their numbers does not matter."""
    made, numbers = records(starts, seconds)[::-1], np.arange(len(starts))
    workload = Workload(delay=Delay.parse("10ms"))
    assert TrialRequests(Samples(made, numbers, {}, {}, {}), workload).in_turn == pytest.approx(share)


def test_connections_that_nobody_could_count_are_unknown():
    """A function whose library connects outside Python succeeds without a connection that the lab sees."""
    kept = Outcome(0.0, 1.0, 0.5, None, None, 0, 0, 1, 1)
    unseen = replace(kept, connections_in_all=0)
    planned = a_planned_trial()
    assert connections_opened(planned, kept, succeeded=4) == 0
    assert connections_opened(planned, unseen, succeeded=4) is None
    assert connections_opened(planned, unseen, succeeded=0) == 0
