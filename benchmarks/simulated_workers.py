"""SimulatedWorkers that measure nothing: they speak the lab's API over real sockets, and make up their results.

``python -m benchmarks.simulated_workers PORT WORKERS NOTES`` works until it is killed. Each worker opens a connection
for each request, as `clientlab work` does. Lines of JSON in the file NOTES tell when something was sent or answered, by
the machine's monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from clientlab.measuring.outcome import Outcome
from clientlab.results.server_counters import ServerCounters
from clientlab.results.shard import RequestCounts, ShardReport, ShardSlices, ShardTimes
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.quantiles import times_of
from clientlab.worker.assignment import Assignment
from clientlab.worker.lab_client import POLL_TIMEOUT, pauses
from clientlab.workload.shard_workload import share_of

TOKEN = "of the simulated workers"  # noqa: S105 - of a benchmark
STRATEGY = "urllib3@threads"
REQUESTS = 2000
"""Of a shard, and of a trial that is not divided: their times decide how large a result is."""

MEASURING_SECONDS = 0.2
_CLOCK_ROUND_TRIPS = 3
_KINDS = 20
"""Of results. To make them takes a few milliseconds each, in which no other worker would get on."""

_NOT_OVER = 500
"""The status from which on a request is made once more."""


class _Exchange(asyncio.Protocol):
    """One request on a connection of its own. `at`: when the first byte of its answer came."""

    def __init__(self, request: bytes, over: asyncio.Future[bytes]) -> None:
        self._request = request
        self.over = over
        self._received = bytearray()
        self.at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.at = self.at or time.monotonic()
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:
        if self.over.done():
            return
        if self._received and exc is None:
            self.over.set_result(bytes(self._received))
        else:
            self.over.set_exception(exc or ConnectionResetError("no answer"))


@dataclass
class SimulatedWorkers:
    """All of them, and what they note."""

    port: int
    count: int
    notes: Path
    times: list[ShardTimes] = field(default_factory=list)

    async def work(self) -> None:
        """Until this process is killed."""
        draw = np.random.default_rng(1)
        drawn = (draw.lognormal(-5.0, 0.5, REQUESTS) for _ in range(_KINDS))
        self.times = [times_of(seconds, seconds[:0]) for seconds in drawn]
        async with asyncio.TaskGroup() as group:
            for number in range(self.count):
                group.create_task(self._one(number))

    async def _one(self, number: int) -> None:
        name, host = f"{number:016x}", f"worker-{number:04d}"
        poll = {"worker": name, "host": host, "strategies": [STRATEGY]}
        while True:
            sent = time.monotonic()
            found, at = await self._insist("/api/assignments", poll)
            if found is None:
                continue
            assignment = Assignment.model_validate(found)
            order = assignment.trial.order
            self._note(event="assigned", order=order, shard=assignment.shard, sent=sent, at=at)
            await self._do(name, host, assignment)
            self._note(event="taken", order=order, shard=assignment.shard, at=time.monotonic())

    async def _do(self, name: str, host: str, assignment: Assignment) -> None:
        order = assignment.trial.order
        mine: dict[str, Any] = {"worker": name, "run": assignment.run, "order": order}
        if assignment.shard is None:
            found = Trial.of(assignment.trial, **self._figures(assignment.trial.order))
            await self._insist("/api/results", self._result(name, assignment, "trial", found))
            return
        mine["shard"] = assignment.shard
        beats = asyncio.create_task(self._beat(mine, assignment.heartbeat_seconds))
        try:
            await asyncio.sleep(random.uniform(0, 0.5))  # noqa: S311 - processes do not start at the same moment
            for _ in range(_CLOCK_ROUND_TRIPS):
                await self._insist("/api/clock", None)
            meeting, learned = None, 0.0
            while meeting is None:
                meeting, learned = await self._insist("/api/meetings", mine)
            start = time.monotonic() + meeting["start"] - time.time()
            self._note(event="met", order=order, shard=assignment.shard, learned=learned, start=start)
            await asyncio.sleep(max(0.0, start + MEASURING_SECONDS - time.monotonic()))
        finally:
            beats.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beats
        report = self._report(host, assignment, meeting["start"])
        self._note(event="reported", order=order, shard=assignment.shard, at=time.monotonic())
        await self._insist("/api/results", self._result(name, assignment, "shard", report))

    async def _beat(self, mine: dict[str, Any], seconds: float) -> None:
        while True:
            await self._insist("/api/heartbeats", {**mine, "finished": 1})
            await asyncio.sleep(seconds)

    async def _insist(self, path: str, document: object) -> tuple[dict[str, Any] | None, float]:
        """The answer, and when it came. As `LabClient.insist`."""
        body = b"" if document is None else json.dumps(document).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n"
        head += (
            f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        loop = asyncio.get_running_loop()
        for pause in pauses():
            exchange = _Exchange(head.encode() + body, loop.create_future())
            try:
                async with asyncio.timeout(POLL_TIMEOUT):
                    await loop.create_connection(lambda made=exchange: made, "127.0.0.1", self.port)  # type: ignore[misc]
                    answer = await exchange.over
                why = ""
            except OSError as error:
                answer, why = b"", repr(error)
            status = int(answer[9:12] or b"503")
            if status < _NOT_OVER:
                content = answer.partition(b"\r\n\r\n")[2]
                return (json.loads(content) if status == 200 else None), exchange.at
            self._note(event="retry", path=path, status=status, why=why or answer[-120:].decode(), at=time.monotonic())
            await asyncio.sleep(pause)
        raise AssertionError("pauses never end")

    def _result(self, name: str, assignment: Assignment, part: str, found: Trial | ShardReport) -> dict[str, Any]:
        return {"worker": name, "run": assignment.run, part: found.model_dump(mode="json")}

    def _figures(self, number: int) -> dict[str, Any]:
        return {
            "status": "done", "started": utc_now(), "wall_seconds": 0.2, "requests": REQUESTS,
            "requests_per_second": REQUESTS / 0.2, "connections_opened": 4, "cpu_seconds": 0.1, "gil": True,
            "bytes_received": 21 * REQUESTS, "histogram": self.times[number % _KINDS].answered,
            "verdict": "client-bound",
        }  # fmt: skip

    def _report(self, host: str, assignment: Assignment, began: float) -> ShardReport:
        """The report of a shard, of the size that a real one has: a closed load with a delay."""
        place = assignment.shard or 0
        share = share_of(assignment.workload, place, assignment.trial.concurrency)
        planned = PlannedTrial(**{**dict(assignment.trial), "concurrency": share.concurrency})
        times = self.times[place % _KINDS]
        requests, each = share.requests or 0, REQUESTS // 50
        return ShardReport(
            index=place, planned=planned, started=utc_now(), host=host, machine="one", cores=1.0, machine_cores=2.0,
            outcome=Outcome(
                began=began + place / 1e5, wall_seconds=0.2, cpu_seconds=0.1, idle_rss_bytes=None, peak_rss_bytes=None,
                connections_begun=4, connections_opened=4, connections_in_all=4, processes=1,
            ),
            counts=RequestCounts(
                finished=requests, errors={}, error_examples={}, sent=requests, received_bytes=21 * REQUESTS,
                in_flight_seconds=times.sum_seconds, delay_seconds=1.0,
            ),
            latency=times, overhead=times,
            slices=ShardSlices(exponent=-8, ended=(each,) * 50, failed=(0,) * 50, done=(each,) * 50),
            before=ServerCounters(), after=ServerCounters(),
        )  # fmt: skip

    def _note(self, **line: object) -> None:
        self._open().write(json.dumps(line) + "\n")

    def _open(self) -> Any:
        if not hasattr(self, "_file"):
            self._file = self.notes.open("a", buffering=1 << 16)
        return self._file

    def flush(self) -> None:
        """Write what is noted."""
        self._open().flush()


async def _main(port: int, count: int, notes: Path) -> None:
    workers = SimulatedWorkers(port, count, notes)
    working = asyncio.create_task(workers.work())
    while not working.done():
        await asyncio.sleep(0.25)
        workers.flush()
    await working


def notes_in(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file of notes."""
    if path.exists():
        for line in path.read_text().splitlines():
            with contextlib.suppress(ValueError):  # the last one is being written
                yield json.loads(line)


if __name__ == "__main__":
    _, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_hard, _hard))
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
