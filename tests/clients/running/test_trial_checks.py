"""Results of undivided trials that do not add up: the trial has failed with the cause, and the run goes on."""

from __future__ import annotations

import time

import numpy as np
import pytest

from clientlab.results.trial import utc_now
from clientlab.running.quantiles import histogram_part
from clientlab.service.given_trial import checked_trial
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_planned_trial, a_trial, an_open_trial, quantiles

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
    assert judged(tail_seconds=0.1, requests_per_second=2.5).status == "done"  # estimated: its load was whole for 0.9 s
    failed = a_failed_trial("urllib3", "its process was lost", started=utc_now())
    assert checked_trial(PLANNED, Workload(requests=4), failed, time.time()) == failed


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"requests": 5, "requests_per_second": 5.0}, "5 requests of 4"),
        ({"requests": 3}, "status 'done' with 3 successful requests"),
        ({"status": "failed", "reason": "x"}, "status 'failed' with 4 successful requests"),
        ({"errors": {"reset": 1}}, "4 requests in its histogram, and not 3"),
        ({"histogram": histogram_part(np.full(1, 0.002))}, "1 requests in its histogram, and not 4"),
        ({"failed_histogram": histogram_part(SECONDS)}, "4 requests in its failed_histogram, and not 0"),
        ({"latency_seconds": quantiles(0.002, 0.9)}, "latency_seconds.max 0.9 with 0.002"),
        ({"latency_seconds": quantiles(0.5, 0.002)}, "latency_seconds.mean 0.5 with 0.002"),
        ({"over_time": [{"at": 0.0, "requests": 9, "errors": 0}]}, "9 requests over time, and not 4"),
        ({"wall_seconds": 1e-9}, "requests_per_second 4 with 4e+09 by its counts"),
        ({"status": "failed", "partial": True, "reason": "x", "wall_seconds": 0.0}, "wall_seconds 0"),
        ({"status": "failed", "partial": True, "reason": "x", "errors": {"reset": 9}}, "9 errors of 4 requests"),
        ({"requests_per_second": 5000.0}, "requests_per_second 5000 with 4 by its counts"),
        ({"tail_seconds": 0.1, "requests_per_second": 1.9}, "requests_per_second 1.9 with 4 by its counts"),
        ({"tail_seconds": 0.1, "requests_per_second": 4.6}, "requests_per_second 4.6 with 4 by its counts"),
        ({"histogram": None, "latency_seconds": quantiles(0.002, 7.0)}, "a request took 7 s of 1 s"),
        ({"started": "1974-05-06T07:08:09+00:00"}, "it was started at 1974-05-06T07:08:09+00:00 by its clock"),
        ({"open_load": an_open_trial().open_load}, "it has figures of an open load"),
    ],
)
def test_a_trial_that_contradicts_itself_has_failed(changes, why):
    """In a line that says what does not add up."""
    trial = judged(**changes)
    assert trial.status == "failed"
    assert trial.reason.startswith("the worker's result does not add up: ")
    assert why in trial.reason.replace("4.0 ", "4 ").replace("5000.0 ", "5000 ")
    assert (trial.requests, trial.histogram) == (0, None)


def test_a_trial_of_an_open_load_has_the_figures_of_one():
    """Its dropped requests are errors of that kind."""
    opened = Workload(requests=4, rate=4.0)
    load = an_open_trial().open_load
    assert "lacks the figures of an open load" in judged(opened).reason
    assert "3 requests were dropped" in judged(opened, open_load=load.model_copy(update={"dropped": 3})).reason
    assert judged(opened, open_load=load).status == "done"
