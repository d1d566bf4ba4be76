"""The recorder: what it writes, what it keeps, and what becomes of it when things go wrong."""

from __future__ import annotations

import asyncio
import gc
import json

import numpy as np
import pytest

from clientlab import strategies
from clientlab.executors.executor_interface import RequestNumbers
from clientlab.measuring.connections import PeerAddress
from clientlab.measuring.context import TrialContext
from clientlab.measuring.recorder import CallerFactory
from clientlab.measuring.recording import preallocate
from clientlab.samples import log_reader
from clientlab.samples.log import HEADER, RECORD_SIZE, RECORDS_FILE, process_notes
from clientlab.workload.workload import Workload


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
def context(monkeypatch, tmp_path):
    """A function that makes a context for the scripted client."""
    for name, kind in (("Scripted", "blocking"), ("AsyncScripted", "asyncio"), ("Stepped", "blocking")):
        spec = strategies.ClientSpec(name, f"{__name__}:{name}", kind, "python", "pool", "")
        monkeypatch.setitem(strategies.CLIENTS, name, spec)

    def make(client="Scripted", **workload):
        executor = "workers" if client == "AsyncScripted" else "serial"
        strategy = strategies.Strategy(client, client, executor)
        return TrialContext(strategy, Workload(**workload), "http://host", str(tmp_path), PeerAddress(1))

    return make


def send_all(context, numbers):
    """Send the numbers with the context's client, blocking or not, or step by step."""
    if context.strategy.client == "Stepped":
        step(CallerFactory(context).record(1), numbers)
        return
    if context.strategy.client == "Scripted":
        caller = CallerFactory(context).open(1)
        caller.send_all(numbers)
        caller.close()
        return

    async def main():
        caller = await CallerFactory(context).aopen(1)
        await caller.send_all(numbers)
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
def test_a_record_holds_number_times_size_and_status(client, context, tmp_path):
    """Request k has the k-th place; starts are in order and latencies within the whole."""
    send_all(context(client, path="/203", requests=5), RequestNumbers(5))
    found = log_reader.read(tmp_path)
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
    ],
)
def test_every_failure_is_recorded_under_its_kind_with_an_example(client, word, errors, example, context, tmp_path):
    """A mistake in a client's code is an error with its type's name, never a success."""
    send_all(context(client, path=f"/{word}", requests=3), RequestNumbers(3))
    found = log_reader.read(tmp_path)
    assert found.errors == errors
    assert list(found.examples.values()) == [example]


@EACH
def test_an_answer_that_does_not_parse_is_an_error_where_parsing_is_asked_for(client, context, tmp_path):
    """The workload says whether the body is parsed, inside the clock."""
    send_all(context(client, path="/body", method="POST", body="not json", requests=2, parse=True), RequestNumbers(2))
    assert log_reader.read(tmp_path).errors == {"protocol": 2}


@EACH
def test_the_payload_is_encoded_for_each_request_where_asked(client, context, tmp_path):
    """Both ways the same bytes are sent."""
    send_all(context(client, path="/body", payload_size=50, encode="each", requests=2), RequestNumbers(2))
    assert log_reader.read(tmp_path).records["bytes"].tolist() == [len(json.dumps({"data": "x" * 50}))] * 2


@EACH
def test_more_requests_than_expected_find_room(client, context, tmp_path):
    """The log grows while it is written to."""
    send_all(context(client, path="/200", requests=3), RequestNumbers(5000))
    assert log_reader.read(tmp_path).numbers.tolist() == list(range(5000))


@EACH
def test_no_python_object_is_kept_for_a_request(client, context):
    """After thousands of requests the interpreter tracks no more objects than after a few.

    It may track fewer: what earlier tests left is collected meanwhile.
    """
    made = context(client, path="/200", requests=20_000)
    counts = []

    def note():
        gc.collect()
        counts.append(len(gc.get_objects()))

    class Noting(RequestNumbers):
        def __iter__(self):
            for number in range(20_000):
                if number in (10, 19_999):
                    note()
                yield number

    send_all(made, Noting(20_000))
    assert counts[1] - counts[0] < 50


def test_warm_up_requests_are_told_apart_by_their_start(context, tmp_path):
    """They have numbers below zero, and are left out of what began later."""
    made = context(path="/200", requests=4, connections="warm", warmup=3)
    caller = CallerFactory(made).open(1)
    caller.send_all(RequestNumbers(made.warm_up, first=-made.warm_up))
    middle = log_reader.read(tmp_path).records["start"].max() + 1e-9
    caller.send_all(RequestNumbers(4))
    caller.close()
    assert log_reader.read(tmp_path).numbers.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert log_reader.read(tmp_path, middle).numbers.tolist() == [0, 1, 2, 3]


def test_who_has_a_log_ready_is_a_sender_once_a_caller_is_opened(context, tmp_path):
    """The parent of a pool has one as well, and sends nothing; a caller finds the log and needs no second one."""
    made = context(path="/200", requests=3)
    preallocate(made)
    assert (tmp_path / RECORDS_FILE).stat().st_size == HEADER.size + 3 * RECORD_SIZE
    assert process_notes(tmp_path) == []
    send_all(made, RequestNumbers(3))
    assert len(process_notes(tmp_path)) == 1
    assert log_reader.read(tmp_path).numbers.tolist() == [0, 1, 2]
