"""The process that does a worker's jobs, as its agent sees it: it is kept for a while, since it takes long to start."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from types import TracebackType
from typing import Any, Self

from clientlab import child_processes
from clientlab.worker.channel import JobInput, JobMetrics
from clientlab.worker.lab_client import LabClient
from clientlab.worker.token import TOKEN

KEPT_SECONDS = 20.0
"""Seconds for which the process waits for another job: in a run of short trials, each strategy's turn comes before.

It holds 60 MB. Of a run with sixty strategies, those of the last 20 seconds are kept, about fifteen.
"""

_STOP_SECONDS = 2.0
"""A job that is told to end stops its trial and sends its last metrics."""


class KeptJobs:
    """The process of a worker's jobs, started when there is one. At the end, none is left.

    `named`: the strategies that the worker's command line names.
    """

    def __init__(self, named: Collection[str]) -> None:
        self._named = named
        self._lock = threading.Lock()
        self._kept: JobProcess | None = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()

    @contextmanager
    def take(self) -> Iterator[JobProcess]:
        """A process that waits for a job. Afterwards it is kept, unless the job has failed."""
        with self._lock:
            job, self._kept = self._kept, None
            if self._timer is not None:
                self._timer.cancel()
        if job is not None and job.has_ended:
            job.close()
            job = None
        job = job or JobProcess(self._named)
        try:
            yield job
        except BaseException:
            job.close()
            raise
        if job.failed:
            job.close()
            return
        with self._lock:
            self._kept, self._timer = job, threading.Timer(KEPT_SECONDS, self._drop)
            self._timer.daemon = True
            self._timer.start()

    def _drop(self) -> None:
        with self._lock:
            job, self._kept = self._kept, None
        if job is not None:
            job.close()


class JobProcess:
    """A process that does jobs. Its temporary files are in a folder of its own; the token is not in its environment."""

    def __init__(self, named: Collection[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="clientlab-job-")
        ours, theirs = Pipe()
        environment = {name: value for name, value in os.environ.items() if name != TOKEN}
        environment["TMPDIR"] = self._folder.name
        command = child_processes.python("clientlab.worker.job", str(theirs.fileno()), *named)
        with theirs:
            self._process = child_processes.start(command, None, environment, [theirs.fileno()])
        self._connection: Connection = ours
        self.failed = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, as where it was killed between two jobs."""
        return self._process.poll() is not None

    def do(self, assignment: dict[str, Any], worker: str, lab: LabClient, metrics: JobMetrics) -> int:
        """Have a job done, and collect its metrics meanwhile; its exit code, or that of its process."""
        folder = tempfile.mkdtemp(dir=self._folder.name)
        code = None
        try:
            with contextlib.suppress(OSError, EOFError):  # its process has ended
                self._connection.send(JobInput(assignment, worker, lab, folder))
                metrics.attach(self._connection)
                code = metrics.wait_for_end()
            if code is None:
                code = self._process.wait()
            self.failed = code != 0 or self.has_ended
            return code
        finally:
            if code is None:  # a signal has ended the worker
                child_processes.stop(self._process, _STOP_SECONDS)
                metrics.detach()
            shutil.rmtree(folder, ignore_errors=True)

    def how_it_ended(self) -> str:
        """In words that follow "the process"."""
        code = self._process.wait()
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        child_processes.stop(self._process, _STOP_SECONDS)
        self._folder.cleanup()
