"""The requests of a workload: their bodies and headers, and those that a
file records.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter

import pytest

from clientlab.errors import FieldError
from clientlab.workload import recordings
from clientlab.workload.recordings import pin_recorded_requests, read_recorded_requests
from clientlab.workload.refusals import check_workload
from clientlab.workload.requests import requests_of
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload, make_workload, varies

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
    made = requests_of(workload, BASE)
    return [
        (one.method, one.url.removeprefix(BASE), one.body)
        for one in map(made, range(count))
    ]


def body_of(**fields):
    return requests_of(make_workload(**fields), BASE)(0).body


def file_of(tmp_path, *lines) -> str:
    path = tmp_path / "requests.jsonl"
    path.write_text(
        "".join(
            f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines
        ),
        "utf-8",
    )
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
    assert (
        requests_of(make_workload(path=path, delay=Delay.parse("140ms")), BASE)(3).url
        == f"{BASE}{joint}delay=0.140000"
    )
    drawn = requests_of(
        make_workload(path=path, delay=Delay.parse("uniform:1s,2s"), seed=5), BASE
    )
    for number in range(5):
        wanted = Delay.parse("uniform:1s,2s").at(5)(number)
        assert drawn(number).url == f"{BASE}{joint}delay={wanted:.6f}"


def test_a_payload_is_json_of_the_requested_size_and_depends_on_the_seed():
    first, second = (body_of(payload_size=5000, seed=seed) for seed in (1, 2))
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
    assert len(whole) == len(streamed) == size
    assert [b"".join(streamed) for _ in range(2)] == [whole] * 2
    read = streamed.reader()
    assert b"".join(iter(lambda: read(1000), b"")) == whole
    awaited = requests_of(
        make_workload(upload_size=size, seed=3, upload="stream"), BASE, awaited=True
    )(0).body

    async def read_all(body):
        return b"".join([block async for block in body])

    assert asyncio.run(read_all(awaited)) == whole
    assert len(awaited) == size
    assert whole != body_of(upload_size=size, seed=4)


def test_headers_are_equal_for_all_clients_and_can_be_overridden():
    pinned = requests_of(make_workload(), BASE)(0).headers
    assert pinned == {
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "User-Agent": pinned["User-Agent"],
    }
    changed = requests_of(
        make_workload(headers={"accept-encoding": "gzip", "X-Mine": "1"}), BASE
    )(0).headers
    assert changed == {
        "Accept": "*/*",
        "User-Agent": pinned["User-Agent"],
        "accept-encoding": "gzip",
        "X-Mine": "1",
    }


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
    assert (
        requests_of(workload, BASE)(-1).url == f"{BASE}/d"
    )  # the warm-up counts from below zero


def test_recorded_headers_override_the_labs_own_and_the_workloads_override_both(
    tmp_path,
):
    """Headers that a client makes itself are dropped.

    A JSON body sets its type, unless the line does.
    """
    made = requests_of(
        make_workload(replay=file_of(tmp_path, *LINES), headers={"x-a": "mine"}), BASE
    )
    assert made(1).headers == {**made(0).headers, "Content-Type": "application/json"}
    assert made(0).headers["x-a"] == "mine"
    assert made(2).headers["content-type"] == "text/plain"
    assert made(0).headers["Accept-Encoding"] == "identity"
    assert "Host" not in made(1).headers


def test_requests_with_weights_are_drawn_by_the_seed(tmp_path):
    """Each is drawn as often as its weight says, independently of the delays."""
    path = file_of(
        tmp_path, {"path": "/often", "weight": 9}, {"path": "/seldom", "weight": 1}
    )
    drawn = sent(make_workload(replay=path), 4000)
    assert drawn == sent(make_workload(replay=path), 4000)
    assert drawn != sent(make_workload(replay=path, seed=2), 4000)
    assert Counter(url for _, url, _ in drawn)["/seldom"] == pytest.approx(400, abs=80)
    delayed = requests_of(
        make_workload(replay=path, delay=Delay.parse("uniform:0ms,100ms")), BASE
    )
    delays = [
        float(delayed(k).url.split("delay=")[1])
        for k in range(4000)
        if "seldom" in delayed(k).url
    ]
    assert 0.04 < sum(delays) / len(delays) < 0.06


def test_a_har_file_is_sent_without_compression_and_pseudo_headers(tmp_path):
    """Entries that are not HTTP requests are counted."""
    headers = {
        ":authority": "h",
        "accept-encoding": "gzip, br",
        "Cookie": "a=b",
        "Content-Length": "9",
    }
    entries = [
        {
            "method": "GET",
            "url": "https://h/a?b=c#d",
            "headers": [
                {"name": name, "value": value} for name, value in headers.items()
            ],
        },
        {"method": "GET", "url": "data:text/plain,x", "headers": []},
        {
            "method": "POST",
            "url": "http://h",
            "headers": [],
            "postData": {"text": "q=1"},
        },
    ]
    path = file_of(
        tmp_path,
        json.dumps(
            {"log": {"entries": [{"request": one} for one in entries]}}, indent=1
        ),
    )
    workload = make_workload(replay=path)
    assert sent(workload, 2) == [("GET", "/a?b=c", None), ("POST", "/", b"q=1")]
    got, posted = (requests_of(workload, BASE)(k).headers for k in range(2))
    assert got.pop("Cookie") == "a=b"
    assert posted == {**got, "Content-Type": "application/octet-stream"}
    assert read_recorded_requests(workload.replay).left_out.startswith("1 ")


def test_a_file_that_changed_after_planning_is_refused(tmp_path):
    workload = pin_recorded_requests(make_workload(replay=file_of(tmp_path, *LINES)))
    assert sent(workload, 1)
    file_of(tmp_path, *LINES[1:])
    recordings._known.clear()  # as in a new process
    for use in (
        lambda: requests_of(workload, BASE),
        lambda: pin_recorded_requests(workload),
    ):
        with pytest.raises(FieldError, match="has changed"):
            use()


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
    with pytest.raises(FieldError, match=place) as error:
        pin_recorded_requests(make_workload(replay=file_of(tmp_path, *lines)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("fields", [{"path": "/x"}, {"method": "PUT"}, {"body": "x"}])
def test_recorded_requests_do_not_combine_with_other_requests(tmp_path, fields):
    with pytest.raises(FieldError, match=r"^replay and "):
        check_workload(make_workload(replay=file_of(tmp_path, *LINES), **fields))


def test_decode_asks_every_client_for_gzip_unless_a_header_names_other_codings():
    assert (
        requests_of(make_workload(decode=True), BASE)(0).headers["Accept-Encoding"]
        == "gzip"
    )
    changed = requests_of(
        make_workload(decode=True, headers={"accept-encoding": "br"}), BASE
    )(0).headers
    assert changed["accept-encoding"] == "br"
    assert "Accept-Encoding" not in changed
