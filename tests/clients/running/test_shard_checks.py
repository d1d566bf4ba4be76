"""Reports of shards that do not add up: the trial has failed with the cause, and the run goes on."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.results.shard import ScheduleCounts, ShardLoad, ShardReport, ShardSlices
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
        ({"counts": {"errors": {"reset": 5}}}, "5 errors of 4 requests"),
        ({"counts": {"errors": {"reset": 1}}}, "latency: 4 and 0 requests in its histograms, and not 3 and 1"),
        ({"counts": {"finished": 3, "sent": 3}}, "latency: 4 and 0 requests in its histograms, and not 3 and 0"),
        ({"outcome": {"wall_seconds": 1e-9}}, "a request took 0.001 s of 1e-09 s"),
        ({"outcome": {"wall_seconds": 1e-30}}, "a request took 0.001 s of 1e-30 s"),
        ({"latency": times_of(np.full(4, 2.0), NONE)}, "a request took 2 s of 0.004 s"),
        ({"latency": times_of(np.full(1, 1e-3), NONE)}, "latency: 1 and 0 requests in its histograms, and not 4 and 0"),
        ({"overhead": times_of(np.full(9, 1e-3), NONE)}, "overhead: 9 and 0 requests"),
        (
            {"latency": times_of(np.full(4, 5e-4), NONE).model_copy(update={"longest_seconds": 0.0})},
            "longest_seconds 0",
        ),
        ({"latency": times_of(np.full(4, 1e-3), NONE).model_copy(update={"sum_seconds": -1e12})}, "sum_seconds -1e+12"),
        ({"counts": {"sent": 9}}, "9 requests were sent, and 4 of them ended"),
        ({"counts": {"in_flight_seconds": 1e12}}, "in_flight_seconds 1e+12"),
        ({"counts": {"in_flight_seconds": 0.0}}, "in_flight_seconds 0"),
        ({"outcome": {"processes": 0}}, "0 processes with 1 clients"),
        ({"slices": ShardSlices(exponent=-4, ended=(3,), failed=(0,))}, "slices.ended has 3 requests, and not 4"),
    ],
)
def test_a_report_that_contradicts_itself_fails_the_trial_with_the_cause(changes, why):
    """The line names the shard and its host."""
    trial = trial_of(**changes)
    assert trial.status == "failed"
    assert trial.reason.startswith("the report of shard 1 of 2 on host-0 does not add up: ")
    assert why in trial.reason


@pytest.mark.parametrize("cores", [1e-30, 1e12])
def test_no_number_of_cores_breaks_the_run(cores):
    """A share of cores that is too small for a float divides nothing by zero."""
    assert trial_of(cores=cores, machine_cores=cores).status in {"done", "failed"}


def test_an_open_load_without_its_figures_fails_the_trial():
    """A closed load has none."""
    reports = [a_shard_report(PLANNED, place, 2) for place in range(2)]
    trial = reported_trial(PLANNED, Workload(rate=100.0, duration=0.08, requests=None, shards=2), reports)
    assert (trial.status, "lacks the figures of an open load" in trial.reason) == ("failed", True)


def test_shards_that_began_further_apart_than_the_trial_may_take_fail_it():
    """One of them is fifty years off."""
    reports = [a_shard_report(PLANNED, 0, 2), a_shard_report(PLANNED, 1, 2, began=1e8)]
    trial = reported_trial(PLANNED, Workload(requests=8, shards=2), reports)
    assert trial.status == "failed"
    assert trial.reason.startswith("the shards began 1,600,000,000 s apart")


def test_an_open_load_whose_counts_differ_fails_the_trial():
    """The rate that a trial achieved follows from the requests that its load has sent."""
    counts = ScheduleCounts(
        sent=400, dropped=0, last_sent_seconds=0.0, most_backlog=1, most_in_flight=1, in_flight_at_end=0
    )
    times = times_of(np.full(4, 1e-3), NONE)
    load = ShardLoad(counts=counts, lateness=times, sent=times)
    reports = [a_shard_report(PLANNED, place, 2, load=load) for place in range(2)]
    trial = reported_trial(PLANNED, Workload(rate=100.0, duration=0.08, requests=None, shards=2), reports)
    assert (trial.status, "its load has 400 sent and 0 dropped requests" in trial.reason) == ("failed", True)


def test_a_shard_that_lacks_requests_fails_the_trial():
    """The report adds up; the trial as a whole lacks a request."""
    reports = [a_shard_report(PLANNED, 0, 2), a_shard_report(PLANNED, 1, 2, requests=3)]
    trial = reported_trial(PLANNED, Workload(requests=8, shards=2), reports)
    assert (trial.status, trial.reason) == ("failed", "7 of 8 requests were finished; shard 2: 3 of 4")


def test_reports_without_a_request_are_a_failed_trial():
    """Nothing divides by the number of requests."""
    reports = [a_shard_report(PLANNED, place, 2, requests=0) for place in range(2)]
    trial = reported_trial(PLANNED, Workload(duration=0.08, requests=None, shards=2), reports)
    assert (trial.status, trial.reason) == ("failed", "no request was finished")
