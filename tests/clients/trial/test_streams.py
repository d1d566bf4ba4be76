"""Streams: their events are logged, and the times of a trial's streams are computed from them."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.trial.sample_log import EventLog, write_event
from clientlab.trial.samples import RECORD, Samples
from clientlab.trial.stream_times import pool_streams, read_streams
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload
from clients.measured import measure
from running import gunicorn


@pytest.fixture(scope="module")
def upstream():
    with gunicorn("aiohttp", workers="1") as server:
        yield server


def streams(form: str = "sse", **others) -> Workload:
    return Workload(stream=form, every=Delay.parse("5ms"), events=20, **{"requests": 4, "concurrency": 2} | others)


@pytest.mark.real
@pytest.mark.parametrize(
    ("strategy", "form"),
    [
        ("http.client", "jsonl"), ("requests-session@threads", "sse"), ("requests-lines", "sse"),
        ("urllib3", "anthropic"),
        ("pycurl", "sse"), ("aiohttp@workers", "openai-chat"), ("httpx-sse", "sse"), ("httpx-sse-async@workers", "sse"),
        ("httpx2-sse", "openai-responses"), ("httpx2-sse-async@workers", "sse"), ("openai", "openai-chat"),
        ("openai-async@workers", "openai-responses"), ("openai-aiohttp@workers", "openai-chat"),
        ("anthropic@threads", "anthropic"), ("anthropic-async@workers", "anthropic"),
        ("anthropic-aiohttp", "anthropic"),
    ],
)  # fmt: skip
def test_every_event_is_recorded_once_with_the_moments_of_its_write_and_its_arrival(upstream, strategy, form):
    found = measure(strategy, streams(form), f"http://127.0.0.1:{upstream.port}")
    assert found.samples.errors == {}
    times = found.streams
    assert (times.events, times.disordered, len(times.lags), len(times.late)) == (80, 0, 80, 80)
    assert (times.lags > 0).all()
    assert 0.004 < np.median(times.gaps) < 0.006
    assert times.together is not None


@pytest.mark.real
def test_a_stream_that_waits_for_512_bytes_has_a_lag(upstream):
    """Without chunks, `iter_lines` waits until its buffer is full."""
    sized = streams(stream_options="sized=1")
    late, soon = (
        measure(strategy, sized, f"http://127.0.0.1:{upstream.port}").streams
        for strategy in ("requests-lines", "requests-lines?chunk_size=1")
    )
    assert np.median(late.lags) > 0.01 > np.median(soon.lags)
    assert late.together > 40


@pytest.mark.real
def test_events_of_another_server_are_counted_by_their_format(upstream):
    def count(strategy: str, form: str) -> int:
        headers, path = (
            {"X-Stream": f"format={form}&events=7&every=1ms"},
            "/stream" if form in {"sse", "jsonl"} else "/",
        )
        workload = streams(form, marks=False, headers=headers, path=path)
        found = measure(strategy, workload, f"http://127.0.0.1:{upstream.port}")
        assert found.samples.errors == {}
        assert not len(found.streams.lags)
        return found.streams.events

    for form in ("sse", "jsonl", "openai-chat", "openai-responses", "anthropic"):
        assert count("http.client", form) == 28
    assert {count("httpx2-sse", form) for form in ("sse", "openai-chat", "anthropic")} == {28}
    assert count("openai", "openai-chat") == 28


@pytest.mark.real
def test_a_response_without_events_is_an_error(upstream):
    workload = streams(marks=False, path="/todos/1")
    assert measure("aiohttp", workload, f"http://127.0.0.1:{upstream.port}").samples.errors == {"events-missing": 4}
    workload = streams(stream_options="colour=red")
    assert measure("aiohttp", workload, f"http://127.0.0.1:{upstream.port}").samples.errors == {"status-4xx": 4}


def logged(folder, marks, starts=(0.0, 0.0), started=1.0) -> Samples:
    """Log events of two requests: (request, seconds of arrival, number, seconds of write) each."""
    log = EventLog(folder)
    for request, at, number, written in marks:
        mark = b"%06d%018d%06d" % (number, round(written * 1e9), 250)
        write_event(log.buffer, log.next_place(), request, at, mark, 1)
    log.close()
    records = np.zeros(2, RECORD)
    records["start"] = [started + offset for offset in starts]
    return Samples(records, np.arange(2), {}, {}, {})


def test_times_of_streams(tmp_path):
    found = read_streams(tmp_path, logged(tmp_path, [
        (1, 1.5, 0, 1.4), (0, 1.2, 0, 1.1), (0, 1.8, 1, 1.15), (0, 1.8, 2, 1.7), (-1, 1.0, 0, 0.9),
    ]))  # fmt: skip
    assert found.numbers.tolist() == [0, 1]
    assert found.first.tolist() == pytest.approx([0.2, 0.5])
    assert found.gaps.tolist() == pytest.approx([0.6, 0.0])
    assert found.lags.tolist() == pytest.approx([0.1, 0.65, 0.1, 0.1])
    assert found.late.tolist() == pytest.approx([0.00025] * 4)
    assert (found.together, found.disordered) == (2, 0)
    both = pool_streams([found, found])
    assert (both.events, both.together) == (8, 4)


def test_events_out_of_order_and_clocks_of_other_machines_are_noticed(tmp_path):
    assert read_streams(tmp_path, logged(tmp_path, [(0, 1.2, 1, 1.1), (0, 1.3, 0, 1.2)])).disordered == 1
    other = tmp_path / "other"
    found = read_streams(other, logged(other, [(0, 1.2, 0, 500.1), (0, 1.3, 1, 500.2)]))
    assert (len(found.lags), found.together, len(found.late)) == (0, None, 2)
