"""The connection between a worker's agent and its job, and the log of both.

The job sends its metrics when it is ready, after each empty message, which is a scrape, and when it ends.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from clientlab.worker.lab_client import LabClient


def log(message: str) -> None:
    """Write one line; line breaks inside `message` become spaces."""
    print(f"clientlab work: {' '.join(message.split())}", file=sys.stderr, flush=True)  # noqa: T201


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
        self._metrics = [waiting(1)]

    def attach(self, connection: Connection) -> None:
        """Wait until a job is ready, and collect its metrics from now on. Raises EOFError where it ends before."""
        metrics = connection.recv()
        with self._lock:
            self._metrics, self._connection = metrics, connection

    def detach(self) -> None:
        """The job's process has ended. Its last metrics are collected until `clear`."""
        with self._lock, contextlib.suppress(EOFError, OSError):
            while self._connection is not None:
                self._metrics = self._connection.recv()
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
                    self._metrics = self._connection.recv()
            return iter(self._metrics)


class MetricsSender:
    """The job's end: a thread that answers the agent with the metrics of a collector."""

    def __init__(self, connection: Connection, collector: Collector) -> None:
        self._connection = connection
        self._collector = collector
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, name="metrics", daemon=True).start()

    def send(self) -> bool:
        """Send the metrics as they are now; False where the agent has ended."""
        with self._lock:
            metrics = list(self._collector.collect())
            try:
                self._connection.send(metrics)
            except OSError:
                return False
        return True

    def _serve(self) -> None:
        while self.send():
            try:
                self._connection.recv()
            except (EOFError, OSError):  # the agent has ended
                return
