"""Recorded requests: which ones a file holds, which of them is request k, and what cannot be sent."""

from __future__ import annotations

import base64
import json
from collections import Counter

import pytest

from clientlab.errors import FieldError
from clientlab.workload import replay
from clientlab.workload.delays import Delay
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload, check, pinned, varies

BASE = "http://127.0.0.1:8000"
LINES = (
    {"path": "/a"},
    {"url": "https://api.example.com/b?x=1", "method": "POST", "body": {"n": 1}, "headers": {"Host": "h", "X-A": "1"}},
    {"path": "/c", "method": "PUT", "body": "text", "headers": {"content-type": "text/plain"}},
    {"path": "/d", "method": "PUT", "body_base64": base64.b64encode(b"\0\1").decode()},
)


def file_of(tmp_path, *lines) -> str:
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")
    return str(path)


def har_of(tmp_path, *requests) -> str:
    path = tmp_path / "requests.har"
    path.write_text(json.dumps({"log": {"entries": [{"request": one} for one in requests]}}, indent=1), "utf-8")
    return str(path)


def sent(workload: Workload, count: int):
    made = requests_of(workload, BASE)
    return [(one.method, one.url.removeprefix(BASE), one.body) for one in map(made, range(count))]


def test_request_k_is_line_k_of_the_file_again_and_again(tmp_path):
    """At the target's address; text, documents and bytes as bodies. Empty lines count for nothing."""
    workload = Workload(replay=file_of(tmp_path, *LINES[:2], "", *LINES[2:]))
    assert varies(workload)
    found = sent(workload, 5)
    assert found == [
        ("GET", "/a", None), ("POST", "/b?x=1", b'{"n": 1}'), ("PUT", "/c", b"text"), ("PUT", "/d", b"\0\1"),
        ("GET", "/a", None),
    ]  # fmt: skip
    assert requests_of(workload, BASE)(-1).url == f"{BASE}/d"  # the warm-up counts from below zero


def test_headers_are_the_files_without_those_that_a_client_makes(tmp_path):
    """The lab's own come first, the workload's last; a document brings its type, unless the line has one."""
    made = requests_of(Workload(replay=file_of(tmp_path, *LINES), headers={"x-a": "mine"}), BASE)
    assert made(1).headers == {**made(0).headers, "Content-Type": "application/json"}
    assert made(0).headers["x-a"] == "mine"
    assert made(2).headers["content-type"] == "text/plain"
    assert made(0).headers["Accept-Encoding"] == "identity"
    assert "Host" not in made(1).headers


def test_requests_with_weights_are_drawn_by_the_seed_alone(tmp_path):
    """In every process and strategy alike, as often as the weights have it, and apart from the delays."""
    path = file_of(tmp_path, {"path": "/often", "weight": 9}, {"path": "/seldom", "weight": 1})
    workload = Workload(replay=path)
    drawn = sent(workload, 4000)
    assert drawn == sent(workload, 4000)
    assert drawn != sent(Workload(replay=path, seed=2), 4000)
    assert Counter(url for _, url, _ in drawn)["/seldom"] == pytest.approx(400, abs=80)
    delayed = requests_of(Workload(replay=path, delay=Delay.parse("uniform:0ms,100ms")), BASE)
    delays = [float(delayed(k).url.split("delay=")[1]) for k in range(4000) if "seldom" in delayed(k).url]
    assert 0.04 < sum(delays) / len(delays) < 0.06


def test_a_har_file_is_sent_as_it_was_recorded(tmp_path):
    """Without compression, pseudo-headers, and entries that are no HTTP requests, which are counted."""
    headers = {":authority": "h", "accept-encoding": "gzip, br", "Cookie": "a=b", "Content-Length": "9"}
    recorded = [{"name": name, "value": value} for name, value in headers.items()]
    path = har_of(
        tmp_path,
        {"method": "GET", "url": "https://h/a?b=c#d", "headers": recorded},
        {"method": "GET", "url": "data:text/plain,x", "headers": []},
        {"method": "POST", "url": "http://h", "headers": [], "postData": {"text": "q=1"}},
    )
    workload = Workload(replay=path)
    assert sent(workload, 2) == [("GET", "/a?b=c", None), ("POST", "/", b"q=1")]
    assert requests_of(workload, BASE)(0).headers == {**requests_of(workload, BASE)(1).headers, "Cookie": "a=b"}
    assert replay.read(path).left_out == 1


def test_a_file_that_has_changed_since_the_plan_is_refused(tmp_path):
    """The plan has its digest: no trial sends other requests than the ones before it."""
    workload = pinned(Workload(replay=file_of(tmp_path, *LINES)))
    assert sent(workload, 1)
    file_of(tmp_path, *LINES[1:])
    with pytest.raises(FieldError, match="not the one that was planned with"):
        requests_of(workload, BASE)
    with pytest.raises(FieldError, match="not the one that was planned with"):
        pinned(workload)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([], "no request"),
        (["{"], "line 1"),
        ([{"path": "/a"}, {"path": "a"}], "line 2: path"),
        ([{"path": "/ä"}], "line 1: path"),
        ([{"paht": "/a"}], "line 1: .*'paht'"),
        ([{"method": "GET"}], "line 1: .*url or path"),
        ([{"url": "ftp://h/"}], "line 1: url"),
        ([{"path": "/", "body": "a", "body_base64": "YQ=="}], "line 1: .*body_base64"),
        ([{"path": "/", "weight": 0}], "line 1: weight 0"),
        (['{"path": "/", "body": ' + 100_000 * "[" + "}"], "line 1: "),
        ([{"path": "/", "weight": 1}, {"path": "/"}], "weight"),
        ([{"path": "/", "headers": {"A": "b\r\nX: y"}}], "line 1: headers"),
        ([{"path": "/", "method": "GET /x"}], "line 1: method"),
        ([json.dumps({"log": {"entries": [{}]}})], "entry 1: .*'request'"),
    ],
)
def test_a_request_that_cannot_be_sent_is_refused_with_its_place(tmp_path, lines, place):
    with pytest.raises(FieldError, match=place) as error:
        pinned(Workload(replay=file_of(tmp_path, *lines)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("fields", [{"path": "/x"}, {"method": "PUT"}, {"body": "x"}])
def test_what_recorded_requests_bring_is_not_given_twice(tmp_path, fields):
    with pytest.raises(FieldError, match="recorded requests have their own; leave out"):
        check(Workload(replay=file_of(tmp_path, *LINES), **fields))
    with pytest.raises(FieldError, match="digest of the file of replay, which is missing"):
        check(Workload(replay_sha256="0"))
