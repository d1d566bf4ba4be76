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
from clientlab.workload.workload import Workload, check
from clients.workload_documents import workload_of_document


def starts(**fields) -> list[float]:
    """The planned starts of a workload."""
    schedule = arrivals_of(Workload(**fields))
    return [schedule.start_of(number) for number in range(schedule.count)]


def test_uniform_arrivals_are_evenly_spaced_from_the_beginning_to_the_end_of_the_duration():
    """The request that would begin at the end is none of them."""
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
    """Whatever the length of the trial, so that rounds, arms and processes agree."""
    short, long = (starts(rate=50, arrivals="poisson", requests=count) for count in (20, 900))
    assert short == long[:20]
    assert short != starts(rate=50, arrivals="poisson", requests=20, seed=2)
    arrivals.planned.cache_clear()
    assert starts(rate=50, arrivals="poisson", requests=20) == short


@pytest.mark.parametrize("spacing", ["uniform", "poisson"])
def test_a_request_is_due_from_its_planned_start_on(spacing):
    """None before the schedule begins, and all from its end on."""
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


REFUSED = [
    ({"rate": 0}, "rate", "write more than 0"),
    ({"rate": 1e308}, "rate", "write 1e-06 to 1e"),
    ({"rate": 1e-300}, "rate", "write 1e-06 to 1e"),
    ({"rate": -3.0}, "rate", "write more than 0"),
    ({"rate": float("nan")}, "rate", "write more than 0"),
    ({"rate": 5, "stages": "0s:1/s"}, "rate", "leave out one"),
    ({"stages": "0s:5/s,3s:9/s", "duration": 3.0}, "duration", "the trial is over then"),
    ({"stages": "0s:5/s,3s:9/s", "requests": 15}, "stages", "before the last stage begins; set duration"),
    ({"rate": 5, "requests": 7, "duration": 2.0}, "requests", "10 requests arrive in 2 s"),
    ({"rate": 1e9, "duration": 1e6}, "duration", "no trial has more than 1,000,000,000"),
    ({"rate": 5, "arrivals": "poisson", "requests": 10**9}, "requests", "each arrival is drawn before the trial"),
    ({"rate": 1e3, "arrivals": "poisson", "duration": 1e5}, "duration", "no trial has more than 10,000,000"),
    ({"max_late": 1.0}, "max_late", "only an open load has it"),
    ({"arrivals": "poisson"}, "arrivals", "only an open load has it"),
]


@pytest.mark.parametrize(("fields", "field", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_load_that_cannot_be_sent_is_refused_at_its_field(fields, field, says):
    """An impossible load is refused at its field, with what to write instead."""
    with pytest.raises(FieldError, match=says) as refusal:
        check_load(workload_of_document(**fields))
    assert refusal.value.key == (field,)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"rate": "fast"}, r"rate\n.*'fast' is not a rate; write 500/s"),
        ({"rate": "5/h"}, r"rate\n.*is not a rate"),
        ({"stages": "1s:5/s"}, r"stages\n.*the first stage begins at 1 s"),
        ({"stages": "0s:5/s,0s:6/s"}, r"stages\n.*in the order of their times"),
        ({"stages": "0s:5/s,3s"}, r"stages\n.*'3s' is not a stage"),
        ({"stages": "0s:5/s,3s:0/s"}, r"stages\n.*write more than 0"),
        ({"stages": 5}, r"'5' is not a stage"),
    ],
)
def test_a_text_that_is_no_rate_or_no_stages_is_refused_where_a_document_is_read(fields, says):
    """The error names the field and what to write, before anything else looks at the workload."""
    with pytest.raises(ValidationError, match=says):
        workload_of_document(**fields)


@pytest.mark.parametrize("text", ["0s:100/s,30s:1000/s", "0s:0.000001/s,0.5s:123.456789/s"])
def test_stages_are_shown_as_they_are_read(text):
    """The text of parsed stages has the same values."""
    assert str(Stages.parse(text)) == text


def test_a_rate_may_have_a_number_of_requests_and_a_duration_that_agree():
    """Both together contradict each other in a closed load only."""
    workload = Workload(rate=5, requests=10, duration=2.0)
    check(workload)
    check_load(workload)
    assert requests_in(workload) == 10
