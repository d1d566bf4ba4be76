"""A Dask cluster of this machine for tests: a scheduler and workers as processes, and `clientlab run` beside them."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from clientlab.results.document import Run
from clientlab.results.store import Store
from running import eventually, free_ports
from signal_handlers import IN_A_TERMINAL, handling

_QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "false",
}


@dataclass
class Program:
    """A process and its log."""

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
        """Wait for the end; the exit code."""
        return self.process.wait(90)


@dataclass
class Cluster:
    """What a test starts; all of it is ended with the test."""

    folder: Path
    upstream_port: int
    stack: contextlib.ExitStack
    scheduler: Program = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        (self.port,) = free_ports(1)
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.start_scheduler()

    def start_scheduler(self) -> None:
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self.start("distributed.cli.dask_scheduler", words)
        eventually(lambda: "Scheduler at" in self.scheduler.said, "the scheduler listens")

    @property
    def store(self) -> Store:
        return Store(self.folder / "results")

    def worker(self, *strategies: str) -> Program:
        """A worker that offers strategies, or takes any without one."""
        (port,) = free_ports(1)
        words = [self.address, "--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", f"127.0.0.1:{port}"]
        words += ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--local-directory", str(self.folder)]
        words += ["--preload", "clientlab.cluster.preload"]
        words += ["--resources", ",".join(f"{name}=1" for name in strategies)] if strategies else []
        worker = self.start("distributed.cli.dask_worker", words)
        worker.port = port
        eventually(lambda: "Registered to" in worker.said, "the worker is there")
        return worker

    def run(self, *words: str) -> Program:
        """`clientlab run` on this cluster."""
        more = ["--cluster", self.address, "--out", str(self.store.folder)]
        return self.start("clientlab", ["run", *words, *more])

    def start(self, module: str, words: list[str]) -> Program:
        self.count += 1
        log = self.folder / f"{self.count}.log"
        address = f"127.0.0.1:{self.upstream_port}"
        environment = {**os.environ, **_QUIET, "AIOHTTP_ADDRESS": address, "FLASK_ADDRESS": address}
        with log.open("w") as output, handling(IN_A_TERMINAL):
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *words], stdout=output, stderr=output, env=environment
            )
        program = Program(process, log)
        self.stack.callback(program.kill)
        return program

    def last_run(self) -> Run:
        """The one run, as its file is now."""
        return self.store.read("last")

    def metric(self, worker: Program, name: str) -> float:
        """The sum of a metric on a worker's page."""
        with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/metrics", timeout=10) as answer:
            lines = re.findall(rf"^{name}{{.*}} (.*)$", answer.read().decode(), re.MULTILINE)
        return sum(map(float, lines))
