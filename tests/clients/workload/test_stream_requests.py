"""The requests of streams, the time that they take, and settings that cannot be."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from clientlab.errors import FieldError
from clientlab.workload.delays import Delay
from clientlab.workload.making import requests_of
from clientlab.workload.stream_requests import check_stream, longest_silence, stream_seconds, warming_up
from clientlab.workload.streams import StreamLimits
from clientlab.workload.workload import Workload

URL = "http://127.0.0.1:8000"
DRAWN = Delay.parse("lognormal:10ms,0.5")


def test_the_settings_of_a_plain_stream_are_in_its_query():
    """As the lab's upstream reads them."""
    workload = Workload(stream="sse", first=Delay.parse("50ms"), every=Delay.parse("5ms"), events=7, pings=3, end="2ms")
    request = requests_of(workload, URL)(0)
    parts = urlsplit(request.url)
    assert (request.method, parts.path, request.body, request.stream) == ("GET", "/stream", None, "sse")
    assert parse_qs(parts.query) == {
        "format": ["sse"], "first": ["50ms"], "every": ["5ms"], "events": ["7"], "size": ["48"], "end": ["2ms"],
        "pings": ["3"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stream", "path"),
    [
        ("openai-chat", "/v1/chat/completions"),
        ("openai-responses", "/v1/responses"),
        ("anthropic", "/v1/messages"),
    ],
)
def test_the_settings_of_an_api_are_in_a_header(stream, path):
    """Its SDK owns the URL. Every client sends the same body."""
    request = requests_of(Workload(stream=stream, events=7), URL)(0)
    assert (request.method, request.url) == ("POST", URL + path)
    assert parse_qs(request.headers["X-Stream"])["events"] == ["7"]
    assert json.loads(request.body)["stream"] is True


def test_each_stream_of_a_round_has_draws_of_its_own():
    """Equal for all arms of the round: the seed follows from that of the round and the number of the request."""
    first, again = (requests_of(Workload(stream="sse", every=DRAWN, seed=5), URL) for _ in range(2))
    other = requests_of(Workload(stream="sse", every=DRAWN, seed=6), URL)
    urls = [first(k).url for k in range(50)]
    assert len(set(urls)) == 50
    assert [again(k).url for k in range(50)] == urls
    assert not {other(k).url for k in range(50)} & set(urls)


def test_streams_of_constant_times_are_one_request():
    """Nothing is drawn, so nothing is made for each. Those of a warm-up are shorter."""
    request_of = requests_of(Workload(stream="sse", events=500), URL)
    assert request_of(0) is request_of(99)
    assert parse_qs(urlsplit(request_of(-1).url).query)["events"] == ["10"]
    assert stream_seconds(warming_up(Workload(stream="sse", events=500))) < 0.02


def test_a_foreign_server_gets_the_users_own_request():
    """Its path, its body, and no settings of the lab."""
    workload = Workload(stream="openai-chat", foreign=True, path="/v1/x", body='{"model": "mine"}', method="POST")
    request = requests_of(workload, "http://127.0.0.1:1")(3)
    assert (request.url, request.body) == ("http://127.0.0.1:1/v1/x", b'{"model": "mine"}')
    assert "X-Stream" not in request.headers


def test_the_time_of_a_stream_follows_from_its_settings():
    """The first event, the gaps and the end; less where the client leaves it early."""
    every, first = Delay.parse("10ms"), Delay.parse("200ms")
    whole = Workload(stream="sse", first=first, every=every, events=11, end="50ms")
    assert stream_seconds(whole) == pytest.approx(0.35)
    left = Workload(stream="sse", first=first, every=every, events=11, end="50ms", stop_after=6)
    assert stream_seconds(left) == pytest.approx(0.25)
    assert stream_seconds(Workload()) == 0
    assert longest_silence(whole) == 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stream": "sse", "every": Delay.parse("0ms")}, "every: 0: a gap above 0 keeps events apart"),
        ({"stream": "sse", "requests": 1000, "events": 100_000}, "1,000 streams of 100,000 events have 100,000,000"),
        ({"stream": "sse", "events": 5, "stop_after": 6}, "a stream has 5 events"),
        ({"stream": "sse", "end": "soon"}, "write with, apart, length, or a time"),
        ({"stream": "sse", "first": Delay.parse("40s")}, "the stream is silent for 40 s"),
        ({"stream": "sse", "path": "/x"}, "the lab's upstream streams at /stream"),
        ({"stream": "sse", "replay": "x.jsonl"}, "replay and stream: they exclude each other"),
        ({"stream": "sse", "parse": True}, "parse and stream: they exclude each other"),
        ({"stream": "sse", "read": "chunks"}, "read event by event"),
        ({"events": 5}, "only a stream has it"),
        ({"goodput": StreamLimits.parse("first<1s")}, "only a stream has it"),
        ({"stream": "sse", "foreign": True, "first": Delay.parse("1ms")}, "only the lab's own upstreams"),
        ({"stream": "sse", "foreign": True, "rank": "lag"}, "its lag is unknown"),
        ({"stream": "sse", "foreign": True, "goodput": StreamLimits.parse("lag_p99<1s")}, "its lag is unknown"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(settings, message):
    """In one line that says what to write."""
    with pytest.raises(FieldError) as error:
        check_stream(Workload(**settings))
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["first", "first<0ms", "speed<1s", "first<1s,first<2s", "first>1s", "first<fast"])
def test_a_limit_that_is_none_is_refused(text):
    """With what to write."""
    with pytest.raises(ValueError, match=r"write|one of|not a length"):
        StreamLimits.parse(text)
