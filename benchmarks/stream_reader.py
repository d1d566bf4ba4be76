"""A cheap reader of many streams, as a process: ``python -m benchmarks.stream_reader``, its task as JSON on stdin.

It stamps each piece when the event loop hands it over, and looks into the pieces after the last stream has ended. Its
own time is a part of the gaps that it sees, and no part of the lateness that the marks tell.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import sys
import time
from dataclasses import asdict, dataclass
from typing import cast

import uvloop

_MARK = re.compile(rb"@\d{24}(\d{6})")
_END = b"\r\n0\r\n\r\n"
_EDGE = 3
"""Gaps at both ends of a stream that are not counted: a server's other events come there without a gap."""


@dataclass(frozen=True)
class ReadingTask:
    """`streams` connections that all send `request`, in the course of `spread` seconds; `gap`: the planned one."""

    port: int
    request: str
    streams: int
    spread: float
    gap: float
    patience: float


@dataclass(frozen=True)
class ReadingResult:
    """Seconds: `late` of each mark, and how far each gap between two pieces was from the planned one."""

    late: list[float]
    gap_errors: list[float]
    complete: int


class _ReadStream(asyncio.Protocol):
    """One stream."""

    def __init__(self, task: ReadingTask, delay: float) -> None:
        self._task = task
        self._delay = delay
        self.pieces: list[tuple[float, bytes]] = []
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        asyncio.get_running_loop().call_later(self._delay, self._transport.write, self._task.request.encode())

    def data_received(self, data: bytes) -> None:
        self.pieces.append((time.perf_counter(), data))
        if data.endswith(_END) or data == _END[2:]:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's interface
        if not self.ended.done():
            self.ended.set_result(None)

    def late(self) -> list[float]:
        """Seconds by which each event was written too late, as its mark tells."""
        return [int(found) / 1e6 for found in _MARK.findall(b"".join(data for _, data in self.pieces))]

    def gap_errors(self) -> list[float]:
        """How far each gap between two pieces with events was from the planned one, in seconds."""
        arrivals = [arrival for arrival, data in self.pieces if b"data:" in data][_EDGE:-_EDGE]
        return [abs(after - before - self._task.gap) for before, after in itertools.pairwise(arrivals)]


async def _read(task: ReadingTask) -> ReadingResult:
    loop, source = asyncio.get_running_loop(), random.Random(task.streams)  # noqa: S311
    readers = [_ReadStream(task, source.uniform(0.0, task.spread)) for _ in range(task.streams)]
    for reader in readers:
        await loop.create_connection(lambda reader=reader: reader, "127.0.0.1", task.port)  # type: ignore[misc]
    async with asyncio.timeout(task.patience):
        await asyncio.gather(*(reader.ended for reader in readers))
    return ReadingResult(
        [late for reader in readers for late in reader.late()],
        [error for reader in readers for error in reader.gap_errors()],
        sum(reader.pieces[-1][1].endswith(_END[2:]) for reader in readers if reader.pieces),
    )


if __name__ == "__main__":
    json.dump(asdict(uvloop.run(_read(ReadingTask(**json.load(sys.stdin))))), sys.stdout)
