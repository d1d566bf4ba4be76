"""The worker's agent: polls the lab, serves the worker's metrics, and starts the process that does its assignments.

`clientlab work` replaces itself with ``python -P -m clientlab.worker.agent SETTINGS``. A worker mostly waits, and there
may be sixty of them: this process imports neither numpy nor pydantic. The process of its jobs does, and ends when there
was none for a while.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
import time
from dataclasses import dataclass
from types import FrameType
from typing import Any

from clientlab.errors import LabError
from clientlab.worker.channel import JobMetrics
from clientlab.worker.job_process import KeptJobs
from clientlab.worker.lab_client import POLL_TIMEOUT, LabClient, Refused, log
from clientlab.worker.metrics_server import MetricsServer
from clientlab.worker.token import TOKEN

_LINGER_SECONDS = 5.0
"""To wait for the last scrape of a trial."""

_DISCOVERY_SECONDS = 15.0
"""Until Prometheus scrapes a new worker: it resolves the workers' name every 2 s (dashboards/prometheus), and its
discovery and its scrape manager take up to 5 s each to pass a new address on."""


class AgentEnded(Exception):
    """SIGTERM or SIGINT."""


@dataclass(frozen=True)
class AgentSettings:
    """The options of `clientlab work`.

    `scraped`: somebody scrapes the worker, even if nobody has yet. `named`: the strategies without ``*``. A job loads
    no plug-in of another name.
    """

    lab: str
    strategies: tuple[str, ...]
    host: str
    port: int
    scraped: bool
    named: tuple[str, ...]


def main(arguments: list[str]) -> int:
    """Work until a signal ends it; the exit code."""
    given = json.loads(arguments[1])
    settings = AgentSettings(**{**given, **{name: tuple(given[name]) for name in ("strategies", "named")}})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        lab = LabClient(settings.lab, os.environ.get(TOKEN, ""))
        lab.split()
        _Agent(settings, lab).work()
    except AgentEnded:
        return 0
    except (LabError, Refused) as error:
        log(str(error))
    return LabError.exit_code


class _Agent:
    def __init__(self, settings: AgentSettings, lab: LabClient) -> None:
        self._settings = settings
        self._lab = lab
        self._name = secrets.token_hex(8)
        self._metrics = JobMetrics()
        self._server = _serve(settings, self._metrics)
        self._scrapes_before = 0  # the present job
        self._expected = settings.scraped  # a first scrape
        self._jobs = KeptJobs(settings.named)

    def work(self) -> None:
        """Poll the lab and do what it assigns. Raises AgentEnded, Refused or LabError."""
        strategies = list(self._settings.strategies)
        log(f"worker {self._name} for {', '.join(strategies)}; metrics at port {self._server.port}")
        poll = {"worker": self._name, "host": socket.gethostname(), "strategies": strategies}
        with self._jobs:
            while True:
                assignment = self._lab.insist("/api/assignments", poll, POLL_TIMEOUT)
                if assignment is not None:
                    self._do(assignment)

    def _patience(self) -> float:
        """Seconds to wait for a trial's last scrape: once for a Prometheus that has yet to learn of this worker."""
        expected, self._expected = self._expected and not self._server.scrapes, False
        return _DISCOVERY_SECONDS if expected else _LINGER_SECONDS

    def _do(self, assignment: dict[str, Any]) -> None:
        """Run a job to its end, and keep its last metrics until they are scraped."""
        scrapes, self._scrapes_before = self._scrapes_before, self._server.scrapes
        code = LabError.exit_code
        with self._jobs.take() as job:
            try:
                code = job.do(assignment, self._name, self._lab, self._metrics)
            finally:
                if code == 0 and (self._settings.scraped or self._server.scrapes > scrapes):
                    self._server.wait_for_scrape(time.monotonic(), self._patience())
                self._metrics.clear()
        if code == LabError.exit_code:
            raise LabError("the lab refused this worker's token during a job")
        if code:  # the lab learns by the next poll that the trial is lost
            log(f"the process of a job {job.how_it_ended()}; the lab assigns the trial once more")


def _serve(settings: AgentSettings, metrics: JobMetrics) -> MetricsServer:
    """The server of the metrics. Raises LabError."""
    try:
        return MetricsServer(settings.host, settings.port, metrics)
    except OSError as error:
        where = f"--host {settings.host} --port {settings.port}"
        raise LabError(f"{where}: {error.strerror or error}; name another or stop what listens there") from error


def _end(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # what follows takes a few seconds at most, and stops the job
    raise AgentEnded


if __name__ == "__main__":
    sys.exit(main(sys.argv))
