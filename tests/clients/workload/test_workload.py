"""Workloads: the requests that they are made of, and what can't be asked for."""

from __future__ import annotations

import asyncio
import json

import pytest

from clientlab.errors import FieldError
from clientlab.workload.delays import Delay
from clientlab.workload.load import is_warm
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload, check

BASE = "http://127.0.0.1:8000"


def bodies(workload: Workload, count: int = 3) -> list[bytes | None]:
    request = requests_of(workload, BASE)
    return [request(number).body for number in range(count)]


@pytest.mark.parametrize(
    ("path", "base", "urls"),
    [
        ("/", f"{BASE}/", [f"{BASE}/"] * 2),
        ("/todos/{k}", BASE, [f"{BASE}/todos/0", f"{BASE}/todos/1"]),
        ("/a/{k}?again={k}", BASE, [f"{BASE}/a/0?again=0", f"{BASE}/a/1?again=1"]),
    ],
)
def test_the_number_of_the_request_stands_for_k(path, base, urls):
    request = requests_of(Workload(path=path), base)
    assert [request(number).url for number in range(2)] == urls


@pytest.mark.parametrize(("path", "joint"), [("/", "/?"), ("/x?y=1", "/x?y=1&")])
def test_a_delay_is_asked_for_in_the_query(path, joint):
    request = requests_of(Workload(path=path, delay=Delay.parse("140ms")), BASE)
    assert request(3).url == f"{BASE}{joint}delay=0.140000"
    drawn = requests_of(Workload(path=path, delay=Delay.parse("uniform:1s,2s"), seed=5), BASE)
    for number in range(5):
        wanted = Delay.parse("uniform:1s,2s").at(5)(number)
        assert drawn(number).url == f"{BASE}{joint}delay={wanted:.6f}"


def test_a_payload_is_json_of_the_size_asked_for():
    """An object of one field with so many upper-case letters and digits, the same for a seed."""
    first, second = (bodies(Workload(payload_size=5000, seed=seed))[0] for seed in (1, 2))
    data = json.loads(first)["data"]
    assert len(data) == 5000
    assert data.isalnum()
    assert data == data.upper()
    assert first == bodies(Workload(payload_size=5000, seed=1))[0]
    assert first != second
    assert json.loads(bodies(Workload(payload_size=0))[0]) == {"data": ""}


@pytest.mark.parametrize("size", [1, 65_536, 65_537])
def test_an_upload_is_of_the_size_asked_for_and_the_same_for_a_seed(size):
    """Held whole, iterated with and without await, and read piece by piece: the same bytes, again and again."""
    whole = bodies(Workload(upload_size=size, seed=3))[0]
    assert len(whole) == size
    streamed = bodies(Workload(upload_size=size, seed=3, upload="stream"))[0]
    assert len(streamed) == size
    assert [b"".join(streamed) for _ in range(2)] == [whole] * 2
    read = streamed.reader()
    assert b"".join(iter(lambda: read(1000), b"")) == whole
    awaited = requests_of(Workload(upload_size=size, seed=3, upload="stream"), BASE, awaited=True)(0).body

    async def all_of(body):
        return b"".join([block async for block in body])

    assert asyncio.run(all_of(awaited)) == whole
    assert len(awaited) == size
    assert whole != bodies(Workload(upload_size=size, seed=4))[0]


def test_headers_are_pinned_equal_and_any_can_be_overridden():
    pinned = requests_of(Workload(), BASE)(0).headers
    assert pinned["Accept"] == "*/*"
    assert pinned["Accept-Encoding"] == "identity"
    assert pinned["User-Agent"].startswith("clientlab/")
    assert "Content-Type" not in pinned
    changed = requests_of(Workload(headers={"accept-encoding": "gzip", "X-Mine": "1"}), BASE)(0).headers
    assert changed == {"Accept": "*/*", "User-Agent": pinned["User-Agent"], "accept-encoding": "gzip", "X-Mine": "1"}


def test_a_workload_that_can_be_done_passes():
    check(Workload(requests=1, concurrency=1, warmup=0))
    check(Workload(path="/a-b_c.d~e/%20;x=1?y=(z)&q='!*,$@:+[1]&n={k}", headers={"X-A": "a b\tc: d", "x!#$": ""}))
    check(Workload(upload_size=1, upload="stream", method="PROPFIND"))


@pytest.mark.parametrize(
    "changes",
    [
        {"requests": 0}, {"requests": 10**20}, {"duration": 0.0}, {"duration": float("nan")}, {"duration": 1e-322},
        {"timeout": 1e300}, {"max_late": 0.0, "rate": 5}, {"seed": 10**400}, {"concurrency": 0}, {"warmup": -1},
        {"upload_size": 0}, {"upload": "stream"}, {"chunk_size": 0}, {"payload_size": -1}, {"path": "todos"},
        {"path": "/a b"}, {"path": "/{n}"}, {"method": ""}, {"method": "GET\r\nX: y"}, {"headers": {"X y": "1"}},
        {"headers": {"X": "a\r\nY: b"}},
    ],
    ids=str,
)  # fmt: skip
def test_a_workload_that_cannot_be_measured_is_refused_with_its_field(changes):
    with pytest.raises(FieldError, match=f"^{next(iter(changes))}: ") as caught:
        check(Workload(**changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [{"requests": 5, "duration": 1.0}, {"body": "x", "upload_size": 1}, {"read": "chunks", "parse": True}],
)
def test_fields_that_contradict_each_other_are_refused_together(changes):
    with pytest.raises(FieldError) as caught:
        check(Workload(**changes))
    assert all(name in str(caught.value) for name in changes)


@pytest.mark.parametrize(
    ("load", "warm"),
    [
        ({"requests": 100}, False),
        ({"duration": 1.0}, True),
        ({"rate": 50.0, "duration": 1.0, "connections": "cold"}, False),
        ({"requests": 100, "connections": "warm"}, True),
    ],
)
def test_a_load_for_a_duration_has_open_connections(load, warm):
    """It is a part of a service that runs; a number of requests is a job that opens its own."""
    assert is_warm(Workload(**load)) == warm
