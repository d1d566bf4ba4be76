"""Shares of a workload: what each shard of a divided trial does."""

from __future__ import annotations

from itertools import pairwise

import pytest

from clientlab.errors import FieldError
from clientlab.workload.delays import Delay
from clientlab.workload.load import arrivals_of, longest_pause, requests_in
from clientlab.workload.making import requests_of
from clientlab.workload.shard_workload import check_shards, share_of
from clientlab.workload.workload import Workload, delay_of
from clients.workload_documents import workload_of_document

URL = "http://server"


def shares(workload: Workload, in_flight: int = 10):
    return [share_of(workload, place, in_flight) for place in range(workload.shards)]


@pytest.mark.parametrize(("requests", "in_flight", "shards"), [(7, 7, 7), (1001, 33, 8)])
def test_requests_and_concurrency_are_divided_exactly(requests, in_flight, shards):
    parts = shares(Workload(requests=requests, shards=shards), in_flight)
    for whole, found in (
        (requests, [requests_in(part) for part in parts]), (in_flight, [part.concurrency for part in parts]),
    ):  # fmt: skip
        assert sum(found) == whole
        assert max(found) - min(found) <= 1


def test_each_request_of_the_workload_is_in_one_share_as_it_was():
    workload = Workload(path="/todos/{k}", delay=Delay.parse("exponential:50ms"), requests=11, shards=3)
    make, delay = requests_of(workload, URL), delay_of(workload)
    parts = [
        (requests_of(part, URL)(k).url, delay_of(part)(k)) for part in shares(workload) for k in range(part.requests)
    ]
    assert sorted(parts) == sorted((make(k).url, delay(k)) for k in range(11))


def test_requests_of_warm_ups_differ_from_measured_ones():
    found = [part.number_of(k) for part in shares(Workload(requests=6, shards=3)) for k in (-2, -1)]
    assert len(set(found)) == 6
    assert max(found) < 0


@pytest.mark.parametrize("load", [
    {"rate": "60/m", "requests": 11}, {"stages": "0s:20/s,1s:60/s", "duration": 2.0},
    {"rate": 200, "duration": 0.5, "arrivals": "poisson"},
])  # fmt: skip
def test_an_open_load_keeps_the_planned_start_of_every_request(load):
    whole = arrivals_of(workload_of_document(**load))
    parts = [arrivals_of(part) for part in shares(workload_of_document(**load, shards=4))]
    starts = sorted(part.start_of(k) for part in parts for k in range(part.count))
    assert starts == [whole.start_of(k) for k in range(whole.count)]
    assert {part.length for part in parts} == {whole.length}
    for moment in (-1.0, 0.0, whole.length / 3, whole.length):
        assert sum(part.due(moment) for part in parts) == whole.due(moment)
    for part, share in zip(parts, shares(workload_of_document(**load, shards=4)), strict=True):
        gaps = [0.0, *(part.start_of(k) for k in range(part.count))]
        assert longest_pause(share) >= max(b - a for a, b in pairwise(gaps)) - 1e-9


@pytest.mark.parametrize(("shards", "requests", "in_flight", "message"), [
    (5, 4, 32, "a trial has 4 requests"), (33, None, 32, "has at most 32 requests in flight"),
    (2, 9, 1, "has at most 1 requests in flight"),
])  # fmt: skip
def test_a_shard_without_a_request_is_refused(shards, requests, in_flight, message):
    with pytest.raises(FieldError, match=message):
        check_shards(shards, requests, in_flight, "aiohttp")
