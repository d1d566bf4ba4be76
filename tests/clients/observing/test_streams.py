"""Streams: their events are logged, and the times of a trial's streams are computed
from them.
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from clientlab.observing.samples import Samples, read_measured
from clientlab.observing.stream_times import StreamTimes, pool_streams, read_streams
from clientlab.strategies import client_spec, find
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.trial.recorder import CallerFactory
from clientlab.trial.sample_log import EventLog, write_event
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload, make_workload
from clients.measured import measure
from clients.sampled import records_of, samples_of
from running import gunicorn

FORMATS = ("sse", "jsonl", "openai-chat", "openai-responses", "anthropic")


@pytest.fixture(scope="module")
def url():
    with gunicorn("aiohttp", workers="1") as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def receive(url, tmp_path):
    """Send requests one after the other in this process, and return what was recorded
    of those after the warm-up.
    """

    def receive(name: str, workload: Workload) -> tuple[Samples, StreamTimes]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        context = TrialContext(find(name), workload, PeerAddress(url), str(folder))
        factory = CallerFactory(context)
        numbers = range(-1, workload.load.requests)

        async def send_awaited() -> None:
            caller = await factory.aopen(1)
            await caller.send_all(numbers)
            await caller.close()

        if client_spec(find(name).client).kind == "asyncio":
            asyncio.run(send_awaited())
        else:
            caller = factory.open(1)
            caller.send_all(numbers)
            caller.close()
        samples = read_measured(folder)
        return samples, read_streams(folder, samples)

    return receive


def streams(form: str = "sse", **others) -> Workload:
    paced = {"every": Delay.parse("5ms"), "events": 10} | others
    return make_workload(stream=form, requests=4, warmup=1, connections="warm", **paced)


@pytest.mark.real
@pytest.mark.parametrize(
    ("client", "form"),
    [
        ("http.client", "jsonl"),
        ("requests-session", "sse"),
        ("requests-lines", "sse"),
        ("urllib3", "anthropic"),
        ("pycurl", "sse"),
        ("aiohttp", "openai-chat"),
        ("httpx-sse", "sse"),
        ("httpx-sse-async", "sse"),
        ("httpx2-sse", "openai-responses"),
        ("httpx2-sse-async", "sse"),
        ("openai", "openai-chat"),
        ("openai-async", "openai-responses"),
        ("openai-aiohttp", "openai-chat"),
        ("anthropic", "anthropic"),
        ("anthropic-async", "anthropic"),
        ("anthropic-aiohttp", "anthropic"),
    ],
)
def test_every_event_is_recorded_once_with_the_moments_of_its_write_and_its_arrival(
    client, form, receive
):
    samples, times = receive(client, streams(form))
    assert samples.errors == {}
    assert times.events == 40
    assert times.disordered == 0
    assert len(times.lags) == 40
    assert len(times.late) == 40
    assert (times.lags > 0).all()
    assert 0.004 < np.median(times.gaps) < 0.006
    assert times.together is not None


@pytest.mark.real
@pytest.mark.parametrize(
    ("strategy", "form"),
    [("aiohttp@workers", "openai-chat"), ("urllib3@threads", "anthropic")],
)
def test_the_processes_of_trials_record_the_events_of_all_streams(strategy, form, url):
    found = measure(strategy, streams(form, concurrency=2), url)
    assert found.samples.errors == {}
    assert found.streams.events == 40
    assert found.streams.disordered == 0


@pytest.mark.real
def test_a_stream_that_waits_for_512_bytes_has_a_lag(receive):
    """Without chunks, `iter_lines` waits until its buffer is full."""
    sized = streams(stream_options="sized=1", events=20)
    _, late = receive("requests-lines", sized)
    _, soon = receive("requests-lines?chunk_size=1", sized)
    assert np.median(late.lags) > 0.01
    assert np.median(soon.lags) < 0.01
    assert late.together > 40


@pytest.mark.real
@pytest.mark.parametrize("client", ["http.client", "httpx2-sse", "openai"])
def test_events_of_another_server_are_counted_by_their_format(client, receive):
    for form in client_spec(client).formats or FORMATS:
        headers = {"X-Stream": f"format={form}&events=7&every=1ms"}
        path = "/stream" if form in {"sse", "jsonl"} else "/"
        workload = streams(form, marks=False, headers=headers, path=path)
        samples, times = receive(client, workload)
        assert samples.errors == {}
        assert len(times.lags) == 0
        assert times.events == 28


@pytest.mark.real
def test_a_response_without_events_is_an_error(receive):
    without, _ = receive("aiohttp", streams(marks=False, path="/todos/1"))
    assert without.errors == {"events-missing": 4}
    refused, _ = receive("aiohttp", streams(stream_options="colour=red"))
    assert refused.errors == {"status-4xx": 4}


def read(folder, *marks) -> StreamTimes:
    """Return the times of the events of two requests, both sent at 1 s: (request,
    seconds of arrival, number, seconds of write) each.
    """
    log = EventLog(folder)
    for request, at, number, written in marks:
        mark = b"%06d%018d%06d" % (number, round(written * 1e9), 250)
        write_event(log.buffer, log.next_place(), request, at, mark, 1)
    log.close()
    return read_streams(folder, samples_of(records_of(1.0, [0.0, 0.0])))


def test_times_of_streams(tmp_path):
    found = read(
        tmp_path,
        (1, 1.5, 0, 1.4),
        (0, 1.2, 0, 1.1),
        (0, 1.8, 1, 1.15),
        (0, 1.8, 2, 1.7),
        (-1, 1.0, 0, 0.9),
    )
    assert found.numbers.tolist() == [0, 1]
    assert found.first.tolist() == pytest.approx([0.2, 0.5])
    assert found.gaps.tolist() == pytest.approx([0.6, 0.0])
    assert found.lags.tolist() == pytest.approx([0.1, 0.65, 0.1, 0.1])
    assert found.late.tolist() == pytest.approx([0.00025] * 4)
    assert found.together == 2
    assert found.disordered == 0
    both = pool_streams([found, found])
    assert both.events == 8
    assert both.together == 4


def test_events_out_of_order_are_noticed(tmp_path):
    found = read(tmp_path, (0, 1.2, 1, 1.1), (0, 1.3, 0, 1.2))
    assert found.disordered == 1


def test_clocks_of_other_machines_are_noticed(tmp_path):
    found = read(tmp_path, (0, 1.2, 0, 500.1), (0, 1.3, 1, 500.2))
    assert len(found.lags) == 0
    assert found.together is None
    assert len(found.late) == 2
