"""From samples to figures: against numpy, and over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from clientlab.analysis.histogram import histogram_of
from clientlab.analysis.latencies import QUANTILES
from clientlab.results.trial import Quantiles, Slice
from clientlab.running.quantiles import quantiles_of
from clientlab.running.request_figures import in_turn, overheads_of, slices_of
from clientlab.running.trial_result import connections_opened
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial, a_shard_report

THREE_DIGITS = 1.1e-3  # of the value, with the histogram's rounding down to its bucket


def records(start, seconds, error=0):
    """Records of requests, by column."""
    made = np.zeros(len(seconds), RECORD)
    made["start"], made["seconds"], made["error"], made["done"] = start, seconds, error, 1
    return made


def overhead_of(made, numbers, unavoidable) -> Quantiles | None:
    """The overhead of these records."""
    return quantiles_of(*overheads_of(Samples(made, numbers, {}, {}, {}), unavoidable))


DRAW = np.random.default_rng(3)
NONE = np.empty(0)


def test_quantiles_are_exact():
    """As numpy has them, by the nearest rank."""
    seconds = DRAW.lognormal(-5, 1, 20_001)
    latency = quantiles_of(seconds, NONE)
    for name, percent in QUANTILES.items():
        assert getattr(latency, name) == np.quantile(seconds, percent / 100, method="inverted_cdf"), name
    assert latency.p50 <= latency.p90 <= latency.p95 <= latency.p99 <= latency.p999 <= latency.max
    assert latency.mean == pytest.approx(seconds.mean(), rel=1e-12)
    assert latency.max == seconds.max()


def test_the_histogram_can_be_read_back_with_every_request():
    """By any reader of HDR histograms, in nanoseconds."""
    seconds = DRAW.lognormal(-5, 1, 5000)
    read = HdrHistogram.decode(histogram_of(seconds).encode())
    assert read.get_total_count() == 5000
    assert read.get_value_at_percentile(50) * 1e-9 == pytest.approx(np.median(seconds), rel=2 * THREE_DIGITS)


@pytest.mark.parametrize(("count", "p99", "p999"), [(99, 99, None), (100, 99, None),
                                                    (1001, 991, 1000)])  # fmt: skip
def test_the_rank_of_a_quantile_is_the_least_that_holds_its_share_of_all(count, p99, p999):
    """The p99 of fewer than 100 requests is their maximum. A p99.9 needs 1,000 requests."""
    latency = quantiles_of(np.arange(1.0, count + 1), NONE)
    assert (latency.p99, latency.p999) == (p99, p999)


def timed(**counts) -> Quantiles:
    """The latencies of a trial: how many requests took so many milliseconds, answered or (`f`) failed."""
    found = {"a": [], "f": []}
    for name, count in counts.items():
        found[name[0]] += [int(name[1:]) / 1000] * count
    return quantiles_of(np.array(found["a"]), np.array(found["f"]))


def test_a_quantile_among_failed_requests_is_at_least_as_long_as_they_took():
    """3 % time out at 300 ms: the p99 is no less, and what lies below the failures is exact."""
    latency = timed(a9=970, f300=30)
    assert (latency.p50, latency.p95, latency.p99) == (0.009, 0.009, 0.3)
    assert latency.mean == pytest.approx(0.97 * 0.009 + 0.03 * 0.3)
    assert latency.max == 0.3
    assert latency.at_least == ["mean", "p99", "p999", "max"]


def test_a_request_that_fails_fast_makes_no_quantile_shorter():
    """It was not answered: it ranks after every successful request, and never in front of one."""
    latency = timed(f1=100, a5=450, a9=450)
    assert (latency.p50, latency.p90) == (0.009, 0.009)
    assert latency.at_least == ["mean", "p95", "p99", "p999", "max"]
    assert timed(a5=450, a9=450).p50 == 0.005


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


def test_failures_too_rare_for_a_quantile_leave_it_exact():
    """One in a thousand is beyond the 99th percentile, and not beyond the mean and the maximum."""
    latency = timed(a5=998, a9=1, f300=1)
    assert (latency.p99, latency.p999) == (0.005, 0.009)
    assert latency.at_least == ["mean", "max"]


def test_without_a_successful_request_there_are_no_quantiles():
    """The quantiles of a trial without a successful request are None, not 0."""
    assert quantiles_of(NONE, np.array([0.3])) is None
    assert overhead_of(records([], []), np.empty(0, np.int64), lambda _: 0.0) is None


def test_overhead_is_latency_minus_the_delay_of_that_very_request():
    """Exact, also where a request was answered earlier than it asked for."""
    asked = {7: 0.1, 8: 0.2, 9: 0.3}
    overhead = overhead_of(records([0] * 3, [0.101, 0.205, 0.299]), np.array([7, 8, 9]), lambda number: asked[number])
    assert overhead.p50 == pytest.approx(0.001)
    assert overhead.mean == pytest.approx((0.001 + 0.005 - 0.001) / 3)
    assert overhead.max == pytest.approx(0.005)


def test_the_overhead_of_failed_requests_ranks_as_their_latency():
    """Whatever its code, an error is no success, even one that came before the delay was over."""
    overhead = overhead_of(records([0] * 4, [0.101, 0.102, 0.001, 0.4], [0, 0, 1, 64]), np.arange(4), lambda _: 0.1)
    assert overhead.p50 == pytest.approx(0.002)
    assert overhead.p90 == pytest.approx(0.3)
    assert overhead.at_least == ["mean", "p90", "p95", "p99", "max"]


def test_slices_over_time_add_up_to_all_requests_and_errors():
    """None is lost at the ends: not the first, not one that ended with the clock or just after it."""
    many, wall, began = 6000, 3.0, 500.0
    ends = np.concatenate(([began, began + wall, began + wall + 0.01], began + DRAW.uniform(0, wall, many - 3)))
    error = DRAW.integers(0, 2, many)
    rows = slices_of(records(ends - 0.001, np.full(many, 0.001), error), began, wall)
    assert len(rows) == 60
    assert sum(row.requests for row in rows) == many
    assert sum(row.errors for row in rows) == (error > 0).sum()
    assert [row.at for row in rows] == pytest.approx(np.arange(60) * wall / 60)


def test_a_slice_has_the_quantiles_of_its_requests():
    """And none that falls on a failed one."""
    rows = slices_of(records([0, 0, 0, 30, 40, 40], [0.1, 0.3, 0.5, 0.2, 0.3, 0.1], [0, 0, 0, 1, 0, 1]), 0, 60)
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
    assert in_turn(workload, Samples(made, numbers, {}, {}, {})) == pytest.approx(share)


def test_connections_that_nobody_could_count_are_unknown():
    """A function whose library connects outside Python succeeds without a connection that the lab sees."""
    planned, succeeded = a_planned_trial(), a_shard_report(a_planned_trial(), 0, 1).counts
    outcome = a_shard_report(planned, 0, 1).outcome
    kept = replace(outcome, connections_opened=0)
    unseen = replace(kept, connections_in_all=0)
    refused = succeeded.model_copy(update={"errors": {"connect": succeeded.finished}})
    assert connections_opened(planned, kept, succeeded) == 0
    assert connections_opened(planned, unseen, succeeded) is None
    assert connections_opened(planned, unseen, refused) == 0
