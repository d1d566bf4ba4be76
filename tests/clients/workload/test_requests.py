"""The requests of a workload: their bodies and headers, and those that a
file records.
"""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from clientlab.errors import FieldError
from clientlab.workload import recordings
from clientlab.workload.recordings import pin_recorded_requests, read_recorded_requests
from clientlab.workload.refusals import check_workload
from clientlab.workload.requests import requests_of
from clientlab.workload.values import Delay
from clientlab.workload.workload import Request, Workload, make_workload, varies

BASE = "http://127.0.0.1:8000"
LINES = (
    {"path": "/a"},
    {
        "url": "https://api.example.com/b?x=1",
        "method": "POST",
        "body": {"n": 1},
        "headers": {"Host": "h", "X-A": "1"},
    },
    {
        "path": "/c",
        "method": "PUT",
        "body": "text",
        "headers": {"content-type": "text/plain"},
    },
    {"path": "/d", "method": "PUT", "body_base64": base64.b64encode(b"\0\1").decode()},
)


def sent(workload: Workload, count: int):
    make = requests_of(workload, BASE)
    requests = [make(number) for number in range(count)]
    return [
        (request.method, request.url.removeprefix(BASE), request.body)
        for request in requests
    ]


def first_request(*, awaited: bool = False, **fields) -> Request:
    make = requests_of(make_workload(**fields), BASE, awaited=awaited)
    return make(0)


def body_of(**fields):
    return first_request(**fields).body


def file_of(tmp_path, *lines) -> str:
    path = tmp_path / "requests.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            text = line if isinstance(line, str) else json.dumps(line)
            print(text, file=file)
    return str(path)


@pytest.mark.parametrize(
    ("path", "base", "urls"),
    [
        ("/", f"{BASE}/", ["/", "/"]),
        ("/a/{k}?again={k}", BASE, ["/a/0?again=0", "/a/1?again=1"]),
    ],
)
def test_the_number_of_the_request_replaces_k(path, base, urls):
    request = requests_of(make_workload(path=path), base)
    assert [request(number).url for number in range(2)] == [BASE + url for url in urls]


@pytest.mark.parametrize(("path", "joint"), [("/", "/?"), ("/x?y=1", "/x?y=1&")])
def test_a_delay_is_requested_in_the_query(path, joint):
    constant = first_request(path=path, delay=Delay.parse("140ms"))
    assert constant.url == f"{BASE}{joint}delay=0.140000"
    delay = Delay.parse("uniform:1s,2s")
    make = requests_of(make_workload(path=path, delay=delay, seed=5), BASE)
    for number in range(5):
        wanted = delay.at(5)(number)
        assert make(number).url == f"{BASE}{joint}delay={wanted:.6f}"


def test_a_payload_is_json_of_the_requested_size_and_depends_on_the_seed():
    first = body_of(payload_size=5000, seed=1)
    second = body_of(payload_size=5000, seed=2)
    data = json.loads(first)["data"]
    assert len(data) == 5000
    assert data.isalnum()
    assert data == data.upper()
    assert first == body_of(payload_size=5000, seed=1)
    assert first != second
    assert json.loads(body_of(payload_size=0)) == {"data": ""}


@pytest.mark.parametrize("size", [1, 65_536, 65_537])
def test_an_upload_has_the_requested_size_and_the_same_bytes_in_every_form(size):
    whole = body_of(upload_size=size, seed=3)
    streamed = body_of(upload_size=size, seed=3, upload="stream")
    assert len(whole) == size
    assert len(streamed) == size
    for _ in range(2):
        assert b"".join(streamed) == whole
    read = streamed.reader()
    assert b"".join(iter(lambda: read(1000), b"")) == whole
    awaited = body_of(upload_size=size, seed=3, upload="stream", awaited=True)

    async def read_all(body):
        return b"".join([block async for block in body])

    assert asyncio.run(read_all(awaited)) == whole
    assert len(awaited) == size
    assert whole != body_of(upload_size=size, seed=4)


def test_headers_are_equal_for_all_clients_and_can_be_overridden():
    pinned = first_request().headers
    usual = {"Accept": "*/*", "User-Agent": pinned["User-Agent"]}
    assert pinned == usual | {"Accept-Encoding": "identity"}
    own = {"accept-encoding": "gzip", "X-Mine": "1"}
    assert first_request(headers=own).headers == usual | own


def test_the_requests_of_a_file_are_sent_in_order_and_repeated(tmp_path):
    """They go to the target's address. Empty lines are ignored."""
    workload = make_workload(replay=file_of(tmp_path, *LINES[:2], "", *LINES[2:]))
    assert varies(workload)
    assert sent(workload, 5) == [
        ("GET", "/a", None),
        ("POST", "/b?x=1", b'{"n": 1}'),
        ("PUT", "/c", b"text"),
        ("PUT", "/d", b"\0\1"),
        ("GET", "/a", None),
    ]
    of_warm_up = requests_of(workload, BASE)(-1)
    assert of_warm_up.url == f"{BASE}/d"


