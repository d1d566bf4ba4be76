"""From samples to figures: against numpy, and over time."""

from __future__ import annotations

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from clientlab.analysis import summary
from clientlab.analysis.histogram import histogram_of
from clientlab.samples.log_reader import RECORD

THREE_DIGITS = 1.1e-3  # of the value, with the histogram's rounding down to its bucket


def records(start, seconds, error=0):
    """Records of requests, by column."""
    made = np.zeros(len(seconds), RECORD)
    made["start"], made["seconds"], made["error"], made["done"] = start, seconds, error, 1
    return made


DRAW = np.random.default_rng(3)
MANY = 20_001  # the quantiles asked for then fall on one request, whichever rule of ranks is used


@pytest.mark.parametrize(
    "seconds",
    [
        DRAW.lognormal(-5, 1, MANY),
        DRAW.uniform(1e-6, 5e-5, MANY),
        DRAW.exponential(20, MANY),
        np.full(MANY, 0.140_123),
        np.array([0.001, 0.002, 10.0] * 7000),
    ],
    ids=["lognormal", "microseconds", "minutes", "constant", "two humps"],
)
def test_quantiles_are_right_to_three_digits(seconds):
    """As numpy has them, from microseconds to minutes; mean and maximum exactly."""
    latency = summary.latency_of(seconds, histogram_of(seconds))
    for name, percent in summary.QUANTILES.items():
        exact = np.quantile(seconds, percent / 100, method="inverted_cdf")
        assert latency[name] == pytest.approx(exact, rel=THREE_DIGITS), name
    assert latency["p50"] <= latency["p90"] <= latency["p95"] <= latency["p99"] <= latency["p999"] <= latency["max"]
    assert latency["mean"] == pytest.approx(seconds.mean(), rel=1e-12)
    assert latency["max"] == seconds.max()


def test_the_histogram_can_be_read_back_with_every_request():
    """By any reader of HDR histograms, in nanoseconds."""
    seconds = DRAW.lognormal(-5, 1, 5000)
    read = HdrHistogram.decode(histogram_of(seconds).encode())
    assert read.get_total_count() == 5000
    assert read.get_value_at_percentile(50) * 1e-9 == pytest.approx(np.median(seconds), rel=2 * THREE_DIGITS)


@pytest.mark.parametrize("seconds", [0.0, 1e-10, 7200.0])
def test_what_is_beyond_the_histogram_is_still_counted(seconds):
    """At its ends: a nanosecond, and an hour."""
    assert histogram_of(np.array([seconds])).get_total_count() == 1


def test_one_request_is_all_quantiles():
    """The smallest trial there is."""
    latency = summary.latency_of(np.array([0.25]), histogram_of(np.array([0.25])))
    assert list(latency.values()) == pytest.approx([0.25] * 7, rel=THREE_DIGITS)
    assert list(latency) == ["mean", "p50", "p90", "p95", "p99", "p999", "max"]


def test_no_quantile_is_beyond_the_maximum():
    """Though a histogram's bucket may end beyond it: few requests, of any size."""
    for seconds in DRAW.lognormal(-6, 2, (200, 3)):
        latency = summary.latency_of(seconds, histogram_of(seconds))
        assert latency["p999"] <= latency["max"] == seconds.max()


def test_without_a_successful_request_there_are_no_quantiles():
    """None, and not zeros."""
    none = np.empty(0)
    assert summary.latency_of(none, histogram_of(none)) is None
    assert summary.overhead_of(records([], []), np.empty(0, np.int64), lambda _: 0.0) is None


def test_requests_with_an_error_are_no_successes():
    """Whatever their code."""
    assert summary.succeeded(records([0] * 4, [1, 2, 3, 4], [0, 1, 64, 0]))["seconds"].tolist() == [1, 4]


def test_overhead_is_latency_minus_the_delay_of_that_very_request():
    """Exact, also where a request was answered earlier than it asked for."""
    asked = {7: 0.1, 8: 0.2, 9: 0.3}
    overhead = summary.overhead_of(
        records([0] * 3, [0.101, 0.205, 0.299]), np.array([7, 8, 9]), lambda number: asked[number]
    )
    assert overhead["p50"] == pytest.approx(0.001)
    assert overhead["mean"] == pytest.approx((0.001 + 0.005 - 0.001) / 3)
    assert overhead["max"] == pytest.approx(0.005)


@pytest.mark.parametrize("many", [1, 2, 12, 13, 50, 101])
def test_under_one_delay_latency_and_overhead_differ_by_it_at_every_quantile(many):
    """However few and far apart the requests are: both are figures of the same request."""
    made = records([0] * many, DRAW.uniform(0.02, 2, many))
    latency = summary.latency_of(made["seconds"], histogram_of(made["seconds"]))
    overhead = summary.overhead_of(made, np.arange(many), lambda _: 0.02)
    for name, seconds in latency.items():
        assert seconds == pytest.approx(overhead[name] + 0.02, rel=THREE_DIGITS), name


def test_slices_over_time_add_up_to_all_requests_and_errors():
    """None is lost at the ends: not the first, not one that ended with the clock or just after it."""
    many, wall, began = 6000, 3.0, 500.0
    ends = np.concatenate(([began, began + wall, began + wall + 0.01], began + DRAW.uniform(0, wall, many - 3)))
    error = DRAW.integers(0, 2, many)
    rows = summary.over_time(records(ends - 0.001, np.full(many, 0.001), error), began, wall)
    assert len(rows) == 60
    assert sum(row["requests"] for row in rows) == many
    assert sum(row["errors"] for row in rows) == (error > 0).sum()
    assert [row["at"] for row in rows] == pytest.approx(np.arange(60) * wall / 60)


def test_a_slice_has_the_quantiles_of_its_successful_requests():
    """And none where nothing succeeded."""
    rows = summary.over_time(records([0, 0, 0, 30], [0.1, 0.3, 0.5, 0.2], [0, 0, 0, 1]), 0.0, 60.0)
    assert rows[0] == {"at": 0.0, "requests": 3, "errors": 0, "p50": 0.3, "p99": pytest.approx(0.496)}
    assert rows[1] == {"at": 1.0, "requests": 0, "errors": 0}
    assert rows[30] == {"at": 30.0, "requests": 1, "errors": 1}
