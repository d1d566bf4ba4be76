"""What the recorder of events costs, and whether its times agree with a packet capture.

The cost is taken twice: of the sink alone, fed with the pieces of an event, and of whole trials beside a bare loop.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks import captured_streams
from benchmarks.figures import BenchmarkRow, at_most
from benchmarks.upstream import BenchServer, upstream
from clientlab.clients.aiohttp_clients import AiohttpSession
from clientlab.clients.httpx2_clients import Httpx2Client
from clientlab.measuring.event_recorder import StreamRecord, rules_of
from clientlab.samples.event_log import EVENT_RECORD_SIZE, EventLog
from clientlab.testbeds.server_process import workers_for
from clientlab.workload.workload import Workload

EVENTS = 50_000
TURNS = 15
MOST_MICROSECONDS = 1.5
LIMIT = 1.03
CLIENTS = ("httpx2-client", "aiohttp")
MOST_APART = 0.2
"""Milliseconds between the times of the lab and those of a capture, at the 99th percentile."""
_MARK = "@%06d%018d%06d"


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """`rounds`: fresh processes for each client."""
    for name, client, pieces in (
        ("lines as bytes", AiohttpSession, lambda mark: (b"id: 1\n", b"data: %b abcd\n" % mark.encode(), b"\n")),
        ("lines as text", Httpx2Client, lambda mark: ("id: 1", f"data: {mark} abcd", "")),
    ):
        costs = [_cost_of_event(client, pieces) for _ in range(TURNS)]
        yield _microseconds(f"recorder: CPU time of an event, {name}", costs)
    with upstream(workers_for(1).aiohttp) as server:
        for client_name in CLIENTS:
            ratios = [_ratio(server, client_name, first) for first in (("lab", "bare") * rounds)[:rounds]]
            yield at_most(f"recorder: CPU time of an event over a bare loop, {client_name}", ratios, LIMIT)
        yield from _capture_rows(server)


def _cost_of_event(client: type, pieces_of: Callable[[str], tuple[bytes | str, ...]]) -> float:
    """Microseconds that a sink takes for the pieces of an event, beyond those of a function that does nothing."""
    rules = rules_of(client, Workload(stream="sse", events=EVENTS))
    streams = [piece for number in range(EVENTS) for piece in pieces_of(_MARK % (number, 10**16 + number, 0))]
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder), EVENTS + 1)
        try:
            record = StreamRecord(log, 0, rules)
            nothing, recorded = _seconds(len, streams), _seconds(record.sink, streams)
            record.finish()
            if (wrote := log.next_place() // EVENT_RECORD_SIZE) != EVENTS + 1:
                raise SystemExit(f"the log has {wrote} records, not {EVENTS + 1}")
        finally:
            log.close()
    return (recorded - nothing) / EVENTS * 1e6


def _seconds(function: Callable[..., object], pieces: list[bytes | str]) -> float:
    began = process_time()
    for piece in pieces:
        function(piece)
    return process_time() - began


def _ratio(server: BenchServer, client: str, first: str) -> float:
    """The CPU time of an event in the lab over that in a bare loop, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.streams_in_turn", client, server.url, first]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"streams: {client}: {ended.stderr}")
    return float(json.loads(ended.stdout))


def _capture_rows(server: BenchServer) -> Iterator[BenchmarkRow]:
    """How far the times of trials are from those of the packets. No row without tcpdump: a line says why."""
    if (reason := captured_streams.lacking()) is not None:
        print(f"streams: no comparison with a packet capture: {reason}", file=sys.stderr)
        return
    for client in CLIENTS:
        found = captured_streams.measured(server, client)
        for name, apart in (("lag", found.lag_apart), ("gap", found.gap_apart)):
            at_p99 = float(np.percentile(apart, 99)) * 1e3
            low, high = (float(np.percentile(apart, part)) * 1e3 for part in (50, 100))
            yield BenchmarkRow(
                f"recorder: {name} beside a packet capture, p99, {client}", at_p99, low, high,
                f"median to most of {len(apart):,}", f"<= {MOST_APART:g}", at_p99 <= MOST_APART, "ms",
            )  # fmt: skip


def _microseconds(name: str, costs: list[float]) -> BenchmarkRow:
    value = sorted(costs)[len(costs) // 2] if costs else math.nan
    met = value <= MOST_MICROSECONDS
    return BenchmarkRow(
        name, value, min(costs), max(costs), f"range of {len(costs)}", f"<= {MOST_MICROSECONDS:g}", met, "µs"
    )
