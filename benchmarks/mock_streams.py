"""How late the aiohttp upstream writes the events of many streams, with as many workers as the lab starts.

The marks in the events tell it. A cheap reader in a process of its own also sees how far each gap is from the planned
one: that holds the reader's own share, and it can be compared with servers whose events hold no mark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.servers import cpu_seconds_with_workers
from benchmarks.stream_reader import ReadingResult, ReadingTask
from benchmarks.upstream import BenchServer, upstream
from clientlab.testbeds.server_process import workers_for

STREAMS = (64, 256, 512)
EVENTS = 150
GAP = 0.02
"""Seconds between two events of a stream: 50 events a second."""
LIMIT = 1.0
"""Milliseconds that the 99th percentile of the smallest number of streams may reach."""
# All requests have been read before the first event is due.
_TARGET = f"/stream?format=openai-chat&first=500ms&every={GAP}&events={EVENTS}&end=with"
_PATIENCE = 60.0


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """Rows for each number of streams, with the range over the rounds."""
    with upstream(workers_for(max(STREAMS)).aiohttp) as server:
        for streams in STREAMS:
            load = os.getloadavg()[0]
            measured = [_measured(server, streams) for _ in range(rounds)]
            about = f"{streams} streams of {1 / GAP:.0f} events a second (load of the machine before: {load:.1f})"
            late = [result.late for result, _ in measured]
            gaps = [result.gap_errors for result, _ in measured]
            limit = LIMIT if streams == min(STREAMS) else None
            yield _row(f"mock: write error, p50, {about}", _milliseconds(late, 50), "ms")
            yield _row(f"mock: write error, p99, {about}", _milliseconds(late, 99), "ms", limit)
            yield _row(f"mock: error of a gap as read, p99, {about}", _milliseconds(gaps, 99), "ms")
            yield _row(f"mock: CPU time of an event, {about}", [cpu for _, cpu in measured], "µs")


def _measured(server: BenchServer, streams: int) -> tuple[ReadingResult, float]:
    """What the reader saw, and the microseconds of the server's CPU time an event.

    Raises SystemExit if a stream did not end, or if an event is missing.
    """
    task = ReadingTask(server.port, f"GET {_TARGET} HTTP/1.1\r\nHost: x\r\n\r\n", streams, GAP, GAP, _PATIENCE)
    before = cpu_seconds_with_workers(server.pid)
    reader = subprocess.run(
        [sys.executable, "-m", "benchmarks.stream_reader"],
        input=json.dumps(asdict(task)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    used = cpu_seconds_with_workers(server.pid) - before
    result = ReadingResult(**json.loads(reader.stdout))
    if result.complete != streams or len(result.late) != streams * EVENTS:
        raise SystemExit(f"{result.complete} of {streams} streams were complete, with {len(result.late)} events")
    return result, used / (streams * EVENTS) * 1e6


def _milliseconds(rounds: Sequence[Sequence[float]], quantile: float) -> list[float]:
    return [float(np.percentile(np.asarray(seconds), quantile)) * 1000 for seconds in rounds]


def _row(name: str, values: Sequence[float], unit: str, limit: float | None = None) -> BenchmarkRow:
    value, spread = median(values), f"range of {len(values)} rounds"
    target, met = ("none", True) if limit is None else (f"<= {limit:g}", value <= limit)
    return BenchmarkRow(name, value, min(values), max(values), spread, target, met, unit)
