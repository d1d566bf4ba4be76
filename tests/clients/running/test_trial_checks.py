"""Results of undivided trials that do not add up: the trial has failed with the cause, and the run goes on."""

from __future__ import annotations

import time

import numpy as np
import pytest

from clientlab.results.trial import utc_now
from clientlab.running.quantiles import histogram_part
from clientlab.service.given_trial import checked_trial
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_planned_trial, a_trial, quantiles

PLANNED = a_planned_trial()
SECONDS = np.full(4, 0.002)


def judged(workload: Workload | None = None, **changes):
    """The trial of four requests of 2 ms with these changes, as the lab takes it from a worker."""
    whole = {
        "requests": 4, "requests_per_second": 4.0, "histogram": histogram_part(SECONDS), "started": utc_now(),
        "latency_seconds": quantiles(0.002, 0.002),
    }  # fmt: skip
    return checked_trial(PLANNED, workload or Workload(requests=4), a_trial(**(whole | changes)), time.time())


def test_a_trial_that_adds_up_is_taken():
    """So that each change below is the reason of its refusal. A failed trial has no figures that could contradict."""
    assert (judged().status, judged().requests) == ("done", 4)
    assert judged(tail_seconds=0.1, requests_per_second=2.5).status == "done"  # an estimate from 0.9 s of full load
    failed = a_failed_trial("urllib3", "its process was lost", started=utc_now())
    assert checked_trial(PLANNED, Workload(requests=4), failed, time.time()) == failed


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"requests": 5, "requests_per_second": 5.0}, "5 requests of 4"),
        ({"requests_per_second": 5000.0}, "requests_per_second 5000 with 4 by its counts"),
        ({"started": "1974-05-06T07:08:09+00:00"}, "it was started at 1974-05-06T07:08:09+00:00 by its clock"),
    ],
)
def test_a_trial_that_contradicts_itself_has_failed(changes, why):
    """In a line that says what does not add up."""
    trial = judged(**changes)
    assert trial.status == "failed"
    assert why in trial.reason.replace("4.0 ", "4 ").replace("5000.0 ", "5000 ")
    assert (trial.requests, trial.histogram) == (0, None)
