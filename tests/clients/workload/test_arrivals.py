"""Arrivals of an open load: when each request is planned, by rate, stages, spacing and seed."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, stdev

import pytest
from pydantic import ValidationError

from clientlab.errors import FieldError
from clientlab.workload import arrivals
from clientlab.workload.arrivals import Stages, rate_of
from clientlab.workload.load import arrivals_of, check_load, requests_in
from clientlab.workload.workload import Workload
from clients.workload_documents import workload_of_document


def starts(**fields) -> list[float]:
    schedule = arrivals_of(Workload(**fields))
    return [schedule.start_of(number) for number in range(schedule.count)]


def test_uniform_arrivals_are_evenly_spaced_from_the_beginning_to_the_end_of_the_duration():
    found = starts(rate=200, duration=5.0)
    assert len(found) == 1000
    assert found[:3] == [0.0, 0.005, 0.01]
    assert found[-1] == pytest.approx(4.995)
    assert starts(rate=rate_of("30/m"), requests=3) == [0.0, 2.0, 4.0]


def test_a_stage_changes_the_rate_at_its_time_and_not_before():
    """100 a second for 30 s, then 1,000 a second: no request is lost at the step."""
    found = starts(stages=Stages.parse("0s:100/s,30s:1000/s"), duration=40.0)
    assert len(found) == 3000 + 10_000
    assert found[2999:3002] == pytest.approx([29.99, 30.0, 30.001])
    assert {round(later - earlier, 9) for earlier, later in pairwise(found[3000:])} == {0.001}


def test_poisson_arrivals_have_the_mean_and_the_spread_of_exponential_gaps():
    """And their number varies as that of a Poisson process does: its variance is its mean."""
    gaps = [later - earlier for earlier, later in pairwise(starts(rate=200, arrivals="poisson", requests=20_000))]
    assert mean(gaps) == pytest.approx(0.005, rel=0.03)
    assert stdev(gaps) == pytest.approx(0.005, rel=0.03)
    counts = [len(starts(rate=100, arrivals="poisson", duration=1.0, seed=seed)) for seed in range(300)]
    assert mean(counts) == pytest.approx(100, rel=0.02)
    assert stdev(counts) == pytest.approx(10, rel=0.15)


def test_the_start_of_a_request_depends_on_seed_and_number_alone():
    short, long = (starts(rate=50, arrivals="poisson", requests=count) for count in (20, 900))
    assert short == long[:20]
    assert short != starts(rate=50, arrivals="poisson", requests=20, seed=2)
    arrivals.planned.cache_clear()
    assert starts(rate=50, arrivals="poisson", requests=20) == short


@pytest.mark.parametrize("spacing", ["uniform", "poisson"])
def test_a_request_is_due_from_its_planned_start_on(spacing):
    schedule = arrivals_of(Workload(stages=Stages.parse("0s:50/s,1s:200/s"), duration=2.0, arrivals=spacing))
    assert (schedule.due(-1.0), schedule.due(99.0)) == (0, schedule.count)
    for number in range(schedule.count - 1):
        start, following = schedule.start_of(number), schedule.start_of(number + 1)
        assert schedule.due(start + 1e-7) == schedule.due((start + following) / 2) == number + 1


def test_the_number_of_requests_is_known_before_the_trial():
    """A duration decides it in an open load; nothing does in a closed one."""
    assert requests_in(Workload(rate=200, duration=2.0)) == 400
    assert requests_in(Workload(stages=Stages.parse("0s:10/s,1s:20/s"), duration=2.0)) == 30
    assert requests_in(Workload(duration=2.0)) is None
    assert requests_in(Workload(requests=7)) == 7


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rate": 0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": 5, "stages": "0s:1/s"}, "rate"),
        ({"stages": "0s:5/s,3s:9/s", "duration": 3.0}, "duration"),
        ({"stages": "0s:5/s,3s:9/s", "requests": 15}, "stages"),
        ({"rate": 5, "requests": 7, "duration": 2.0}, "requests"),
        ({"rate": 1e9, "duration": 1e6}, "duration"),
        ({"rate": 5, "arrivals": "poisson", "requests": 10**9}, "requests"),
        ({"max_late": 1.0}, "max_late"),
        ({"arrivals": "poisson"}, "arrivals"),
    ],
)
def test_a_load_that_cannot_be_sent_is_refused_at_its_field(fields, field):
    with pytest.raises(FieldError) as refusal:
        check_load(workload_of_document(**fields))
    assert refusal.value.key == (field,)


@pytest.mark.parametrize("fields", [{"rate": "5/h"}, {"stages": "1s:5/s"}, {"stages": "0s:5/s,0s:6/s"}])
def test_a_text_that_is_no_rate_or_no_stages_is_refused_where_a_document_is_read(fields):
    with pytest.raises(ValidationError, match=next(iter(fields))):
        workload_of_document(**fields)
