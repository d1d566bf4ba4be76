"""Parts of a run: made by validation, so that nothing impossible gets into it."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from clientlab.results.trial import Trial, utc_now
from clientlab.validation import first_problem
from clients.documents import a_planned_trial

DONE = {"status": "done", "figures": {"requests": 7}}
USED = {
    "began": 0.0,
    "wall_seconds": 0.1,
    "cpu_seconds": 0.1,
    "connections_begun": 1,
    "connections_in_all": 1,
    "processes": 1,
}


@pytest.mark.parametrize(
    ("figures", "named"),
    [
        (
            {"measured": USED | {"connections_opened": -1}},
            "measured.connections_opened",
        ),
        ({"figures": {"requests_per_second": math.nan}}, "figures.requests_per_second"),
        (
            {"verdict": {"bound": "mixed", "shares": {"client": math.nan}}},
            "verdict.shares.client",
        ),
        (
            {"figures": {"latency_seconds": {"mean": 1.0}}},
            "figures.latency_seconds.p50",
        ),
        ({"status": "planned"}, "status"),
    ],
)
def test_an_impossible_figure_is_refused_when_the_trial_is_made(figures, named):
    with pytest.raises(ValidationError) as caught:
        Trial(planned=a_planned_trial(), started=utc_now(), **DONE | figures)
    assert named in str(first_problem(caught.value))


def test_an_impossible_figure_is_refused_in_a_copy_too():
    """Pydantic's own copies are not validated."""
    trial = Trial(planned=a_planned_trial(), started=utc_now(), **DONE)
    assert trial.figures.updated(requests=8).requests == 8
    with pytest.raises(ValidationError, match="requests"):
        trial.figures.updated(requests=-1)
