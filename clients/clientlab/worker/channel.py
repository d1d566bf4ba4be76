"""The connection between a worker's agent and the process of its jobs, and the log of both.

For each job, the agent sends an input. The job sends its metrics when it is ready, after each empty message, which is a
scrape, and when it is over; then its exit code.
"""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from clientlab.worker.lab_client import LabClient

_LOOK_SECONDS = 0.2
"""A scrape may take the job's end while the agent waits for it."""


@dataclass(frozen=True)
class JobInput:
    """What a job needs. `assignment`: the lab's JSON document; `folder`: where the trial's files go."""

    assignment: dict[str, Any]
    worker: str
    lab: LabClient
    folder: str


def waiting(value: int) -> Metric:
    """The gauge that is 1 while the worker waits for an assignment."""
    return GaugeMetricFamily("clientlab_worker_waiting", "1 while the worker waits for an assignment.", value)


class JobMetrics(Collector):
    """The agent's end: collects the metrics of the present job, or the waiting gauge without one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._code: int | None = None
        self._metrics = [waiting(1)]

    def attach(self, connection: Connection) -> None:
        """Wait until a job is ready or over, and collect its metrics. Raises EOFError where its process ends before."""
        message = connection.recv()
        with self._lock:
            self._connection, self._code = connection, None
            self._take(message)

    def wait_for_end(self) -> int | None:
        """The exit code of the job, when it is over; None where its process has ended. Its last metrics stay."""
        while (connection := self._connection) is not None:
            multiprocessing.connection.wait([connection], _LOOK_SECONDS)
            with self._lock:
                self._receive(connection)
        return self._code

    def detach(self) -> None:
        """The job's process has ended. Its last metrics are collected until `clear`."""
        with self._lock, contextlib.suppress(EOFError, OSError):
            while self._connection is not None:
                self._take(self._connection.recv())
        self._connection = None

    def clear(self) -> None:
        """The worker waits again."""
        self._metrics = [waiting(1)]

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(EOFError, OSError):  # the job has just ended: its last ones are known
                    self._connection.send(None)
                    self._take(self._connection.recv())
            return iter(self._metrics)

    def _receive(self, connection: Connection) -> None:
        """Take what the job sent without being asked, if a scrape has not taken it."""
        try:
            if self._connection is not None and connection.poll():
                self._take(connection.recv())
        except (EOFError, OSError):
            self._connection = None

    def _take(self, message: list[Metric] | int) -> None:
        if isinstance(message, int):
            self._code, self._connection = message, None
        else:
            self._metrics = message


class JobChannel:
    """The job's end: a thread takes the inputs, and answers the agent with the metrics of the present job."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._collector: Collector | None = None
        self._inputs: SimpleQueue[JobInput | None] = SimpleQueue()
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, name="metrics", daemon=True).start()

    def inputs(self) -> Iterator[JobInput]:
        """What the agent sends, one after the other, until it closes its end."""
        while (given := self._inputs.get()) is not None:
            yield given

    def begin(self, collector: Collector) -> None:
        """A job is ready: send its metrics now, and whenever the agent wants them."""
        with self._lock:
            self._collector = collector
            self._send(list(collector.collect()))

    def end(self, code: int) -> None:
        """The job is over: send its last metrics and its exit code."""
        with self._lock:
            collector, self._collector = self._collector, None
            if collector is not None:
                self._send(list(collector.collect()))
            self._send(code)

    def _send(self, message: list[Metric] | int) -> None:
        with contextlib.suppress(OSError):  # the agent has ended
            self._connection.send(message)

    def _serve(self) -> None:
        with contextlib.suppress(EOFError, OSError):  # the agent has ended
            while True:
                if isinstance(message := self._connection.recv(), JobInput):
                    self._inputs.put(message)
                    continue
                with self._lock:
                    if self._collector is not None:  # else the job is over, and its code answers
                        self._send(list(self._collector.collect()))
        self._inputs.put(None)
