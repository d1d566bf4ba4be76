"""The load model: when each request is planned, and what each shard of a divided trial
does.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, stdev

import pytest

from clientlab.errors import FieldError
from clientlab.experiments.experiment import validate_workload
from clientlab.workload.load import (
    arrivals_of,
    check_load,
    is_warm,
    longest_pause,
    plan_arrivals,
    requests_in,
)
from clientlab.workload.refusals import check_shards
from clientlab.workload.requests import requests_of
from clientlab.workload.values import Delay, Stages, parse_rate
from clientlab.workload.workload import Workload, delay_of, make_workload, take_share

URL = "http://server"


def starts(**fields) -> list[float]:
    return starts_of(arrivals_of(make_workload(**fields)))


def starts_of(schedule) -> list[float]:
    return [schedule.start_of(number) for number in range(schedule.count)]


def gaps(starts: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(starts)]


def shares(workload: Workload, in_flight: int = 10):
    return [take_share(workload, place, in_flight) for place in range(workload.shards)]


def test_uniform_arrivals_are_evenly_spaced_over_the_whole_duration():
    found = starts(rate=200, duration=5.0)
    assert len(found) == 1000
    assert found[:3] == [0.0, 0.005, 0.01]
    assert found[-1] == pytest.approx(4.995)
    assert starts(rate=parse_rate("30/m"), requests=3) == [0.0, 2.0, 4.0]


def test_even_arrivals_are_planned_for_the_time_until_the_next_one_would_begin():
    """10 of them arrive in 45.5 s at 0.2/s, which is not a rate of 0.22/s."""
    schedule = arrivals_of(make_workload(rate=0.2, duration=45.5))
    assert schedule.count == 10
    assert schedule.length == 45.5
    assert schedule.count / schedule.span == pytest.approx(0.2)


def test_a_stage_changes_the_rate_exactly_at_its_time():
    """100 per second for 30 s, then 1,000 per second: no request is lost at
    the step.
    """
    found = starts(stages=Stages.parse("0s:100/s,30s:1000/s"), duration=40.0)
    assert len(found) == 3000 + 10_000
    assert found[2999:3002] == pytest.approx([29.99, 30.0, 30.001])
    for gap in gaps(found[3000:]):
        assert gap == pytest.approx(0.001, abs=1e-9)


def test_poisson_arrivals_have_exponential_gaps_and_a_poisson_number():
    between = gaps(starts(rate=200, arrivals="poisson", requests=20_000))
    assert mean(between) == pytest.approx(0.005, rel=0.03)
    assert stdev(between) == pytest.approx(0.005, rel=0.03)
    counts = [
        len(starts(rate=100, arrivals="poisson", duration=1.0, seed=seed))
        for seed in range(300)
    ]
    assert mean(counts) == pytest.approx(100, rel=0.02)
    assert stdev(counts) == pytest.approx(10, rel=0.15)


def test_the_start_of_a_request_depends_only_on_seed_and_number():
    short = starts(rate=50, arrivals="poisson", requests=20)
    long = starts(rate=50, arrivals="poisson", requests=900)
    assert short == long[:20]
    assert short != starts(rate=50, arrivals="poisson", requests=20, seed=2)
    plan_arrivals.cache_clear()
    assert starts(rate=50, arrivals="poisson", requests=20) == short


@pytest.mark.parametrize("spacing", ["uniform", "poisson"])
def test_a_request_is_due_from_its_planned_start_on(spacing):
    stages = Stages.parse("0s:50/s,1s:200/s")
    workload = make_workload(stages=stages, duration=2.0, arrivals=spacing)
    schedule = arrivals_of(workload)
    assert schedule.due(-1.0) == 0
    assert schedule.due(99.0) == schedule.count
    for count, (start, following) in enumerate(pairwise(starts_of(schedule)), start=1):
        middle = (start + following) / 2
        assert schedule.due(start + 1e-7) == count
        assert schedule.due(middle) == count


@pytest.mark.parametrize(
    ("fields", "requests", "warm"),
    [
        ({"rate": 200.0, "duration": 2.0}, 400, True),
        ({"rate": 50.0, "duration": 1.0, "connections": "cold"}, 50, False),
        ({"stages": "0s:10/s,1s:20/s", "duration": 2.0}, 30, True),
        ({"duration": 2.0}, None, True),
        ({"requests": 7}, 7, False),
        ({"requests": 7, "connections": "warm"}, 7, True),
    ],
)
def test_a_duration_decides_the_requests_of_an_open_load_and_opens_connections_early(
    fields, requests, warm
):
    workload = validate_workload(fields)
    assert requests_in(workload) == requests
    assert is_warm(workload) == warm


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rate": 5, "stages": "0s:1/s"}, "rate"),
        ({"stages": "0s:5/s,3s:9/s", "duration": 3.0}, "duration"),
        ({"stages": "0s:5/s,3s:9/s", "requests": 15}, "requests"),
        ({"rate": 1e9, "duration": 1e6}, "duration"),
        ({"rate": 5, "arrivals": "poisson", "requests": 10**9}, "requests"),
        ({"max_late": 1.0}, "max_late"),
        ({"arrivals": "poisson"}, "arrivals"),
    ],
)
def test_a_load_that_cannot_be_sent_is_refused(fields, field):
    with pytest.raises(FieldError) as refusal:
        check_load(validate_workload(fields))
    assert refusal.value.key == (field,)


@pytest.mark.parametrize(
    ("requests", "in_flight", "shards"), [(7, 7, 7), (1001, 33, 8)]
)
def test_shards_divide_requests_and_concurrency_exactly(requests, in_flight, shards):
    parts = shares(make_workload(requests=requests, shards=shards), in_flight)
    counts = [requests_in(part) for part in parts]
    assert sum(counts) == requests
    assert max(counts) - min(counts) <= 1
    concurrencies = [part.load.concurrency for part in parts]
    assert sum(concurrencies) == in_flight
    assert max(concurrencies) - min(concurrencies) <= 1


def test_each_request_of_a_trial_belongs_to_one_shard_and_is_unchanged():
    """The requests of their warm-ups differ as well, and have numbers below 0."""
    workload = make_workload(
        path="/todos/{k}", delay=Delay.parse("exponential:50ms"), requests=11, shards=3
    )

    def requests_and_delays(part: Workload, count: int) -> list[tuple[str, float]]:
        make = requests_of(part, URL)
        delay = delay_of(part)
        return [(make(number).url, delay(number)) for number in range(count)]

    found = []
    warm_up = set()
    for part in shares(workload):
        found += requests_and_delays(part, part.load.requests)
        warm_up |= {part.number_of(-2), part.number_of(-1)}
    assert sorted(found) == sorted(requests_and_delays(workload, 11))
    assert len(warm_up) == 6
    assert max(warm_up) < 0


@pytest.mark.parametrize(
    "load",
    [
        {"rate": "60/m", "requests": 11},
        {"stages": "0s:20/s,1s:60/s", "duration": 2.0},
        {"rate": 200, "duration": 0.5, "arrivals": "poisson"},
    ],
)
def test_shards_keep_the_planned_start_of_every_request(load):
    whole = arrivals_of(validate_workload(load))
    divided = shares(validate_workload(load | {"shards": 4}))
    parts = [arrivals_of(part) for part in divided]
    for moment in (-1.0, 0.0, whole.length / 3, whole.length):
        assert sum(part.due(moment) for part in parts) == whole.due(moment)
    together = []
    for part, share in zip(parts, divided, strict=True):
        assert part.length == whole.length
        planned = starts_of(part)
        pause = max(gaps([0.0, *planned]))
        assert longest_pause(share) >= pause - 1e-9
        together += planned
    assert sorted(together) == starts_of(whole)


@pytest.mark.parametrize(
    ("shards", "requests", "in_flight"), [(5, 4, 32), (33, None, 32), (2, 9, 1)]
)
def test_a_shard_without_a_request_is_refused(shards, requests, in_flight):
    with pytest.raises(FieldError, match=r"^shards: "):
        check_shards(shards, requests, in_flight, "aiohttp")
