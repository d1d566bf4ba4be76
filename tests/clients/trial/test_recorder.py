"""The recorder: what it records of each request, and what it keeps."""

from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest

from clientlab import strategies
from clientlab.executors.executor_interface import RequestNumbers
from clientlab.trial import samples as log_reader
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.trial.recorder import CallerFactory
from clientlab.workload.workload import Workload


class Scripted:
    """A client without a network. The request's path says what it answers."""

    errors = ((KeyError, "protocol"),)

    def __init__(self, _budget, opened):
        self.opened = opened

    def open(self): ...

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

    def close(self): ...


class AsyncScripted(Scripted):
    """The same for asyncio."""

    async def open(self): ...

    async def send(self, request):
        await asyncio.sleep(0)
        return Scripted.send(self, request)

    async def close(self): ...


class Stepped(Scripted):
    """The same, for an executor that says when a request begins and how it ended."""


@pytest.fixture
def context(monkeypatch, tmp_path):
    for name, kind in (("Scripted", "blocking"), ("AsyncScripted", "asyncio"), ("Stepped", "blocking")):
        spec = strategies.ClientSpec(name, "python", "pool", kind=kind, import_path=f"{__name__}:{name}")
        monkeypatch.setitem(strategies.CLIENTS, name, spec)

    def make(client="Scripted", **workload):
        executor = "workers" if client == "AsyncScripted" else "serial"
        strategy = strategies.Strategy(client, client, executor)
        return TrialContext(strategy, Workload(**workload), "http://host", str(tmp_path), PeerAddress(1))

    return make


def send_all(context, numbers):
    factory = CallerFactory(context)
    if context.strategy.client == "Scripted":
        caller = factory.open(1)
        caller.send_all(numbers)
        caller.close()
    elif context.strategy.client == "Stepped":
        record = factory.record(1)
        for number in numbers:
            request = record.begin(number)
            try:
                reply = record.client.send(request)
            except Exception as error:  # noqa: BLE001 - as in the recorder
                record.fail(number, error)
            else:
                record.finish(number, *reply)
        record.close()
    else:

        async def main():
            caller = await factory.aopen(1)
            await caller.send_all(numbers)
            await caller.close()

        asyncio.run(main())


EACH = pytest.mark.parametrize("client", ["Scripted", "AsyncScripted", "Stepped"])


@EACH
def test_a_record_holds_number_times_size_and_status(client, context, tmp_path):
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
    """A response that cannot be parsed is a failure if the workload asks for parsing."""
    more = {"method": "POST", "body": "not json", "parse": True} if word == "body" else {}
    send_all(context(client, path=f"/{word}", requests=3, **more), RequestNumbers(3))
    found = log_reader.read_measured(tmp_path)
    assert found.errors == {kind: 3}
    (message,) = found.examples.values()
    assert example in message


@EACH
def test_more_requests_than_expected_find_room(client, context, tmp_path):
    send_all(context(client, path="/200", requests=3), RequestNumbers(5000))
    assert log_reader.read_measured(tmp_path).numbers.tolist() == list(range(5000))


@EACH
def test_no_python_object_is_kept_for_a_request(client, context):
    counts = []

    class Counting(RequestNumbers):
        def __iter__(self):
            for number in range(20_000):
                if number in (10, 19_999):
                    gc.collect()
                    counts.append(len(gc.get_objects()))
                yield number

    send_all(context(client, path="/200", requests=20_000), Counting(20_000))
    assert counts[1] - counts[0] < 50
