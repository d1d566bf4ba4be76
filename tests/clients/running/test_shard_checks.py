"""Reports of shards that do not add up: the trial has failed with the cause, and the run goes on."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.results.shard import ShardReport
from clientlab.running.quantiles import times_of
from clientlab.service.given_trial import reported_trial
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial, a_shard_report

PLANNED = a_planned_trial("urllib3@threads").model_copy(update={"concurrency": 5})
NONE = np.zeros(0)


def changed(report: ShardReport, **changes) -> ShardReport:
    """The report as it would arrive, with changes of its parts: `outcome` and `counts` are mappings."""
    document = report.model_dump(mode="json")
    parts = {name: document[name] | changes.pop(name) for name in ("outcome", "counts") if name in changes}
    return ShardReport.model_validate({**document, **parts}).model_copy(update=changes)


def trial_of(**changes):
    """The trial of two shards whose reports both have the changes."""
    reports = [changed(a_shard_report(PLANNED, place, 2), **changes) for place in range(2)]
    return reported_trial(PLANNED, Workload(requests=8, shards=2), reports)


def test_reports_that_add_up_are_a_measured_trial():
    """So that each change below is the reason of its refusal."""
    assert (trial_of().status, trial_of().requests) == ("done", 8)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"counts": {"finished": 5, "sent": 5}}, "5 requests of 4"),
        ({"latency": times_of(np.full(4, 2.0), NONE)}, "a request took 2 s of 0.004 s"),
    ],
)
def test_a_report_that_contradicts_itself_fails_the_trial_with_the_cause(changes, why):
    """The line names the shard and its host."""
    trial = trial_of(**changes)
    assert trial.status == "failed"
    assert "shard 1 of 2 on host-0" in trial.reason
    assert why in trial.reason


def test_an_open_load_without_its_figures_fails_the_trial():
    """A closed load has none."""
    reports = [a_shard_report(PLANNED, place, 2) for place in range(2)]
    trial = reported_trial(PLANNED, Workload(rate=100.0, duration=0.08, requests=None, shards=2), reports)
    assert (trial.status, "open load" in trial.reason) == ("failed", True)


def test_shards_that_began_further_apart_than_the_trial_may_take_fail_it():
    """One of them is fifty years off."""
    reports = [a_shard_report(PLANNED, 0, 2), a_shard_report(PLANNED, 1, 2, began=1e8)]
    trial = reported_trial(PLANNED, Workload(requests=8, shards=2), reports)
    assert trial.status == "failed"


def test_a_shard_that_lacks_requests_fails_the_trial():
    """The report adds up; the trial as a whole lacks a request."""
    reports = [a_shard_report(PLANNED, 0, 2), a_shard_report(PLANNED, 1, 2, requests=3)]
    trial = reported_trial(PLANNED, Workload(requests=8, shards=2), reports)
    assert (trial.status, trial.reason) == ("failed", "7 of 8 requests were finished; shard 2: 3 of 4")
