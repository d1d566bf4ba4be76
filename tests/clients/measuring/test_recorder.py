"""The recorder: what it writes, what it keeps, and what becomes of it when things go wrong."""

from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest

from clientlab import strategies
from clientlab.executors.executor_interface import RequestNumbers
from clientlab.measuring.connections import PeerAddress
from clientlab.measuring.context import TrialContext
from clientlab.measuring.recorder import CallerFactory
from clientlab.samples import log_reader
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
    found = log_reader.read_measured(tmp_path)
    assert found.numbers.tolist() == [0, 1, 2, 3, 4]
    assert found.records["status"].tolist() == [203] * 5
    assert found.records["bytes"].tolist() == [12] * 5
    assert (np.diff(found.records["start"]) > 0).all()
    assert (found.records["start"] + found.records["seconds"])[-1] >= found.records["start"][0]


@EACH
@pytest.mark.parametrize(
    ("word", "kind", "example"),
    [
        ("typo", "other:TypeError", "TypeError: a mistake in the code"),
        ("key", "protocol", "KeyError: 'no such header'"),
        ("404", "status-4xx", "status 404"),
        ("body", "protocol", "Expecting value"),
    ],
)
def test_every_failure_is_recorded_under_its_kind_with_an_example(client, word, kind, example, context, tmp_path):
    """Also an answer that does not parse, where parsing is asked for."""
    more = {"method": "POST", "body": "not json", "parse": True} if word == "body" else {}
    send_all(context(client, path=f"/{word}", requests=3, **more), RequestNumbers(3))
    found = log_reader.read_measured(tmp_path)
    assert found.errors == {kind: 3}
    (said,) = found.examples.values()
    assert example in said


@EACH
def test_more_requests_than_expected_find_room(client, context, tmp_path):
    send_all(context(client, path="/200", requests=3), RequestNumbers(5000))
    assert log_reader.read_measured(tmp_path).numbers.tolist() == list(range(5000))


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
