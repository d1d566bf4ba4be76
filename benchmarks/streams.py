"""Streams: how exact the mock server's moments are, and what the recorder adds to each
event.

The bare loop reads the same streams with the same client, and keeps nothing. Both take
turns in one process.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from benchmarks.figures import BenchmarkRow, ratio
from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.executors.executor_interface import RequestNumbers
from clientlab.observing import measurement
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.servers import choose_workers
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.trial.event_recorder import ChunkSink, ParsedEventSink
from clientlab.trial.process import load_libraries, make_executor
from clientlab.trial.sample_log import EventLog
from clientlab.workload.requests import requests_of
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload, make_workload

STREAMS, PER_SECOND, SECONDS = (64, 256, 512), 50, 4
MOST_WRITE_ERROR, MOST_PER_EVENT, MOST_RATIO = 1e-3, 1.5e-6, 1.03
"""p99 of the write error with 64 streams, in seconds; the recorder's seconds per event;
CPU time over the bare loop.
"""
_CALLS = 100_000
_EVENT = b"7a\r\ndata: @000007000001234567890123000012 abcdefghijklmnop\n\n"


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """Yield the write error for each number of streams, and the cost of the
    recorder.
    """
    with (
        tempfile.TemporaryDirectory() as logs,
        LocalTestbed(["aiohttp"], ["direct"], Path(logs), choose_workers(1)) as it,
    ):
        url = it.address("aiohttp", "direct").url
        for streams in STREAMS:
            error = [1e3 * one for one in _write_errors(url, streams)]
            met = streams > STREAMS[0] or error[1] <= 1e3 * MOST_WRITE_ERROR
            target = (
                f"<= {1e3 * MOST_WRITE_ERROR:g}" if streams == STREAMS[0] else "none"
            )
            name = f"write error of {streams} streams of {PER_SECOND} events/s, p99"
            yield BenchmarkRow(
                name, error[1], error[0], error[2], "p50 and maximum", target, met, "ms"
            )
        for name, took in (
            ("a chunk", _time_sink(ChunkSink)),
            ("a parsed event", _time_sink(ParsedEventSink)),
        ):
            value, met = 1e6 * median(took), median(took) <= MOST_PER_EVENT
            spread, target = f"range of {len(took)}", f"<= {1e6 * MOST_PER_EVENT:g}"
            yield BenchmarkRow(
                f"recording {name}",
                value,
                1e6 * min(took),
                1e6 * max(took),
                spread,
                target,
                met,
                "us",
            )
        for strategy in ("aiohttp", "httpx2-async"):
            yield ratio(
                f"lab over bare loop, CPU time of a stream, {strategy}",
                _compare(strategy, url, rounds),
                MOST_RATIO,
            )


def _write_errors(url: str, streams: int) -> tuple[float, float, float]:
    """Return median, p99 and maximum of the seconds by which events were late."""
    workload = make_workload(
        stream="sse",
        every=Delay.parse(f"{1 / PER_SECOND}s"),
        events=PER_SECOND * SECONDS,
        requests=streams,
        concurrency=streams,
        warmup=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        found = measurement.measure(
            _context("aiohttp@workers", workload, url, folder)
        ).streams
    if found is None or found.events != streams * PER_SECOND * SECONDS:
        raise SystemExit("streams: events are missing")
    p50, p99, most = np.percentile(found.late, [50, 99, 100])
    return float(p50), float(p99), float(most)


def _time_sink(sink_class: type[ChunkSink | ParsedEventSink]) -> list[float]:
    """Return the seconds of a call of a sink, minus those of an empty function, from
    seven turns.
    """

    def nothing(_piece: bytes) -> None:
        pass

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(7):
            log, took = EventLog(Path(folder) / str(turn)), []
            sink = sink_class(log, _CALLS, re.compile(b"."), 0)
            for call in (nothing, sink.take):
                began = perf_counter()
                for _ in range(_CALLS):
                    call(_EVENT)
                took.append(perf_counter() - began)
            log.close()
            found.append((took[1] - took[0]) / _CALLS)
    return found


def _compare(strategy: str, url: str, rounds: int) -> list[float]:
    """Return the CPU time of reading some streams in the lab over that of the bare
    loop, for each round.
    """
    workload = make_workload(
        stream="sse",
        every=Delay.parse("1ms"),
        events=500,
        requests=rounds * 2,
        concurrency=1,
        warmup=0,
    )
    ratios = []
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        context = _context(strategy, workload, url, folder)
        load_libraries(context)
        executor, request = make_executor(context), requests_of(workload, url)(0)
        client = strategies.load(strategies.client_spec(strategy).import_path)
        bare = client(Budget(1, 30.0, chunk_size=None), lambda: None)
        executor.open()
        runner.run(bare.open())
        for number in range(rounds):
            took = {}
            for way in ("lab", "bare") if number % 2 else ("bare", "lab"):
                began = process_time()
                if way == "lab":
                    executor.run(RequestNumbers(2, first=2 * number))
                else:
                    for _ in range(2):
                        runner.run(bare.stream(request, len))
                took[way] = process_time() - began
            ratios.append(took["lab"] / took["bare"])
        runner.run(bare.close())
        executor.close()
    return ratios[1:]  # the first round warms up


def _context(strategy: str, workload: Workload, url: str, folder: str) -> TrialContext:
    return TrialContext(strategies.find(strategy), workload, PeerAddress(url), folder)
