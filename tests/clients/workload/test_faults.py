"""Faults as users write them, and as the upstream gets them."""

from __future__ import annotations

import pytest

from clientlab.errors import FieldError
from clientlab.workload.faults import Faults
from clientlab.workload.refusals import check_workload
from clientlab.workload.requests import requests_of
from clientlab.workload.values import Delay
from clientlab.workload.workload import make_workload

EVERYTHING = (
    "503:5%; 429:10%,after=1s; reset:1%; close:1%; truncate:1%; stall:1%;"
    " slow:1%,over=2s; garbage:1%; outage:2s..5s; slow:6s..7s,+200ms; limit:100/s"
)


def faulty(text: str, **others):
    return make_workload(faults=Faults.parse(text), **others)


def test_faults_are_written_as_they_are_read():
    assert str(Faults.parse(EVERYTHING)) == EVERYTHING


def test_the_upstream_gets_numbers_without_units():
    assert Faults.parse(EVERYTHING).wire == (
        "503:0.05;429:0.1,after=1;reset:0.01;close:0.01;truncate:0.01;stall:0.01;"
        "slow:0.01,over=2;garbage:0.01;outage:2..5;slow:6..7,0.2;limit:100"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not a fault"),
        ("explode:5%", "is not a fault"),
        ("200:5%", "is not a fault"),
        ("503", "is not a fault"),
        ("503:much", "is not a share"),
        ("503:0%", "above 0 %"),
        ("503:101%", "at most 100 %"),
        ("503:60%; reset:50%", "110 % together"),
        ("429:5%,after=1.5s", "whole seconds"),
        ("429:5%,after=2", "has no unit"),
        ("slow:5%", "over which time"),
        ("outage:5s..2s", "ends before it begins"),
        ("slow:1s..2s", "how slow"),
        ("reset:1s..2s", "is not a fault"),
        ("limit:0/s", "0 requests per second"),
        ("limit:1/s; limit:2/s", "one limit already"),
    ],
)
def test_what_is_no_fault_is_refused_with_what_to_write(text, told):
    with pytest.raises(ValueError, match=told):
        Faults.parse(text)


@pytest.mark.parametrize(
    ("workload", "key"),
    [
        (faulty("outage:1s..2s", requests=100), "faults"),
        (faulty("outage:1s..3s", duration=2.0), "faults"),
        (faulty("503:1%", stream="sse"), "faults"),
        (faulty("limit:5/s", stream="sse"), "faults"),
        (faulty("503:1%", shards=2), "faults"),
        (faulty("503:1%", cold=True), "faults"),
    ],
)
def test_faults_that_a_workload_cannot_have_are_refused(workload, key):
    with pytest.raises(FieldError) as refused:
        check_workload(workload)
    assert key in refused.value.key


def test_streams_may_be_reset_and_stall():
    check_workload(
        faulty("reset:1%; stall:1%; outage:1s..2s", stream="sse", duration=3.0)
    )


def test_each_request_tells_the_number_of_its_call_last():
    request = requests_of(faulty("503:1%", delay=None, path="/todos/1?x=1"), "http://h")
    assert request(7).url == "http://h/todos/1?x=1&call=7"
    assert request(-2).url.endswith("&call=-2")


def test_the_number_follows_the_delay():
    request = requests_of(faulty("503:1%", delay=Delay.parse("5ms")), "http://h")
    assert request(7).url == "http://h/?delay=0.005000&call=7"


def test_a_stream_tells_it_in_its_header():
    request = requests_of(faulty("reset:1%", stream="openai-chat"), "http://h")
    settings = [text for text in request(7).headers.values() if "call=7" in text]
    assert len(settings) == 1
    assert "call" not in request(7).url
