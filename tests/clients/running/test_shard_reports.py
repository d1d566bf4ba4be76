"""The reports of shards: how their histograms are added, and which reports are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError

from clientlab.results.shard import ShardReport
from clientlab.results.trial import utc_now
from clientlab.running.merged_shards import merged_trial
from clientlab.running.quantiles import quantiles_of, quantiles_of_histograms, times_of
from clientlab.running.trial_result import Begun
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial, a_shard_report


@pytest.mark.parametrize("failed", [0, 40])
def test_quantiles_of_added_histograms_are_those_of_the_pooled_times(failed):
    """To the resolution of a histogram, a thousandth; mean and maximum exactly."""
    parts = 9
    draw = np.random.default_rng(parts)
    answered, lost = draw.lognormal(-6, 1.2, 5000), draw.lognormal(-4, 1.0, failed)
    times = [times_of(*(np.array_split(whole, parts)[place] for whole in (answered, lost))) for place in range(parts)]
    found, pooled = quantiles_of_histograms(times), quantiles_of(answered, lost)
    assert found.at_least == pooled.at_least
    for name in ("p50", "p90", "p95", "p99", "p999"):
        assert getattr(found, name) == pytest.approx(getattr(pooled, name), rel=1e-3)
    assert (found.mean, found.max) == pytest.approx((pooled.mean, pooled.max))


@pytest.mark.parametrize(
    "changed",
    [{"wall_seconds": math.inf}, {"processes": -1}],
)
def test_a_report_with_an_impossible_measurement_is_refused(changed):
    """Whatever a worker sends: it is checked before it is added to the other reports."""
    document = a_shard_report(a_planned_trial(), 0, 1).model_dump(mode="json")
    assert ShardReport.model_validate(document).outcome.wall_seconds == pytest.approx(0.004)
    with pytest.raises(ValidationError, match=next(iter(changed))):
        ShardReport.model_validate({**document, "outcome": document["outcome"] | changed})


PLANNED = a_planned_trial("urllib3@threads").model_copy(update={"concurrency": 5})


def test_shards_that_began_further_apart_than_the_trial_may_take_fail_it():
    """One of them is fifty years off."""
    reports = [a_shard_report(PLANNED, 0, 2), a_shard_report(PLANNED, 1, 2, began=1e8)]
    trial = merged_trial(Begun(PLANNED, Workload(requests=8, shards=2), utc_now(), 30.0), reports)
    assert trial.status == "failed"


def test_a_shard_that_lacks_requests_fails_the_trial():
    """The report adds up; the trial as a whole lacks a request."""
    reports = [a_shard_report(PLANNED, 0, 2), a_shard_report(PLANNED, 1, 2, requests=3)]
    trial = merged_trial(Begun(PLANNED, Workload(requests=8, shards=2), utc_now(), 30.0), reports)
    assert (trial.status, trial.reason) == ("failed", "7 of 8 requests were finished; shard 2: 3 of 4")
