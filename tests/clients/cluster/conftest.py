"""A Dask cluster of this machine for tests, before one aiohttp upstream, and `clientlab
run` on it.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from clientlab.results.document import Run
from clientlab.results.store import Store
from running import eventually, free_ports, gunicorn
from signal_handlers import IN_A_TERMINAL, handling

_QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "false",
}


@dataclass
class Program:
    """A process and its log. `port`: a worker's port for metrics."""

    process: subprocess.Popen
    log: Path
    port: int = 0

    @property
    def said(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def ended(self) -> int:
        """Wait for the end, and return the exit code."""
        return self.process.wait(90)

    def metric(self, name: str) -> float:
        """The sum of a metric on a worker's page."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.port}/metrics", timeout=10
        ) as answer:
            lines = re.findall(
                rf"^{name}{{.*}} (.*)$", answer.read().decode(), re.MULTILINE
            )
        return sum(map(float, lines))


class Cluster:
    """A scheduler with its workers. `stack` kills all processes in the end."""

    def __init__(
        self, folder: Path, upstream_port: int, stack: contextlib.ExitStack
    ) -> None:
        self.folder = folder
        self.stack = stack
        self.count = 0
        self.upstream = f"127.0.0.1:{upstream_port}"
        self.store = Store(folder / "results")
        (self.port,) = free_ports(1)
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.start_scheduler()

    def start_scheduler(self) -> None:
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self.start("distributed.cli.dask_scheduler", words)
        eventually(
            lambda: "Scheduler at" in self.scheduler.said, "the scheduler listens"
        )

    def workers(self, *strategies: str) -> list[Program]:
        """Start a worker for each of these strategies; one with an empty name takes
        any.
        """
        workers = [self._start_worker(strategy) for strategy in strategies]
        eventually(
            lambda: all("Registered to" in worker.said for worker in workers),
            "the workers are there",
        )
        return workers

    def _start_worker(self, strategy: str) -> Program:
        (port,) = free_ports(1)
        words = [
            self.address,
            "--host",
            "127.0.0.1",
            "--no-dashboard",
            "--dashboard-address",
            f"127.0.0.1:{port}",
        ]
        words += [
            "--no-nanny",
            "--nthreads",
            "1",
            "--memory-limit",
            "0",
            "--local-directory",
            str(self.folder),
        ]
        words += ["--preload", "clientlab.cluster.preload"]
        words += ["--resources", f"{strategy}=1"] if strategy else []
        return self.start("distributed.cli.dask_worker", words, port)

    def run(self, *words: str) -> Program:
        """`clientlab run` on this cluster."""
        return self.start(
            "clientlab",
            ["run", *words, "--cluster", self.address, "--out", str(self.store.folder)],
        )

    def start(self, module: str, words: list[str], port: int = 0) -> Program:
        self.count += 1
        log = self.folder / f"{self.count}.log"
        environment = {
            **os.environ,
            **_QUIET,
            "AIOHTTP_ADDRESS": self.upstream,
            "FLASK_ADDRESS": self.upstream,
        }
        command = [sys.executable, "-P", "-m", module, *words]
        with log.open("w") as output, handling(IN_A_TERMINAL):
            program = Program(
                subprocess.Popen(
                    command, stdout=output, stderr=output, env=environment
                ),
                log,
                port,
            )
        self.stack.callback(program.kill)
        return program

    def last_run(self) -> Run:
        return self.store.read("last")


@pytest.fixture(scope="session")
def upstream():
    with gunicorn("aiohttp", workers="1") as server:
        yield server


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory, upstream):
    """A cluster that tests share, with two workers for any strategy."""
    with contextlib.ExitStack() as stack:
        cluster = Cluster(tmp_path_factory.mktemp("shared"), upstream.port, stack)
        yield cluster, cluster.workers("", "")


@pytest.fixture
def cluster(tmp_path, upstream):
    with contextlib.ExitStack() as stack:
        yield Cluster(tmp_path, upstream.port, stack)
