"""Parts of a run: made by validation, so that nothing impossible gets into it."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from clientlab.results.trial import Trial, utc_now
from clientlab.validation import first_problem
from clients.documents import a_planned_trial

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
    with pytest.raises(ValidationError) as caught:
        Trial.of(a_planned_trial(), started=utc_now(), **DONE | figures)
    assert named in str(first_problem(caught.value))


def test_an_impossible_figure_is_refused_in_a_copy_too():
    """Pydantic's own copies are not validated."""
    trial = Trial.of(a_planned_trial(), started=utc_now(), **DONE)
    assert trial.model_copy(update={"requests": 8}).requests == 8
    with pytest.raises(ValidationError, match="connections_opened"):
        trial.model_copy(update={"connections_opened": -1})
