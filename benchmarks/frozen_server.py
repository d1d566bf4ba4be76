"""A server that is stopped for a second in every period, so that requests wait for it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from benchmarks.trials import Site
from clientlab import child_processes

FROZEN_SECONDS, PERIOD = 1.0, 10.0
PERIODS = 2


@dataclass
class Freezer:
    """Stops a process for a second in the middle of every period, once it is started. `times`: from when to when."""

    pid: int
    times: list[tuple[float, float]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def start(self) -> None:
        """Begin the first period."""
        self._thread.start()

    def _run(self) -> None:
        began = time.perf_counter()
        for period in range(PERIODS):
            moment = began + (period + 0.5) * PERIOD
            if self._over.wait(moment - time.perf_counter()):
                return
            os.kill(self.pid, signal.SIGSTOP)
            frozen = time.perf_counter()
            self._over.wait(frozen + FROZEN_SECONDS - time.perf_counter())
            os.kill(self.pid, signal.SIGCONT)
            self.times.append((frozen, time.perf_counter()))


@contextlib.contextmanager
def bare_server() -> Iterator[tuple[Site, subprocess.Popen[bytes]]]:
    """One process with nothing but aiohttp."""
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "benchmarks.bare_upstream", str(writing)]
    process = child_processes.start(command, None, os.environ, [writing])
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            yield Site(f"http://127.0.0.1:{int(answer.readline())}"), process
    finally:
        child_processes.stop(process, patience=0)
