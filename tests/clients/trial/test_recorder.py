"""The recorder: what it records of each request, and what it keeps."""

from __future__ import annotations

import asyncio
import gc

import numpy as np
import pytest

from clientlab import strategies
from clientlab.errors import PluginError
from clientlab.executors.executor_interface import RequestNumbers
from clientlab.observing import samples as log_reader
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.trial.recorder import CallerFactory
from clientlab.workload.values import Statuses
from clientlab.workload.workload import make_workload


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

    def stream(self, request, sink):
        status, body = Scripted.send(self, request)
        sink(b"")  # no byte yet
        if status != 204:
            sink(body)
        return status

    def close(self): ...


class AsyncScripted(Scripted):
    """The same for asyncio."""

    async def open(self): ...

    async def send(self, request):
        await asyncio.sleep(0)
        return Scripted.send(self, request)

    async def stream(self, request, sink):
        await asyncio.sleep(0)
        return Scripted.stream(self, request, sink)

    async def close(self): ...


class Stepped(Scripted):
    """The same, for an executor that says when a request begins and how it ended."""


@pytest.fixture
def context(monkeypatch, tmp_path):
    for name, kind in (
        ("Scripted", "blocking"),
        ("AsyncScripted", "asyncio"),
        ("Stepped", "blocking"),
    ):
        spec = strategies.ClientSpec(
            name, "python", "pool", kind=kind, import_path=f"{__name__}:{name}"
        )
        monkeypatch.setitem(strategies.CLIENTS, name, spec)

    def make(client="Scripted", **workload):
        executor = "workers" if client == "AsyncScripted" else "serial"
        strategy = strategies.Strategy(client, client, executor)
        return TrialContext(
            strategy,
            make_workload(**workload),
            PeerAddress("http://host"),
            str(tmp_path),
        )

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
    assert (found.records["start"] + found.records["seconds"])[-1] >= found.records[
        "start"
    ][0]


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
def test_every_failure_is_recorded_under_its_kind_with_an_example(
    client, word, kind, example, context, tmp_path
):
    """A response that cannot be parsed is a failure if the workload asks
    for parsing.
    """
    more = (
        {"method": "POST", "body": "not json", "parse": True} if word == "body" else {}
    )
    send_all(context(client, path=f"/{word}", requests=3, **more), RequestNumbers(3))
    found = log_reader.read_measured(tmp_path)
    assert found.errors == {kind: 3}
    (message,) = found.examples.values()
    assert example in message


@EACH
@pytest.mark.parametrize(
    ("status", "errors"),
    [
        ("404", {}),
        ("203", {}),
        ("200", {"status-2xx": 3}),
        ("301", {"status-3xx": 3}),
        ("503", {"status-5xx": 3}),
    ],
)
def test_a_status_outside_the_expected_ones_is_an_error(
    client, status, errors, context, tmp_path
):
    workload = {"expect": Statuses.parse("201-299, 404"), "parse": status != "404"}
    send_all(
        context(client, path=f"/{status}", requests=3, **workload), RequestNumbers(3)
    )
    assert log_reader.read_measured(tmp_path).errors == errors


@pytest.mark.parametrize("client", ["Scripted", "AsyncScripted"])
@pytest.mark.parametrize(("word", "size"), [("200", 12), ("204", 0)])
def test_the_time_since_the_first_byte_is_recorded(
    client, word, size, context, tmp_path
):
    """It is 0 without a body. An executor that drives its client does not know it."""
    with pytest.raises(PluginError, match="body as it arrives"):
        CallerFactory(context("Stepped", first_byte=True)).record(1)
    send_all(
        context(client, path=f"/{word}", requests=3, first_byte=True), RequestNumbers(3)
    )
    records = log_reader.read_measured(tmp_path).records
    assert records["bytes"].tolist() == [size] * 3
    assert ((records["elapsed"] > 0) == bool(size)).all()
    assert (records["elapsed"] < records["seconds"]).all()


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
