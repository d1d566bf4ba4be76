"""The recorder: what it writes, what it keeps, and what becomes of it when things go wrong."""

from __future__ import annotations

import asyncio
import gc
import json

import numpy as np
import pytest

from clientlab import strategies
from clientlab.analysis import samples
from clientlab.executors.shape import Numbers
from clientlab.measuring.connections import Address
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.recording import make_ready
from clientlab.sample import HEADER, RECORD_SIZE, RECORDS_FILE, process_notes
from clientlab.workload import Workload


class Scripted:
    """A client without a network: answers what the request's path says."""

    errors = ((KeyError, "protocol"),)

    def __init__(self, _budget, opened):
        self.opened = opened

    def open(self):
        """Nothing to get ready."""

    def send(self, request):
        word = request.url.rpartition("/")[2]
        if word == "typo":
            raise TypeError("a mistake in the code")
        if word == "key":
            raise KeyError("no such header")
        if word == "body":
            self.opened()
            return 200, request.body
        return int(word), b'{"ok": true}'

    def close(self):
        """Nothing to close."""


class AsyncScripted(Scripted):
    """The same for asyncio."""

    async def open(self):
        """Nothing to get ready."""

    async def send(self, request):
        await asyncio.sleep(0)
        return Scripted.send(self, request)

    async def close(self):
        """Nothing to close."""


class Stepped(Scripted):
    """The same, driven by an executor of its own: one that says when a request begins, and how it ended."""


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """A function that makes a bench for the scripted client."""
    for name, kind in (("Scripted", "blocking"), ("AsyncScripted", "asyncio"), ("Stepped", "blocking")):
        row = strategies.ClientRow(name, f"{__name__}:{name}", kind, "python", "pool", "")
        monkeypatch.setitem(strategies.CLIENTS, name, row)

    def make(client="Scripted", **workload):
        executor = "workers" if client == "AsyncScripted" else "serial"
        strategy = strategies.Strategy(client, client, executor)
        return TrialBench(strategy, Workload(**workload), "http://host", str(tmp_path), Address(1))

    return make


def drain(bench, numbers):
    """Send the numbers with the bench's client, blocking or not, or step by step."""
    if bench.strategy.client == "Stepped":
        step(bench.record(1), numbers)
        return
    if bench.strategy.client == "Scripted":
        caller = bench.open(1)
        caller.drain(numbers)
        caller.close()
        return

    async def main():
        caller = await bench.aopen(1)
        await caller.drain(numbers)
        await caller.close()

    asyncio.run(main())


def step(record, numbers):
    """What an executor that drives its client does."""
    for number in numbers:
        request = record.begin(number)
        try:
            reply = record.client.send(request)
        except Exception as error:  # noqa: BLE001 - as the recorder's own
            record.fail(number, error)
        else:
            record.finish(number, *reply)
    record.close()


EACH = pytest.mark.parametrize("client", ["Scripted", "AsyncScripted", "Stepped"])


@EACH
def test_a_record_holds_number_times_size_and_status(client, bench, tmp_path):
    """Request k has the k-th place; starts are in order and latencies within the whole."""
    drain(bench(client, path="/203", requests=5), Numbers(5))
    found = samples.read(tmp_path)
    assert found.numbers.tolist() == [0, 1, 2, 3, 4]
    assert found.records["status"].tolist() == [203] * 5
    assert found.records["bytes"].tolist() == [12] * 5
    assert (np.diff(found.records["start"]) > 0).all()
    assert (found.records["start"] + found.records["seconds"])[-1] >= found.records["start"][0]


@EACH
@pytest.mark.parametrize(
    ("word", "errors", "example"),
    [
        ("typo", {"other:TypeError": 3}, "TypeError: a mistake in the code"),
        ("key", {"protocol": 3}, "KeyError: 'no such header'"),
        ("404", {"status-4xx": 3}, "status 404"),
        ("500", {"status-5xx": 3}, "status 500"),
    ],
)
def test_every_failure_is_recorded_under_its_kind_with_an_example(client, word, errors, example, bench, tmp_path):
    """A mistake in a client's code is an error with its type's name, never a success."""
    drain(bench(client, path=f"/{word}", requests=3), Numbers(3))
    found = samples.read(tmp_path)
    assert found.errors == errors
    assert list(found.examples.values()) == [example]


@EACH
def test_an_answer_that_does_not_parse_is_an_error_where_parsing_is_asked_for(client, bench, tmp_path):
    """The workload says whether the body is parsed, inside the clock."""
    drain(bench(client, path="/body", method="POST", body="not json", requests=2, parse=True), Numbers(2))
    assert samples.read(tmp_path).errors == {"protocol": 2}


@EACH
def test_the_payload_is_encoded_for_each_request_where_asked(client, bench, tmp_path):
    """Both ways the same bytes are sent."""
    drain(bench(client, path="/body", payload_size=50, encode="each", requests=2), Numbers(2))
    assert samples.read(tmp_path).records["bytes"].tolist() == [len(json.dumps({"data": "x" * 50}))] * 2


@EACH
def test_more_requests_than_expected_find_room(client, bench, tmp_path):
    """The log grows while it is written to."""
    drain(bench(client, path="/200", requests=3), Numbers(5000))
    assert samples.read(tmp_path).numbers.tolist() == list(range(5000))


@EACH
def test_no_python_object_is_kept_for_a_request(client, bench):
    """After thousands of requests the interpreter tracks as many objects as after a few."""
    made = bench(client, path="/200", requests=20_000)
    counts = []

    def note():
        gc.collect()
        counts.append(len(gc.get_objects()))

    class Noting(Numbers):
        def __iter__(self):
            for number in range(20_000):
                if number in (10, 19_999):
                    note()
                yield number

    drain(made, Noting(20_000))
    assert abs(counts[1] - counts[0]) < 50


def test_a_record_takes_32_bytes_of_the_log(bench, tmp_path):
    """The file is a header and a record for each request."""
    drain(bench(path="/200", requests=1000), Numbers(1000))
    assert (tmp_path / RECORDS_FILE).stat().st_size == HEADER.size + 1000 * RECORD_SIZE


def test_warm_up_requests_are_told_apart_by_their_start(bench, tmp_path):
    """They have numbers below zero, and are left out of what began later."""
    made = bench(path="/200", requests=4, connections="warm", warmup=3)
    caller = made.open(1)
    caller.drain(Numbers(made.warm_up, first=-made.warm_up))
    middle = samples.read(tmp_path).records["start"].max() + 1e-9
    caller.drain(Numbers(4))
    caller.close()
    assert samples.read(tmp_path).numbers.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert samples.read(tmp_path, middle).numbers.tolist() == [0, 1, 2, 3]


def test_connections_that_a_client_reports_are_counted(bench, tmp_path):
    """They stand in the note of its process, beside its peak memory."""
    drain(bench(path="/body", body="x", requests=2), Numbers(2))
    (note,) = process_notes(tmp_path)
    assert note.connections == 2
    assert note.peak_rss_bytes > 1 << 20


def test_who_has_a_log_ready_is_a_sender_once_a_caller_is_opened(bench, tmp_path):
    """The parent of a pool has one as well, and sends nothing; a caller finds the log and needs no second one."""
    made = bench(path="/200", requests=3)
    make_ready(made)
    assert (tmp_path / RECORDS_FILE).stat().st_size == HEADER.size + 3 * RECORD_SIZE
    assert process_notes(tmp_path) == []
    drain(made, Numbers(3))
    assert len(process_notes(tmp_path)) == 1
    assert samples.read(tmp_path).numbers.tolist() == [0, 1, 2]