def test_recorded_headers_override_the_labs_own_and_the_workloads_override_both(
    tmp_path,
):
    """Headers that a client makes itself are dropped.

    A JSON body sets its type, unless the line does.
    """
    workload = make_workload(replay=file_of(tmp_path, *LINES), headers={"x-a": "mine"})
    make = requests_of(workload, BASE)
    first, second, third = [make(number).headers for number in range(3)]
    assert first["x-a"] == "mine"
    assert first["Accept-Encoding"] == "identity"
    assert second == {**first, "Content-Type": "application/json"}
    assert "Host" not in second
    assert third["content-type"] == "text/plain"


def test_requests_with_weights_are_drawn_by_the_seed(tmp_path):
    """Each is drawn as often as its weight says, independently of the delays."""
    often = {"path": "/often", "weight": 9}
    seldom = {"path": "/seldom", "weight": 1}
    path = file_of(tmp_path, often, seldom)
    drawn = sent(make_workload(replay=path), 4000)
    assert drawn == sent(make_workload(replay=path), 4000)
    assert drawn != sent(make_workload(replay=path, seed=2), 4000)
    paths = [url for _, url, _ in drawn]
    assert paths.count("/seldom") == pytest.approx(400, abs=80)
    delayed = make_workload(replay=path, delay=Delay.parse("uniform:0ms,100ms"))
    urls = [url for _, url, _ in sent(delayed, 4000) if "seldom" in url]
    delays = [float(url.split("delay=")[1]) for url in urls]
    assert 0.04 < sum(delays) / len(delays) < 0.06


def test_a_har_file_is_sent_without_compression_and_pseudo_headers(tmp_path):
    """Entries that are not HTTP requests are counted."""
    headers = [
        {"name": ":authority", "value": "h"},
        {"name": "accept-encoding", "value": "gzip, br"},
        {"name": "Cookie", "value": "a=b"},
        {"name": "Content-Length", "value": "9"},
    ]
    requests = [
        {"method": "GET", "url": "https://h/a?b=c#d", "headers": headers},
        {"method": "GET", "url": "data:text/plain,x", "headers": []},
        {
            "method": "POST",
            "url": "http://h",
            "headers": [],
            "postData": {"text": "q=1"},
        },
    ]
    entries = [{"request": request} for request in requests]
    har = json.dumps({"log": {"entries": entries}}, indent=1)
    workload = make_workload(replay=file_of(tmp_path, har))
    assert sent(workload, 2) == [("GET", "/a?b=c", None), ("POST", "/", b"q=1")]
    make = requests_of(workload, BASE)
    got = make(0).headers
    assert got.pop("Cookie") == "a=b"
    assert make(1).headers == {**got, "Content-Type": "application/octet-stream"}
    assert read_recorded_requests(workload.replay).left_out.startswith("1 ")


def test_a_file_that_changed_after_planning_is_refused(tmp_path):
    workload = pin_recorded_requests(make_workload(replay=file_of(tmp_path, *LINES)))
    assert sent(workload, 1)
    file_of(tmp_path, *LINES[1:])
    recordings._known.clear()  # as in a new process
    with pytest.raises(FieldError, match="has changed"):
        requests_of(workload, BASE)
    with pytest.raises(FieldError, match="has changed"):
        pin_recorded_requests(workload)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([], "no request"),
        (["{"], "format"),
        ([{"path": "/a"}, {"path": "a"}], "line 2: path"),
        ([{"path": "/ä"}], "line 1: path"),
        ([{"paht": "/a"}], "line 1: .*'paht'"),
        ([{"method": "GET"}], "line 1: .*'path'"),
        ([{"url": "http://h", "path": "/"}], "line 1: .*url or path"),
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
def test_a_request_that_cannot_be_sent_is_refused_with_its_place(
    tmp_path, lines, place
):
    workload = make_workload(replay=file_of(tmp_path, *lines))
    with pytest.raises(FieldError, match=place) as error:
        pin_recorded_requests(workload)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("fields", [{"path": "/x"}, {"method": "PUT"}, {"body": "x"}])
def test_recorded_requests_do_not_combine_with_other_requests(tmp_path, fields):
    with pytest.raises(FieldError, match=r"^replay and "):
        check_workload(make_workload(replay=file_of(tmp_path, *LINES), **fields))


def test_decode_asks_every_client_for_gzip_unless_a_header_names_other_codings():
    assert first_request(decode=True).headers["Accept-Encoding"] == "gzip"
    own = {"accept-encoding": "br"}
    changed = first_request(decode=True, headers=own).headers
    assert changed["accept-encoding"] == "br"
    assert "Accept-Encoding" not in changed
