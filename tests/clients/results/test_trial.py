"""Parts of a run: made by validation, so that nothing impossible gets into it."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from clientlab.results.part import first_problem
from clientlab.results.plan import MOST_ARMS
from clientlab.results.trial import Trial, utc_now
from clients.documents import a_planned_trial, a_run, a_trial

DONE = {"status": "done", "requests": 7, "wall_seconds": 0.1}


@pytest.mark.parametrize(
    ("figures", "named"),
    [
        ({"connections_opened": -1}, "connections_opened"),
        ({"requests_per_second": math.nan}, "requests_per_second"),
        ({"busy": {"client": math.nan}}, "busy.client"),
        ({"latency_seconds": {"mean": 1.0}}, "latency_seconds.p50"),
        ({"status": "planned"}, "status"),
    ],
)
def test_an_impossible_figure_is_refused_when_the_trial_is_made(figures, named):
    """In one line that names the figure."""
    with pytest.raises(ValidationError) as caught:
        Trial.of(a_planned_trial(), started=utc_now(), **DONE | figures)
    assert named in first_problem(caught.value)


def test_more_arms_than_a_run_may_have_are_refused():
    """In the line that names the field."""
    plan = a_run(a_trial()).experiment
    many = [plan.arms[0].model_copy(update={"name": f"a{place}"}) for place in range(MOST_ARMS + 1)]
    with pytest.raises(ValidationError, match="arms"):
        type(plan).model_validate(plan.model_dump() | {"arms": many})


def test_an_impossible_figure_is_refused_in_a_copy_too():
    """Pydantic's own copies are not validated."""
    trial = Trial.of(a_planned_trial(), started=utc_now(), **DONE)
    assert trial.model_copy(update={"requests": 8}).requests == 8
    with pytest.raises(ValidationError, match="connections_opened"):
        trial.model_copy(update={"connections_opened": -1})
