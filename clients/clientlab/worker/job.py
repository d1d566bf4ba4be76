"""One job of a worker: a trial measured as `clientlab run` does, its metrics for the agent, its result for the lab.

The agent starts it as ``python -m clientlab.worker.job DESCRIPTOR``; the descriptor is its end of a `channel`.
"""

from __future__ import annotations

import http
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from clientlab.errors import LabError
from clientlab.results.trial import Trial, utc_now
from clientlab.running.execute import TrialLost
from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.compose import ComposeTestbed, check_link
from clientlab.worker.assignment import Assignment
from clientlab.worker.channel import JobInput, MetricsSender
from clientlab.worker.exporter import Exporter
from clientlab.worker.lab_client import LOST_ERRORS, LabClient, Refused, WrongToken
from clientlab.worker.log import log


class Abandoned(Exception):
    """The lab does not want this trial any more, or the worker ends."""


class Heartbeats:
    """A thread that sends the lab a heartbeat of the trial at each interval, with the number of finished requests."""

    def __init__(self, lab: LabClient, worker: str, assignment: Assignment) -> None:
        self._lab = lab
        self._document = {"worker": worker, "run": assignment.run, "order": assignment.trial.order}
        self._interval = assignment.heartbeat_seconds
        self._finished = 0
        self._over = threading.Event()
        self._wanted = True
        self._thread = threading.Thread(target=self._send, name="heartbeats", daemon=True)
        self._thread.start()

    def progressed(self, finished: int) -> None:
        """Note how many requests have finished. Raises Abandoned where the lab does not want the trial any more."""
        self._finished = finished
        if not self._wanted:
            raise Abandoned("the lab does not wait for it any more")

    def stop(self) -> None:
        """Send no more."""
        self._over.set()
        self._thread.join()

    def _send(self) -> None:
        while True:
            try:
                answer = self._lab.post("/api/heartbeats", {**self._document, "finished": self._finished})
                self._wanted = answer is None or answer["wanted"]
            except LOST_ERRORS:
                pass  # the lab is away and may come back; the trial goes on, and its result is kept for it
            except (Refused, WrongToken) as error:
                log(str(error))
                self._wanted = False
            if self._over.wait(self._interval):
                return


def main(arguments: list[str]) -> int:
    """Do the job that the agent sends; the exit code."""
    signal.signal(signal.SIGTERM, _abandon)
    connection: Connection = Connection(int(arguments[1]))
    job: JobInput = connection.recv()
    assignment = Assignment.model_validate(job.assignment)
    trial = assignment.trial
    exporter = Exporter(
        assignment.run, assignment.experiment, trial, assignment.workload, Path(job.folder, f"trial-{trial.order:04d}")
    )
    metrics = MetricsSender(connection, exporter)
    try:
        code = _measure(job, assignment, exporter)
    except Abandoned as reason:
        log(f"trial {trial.order} of {assignment.run} is given up: {reason}")
        exporter.settle(None)
        code = 0
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this process ends anyway
    metrics.send()
    return code


def _measure(job: JobInput, assignment: Assignment, exporter: Exporter) -> int:
    """Measure, and send the result to the lab; the exit code. Raises Abandoned."""
    heartbeats = Heartbeats(job.lab, job.worker, assignment)
    try:
        trial = _trial(assignment, exporter, Path(job.folder), heartbeats)
    finally:
        heartbeats.stop()
    exporter.settle(trial)
    line = f"trial {trial.order} of {assignment.run}"
    try:
        answer = send_result(job.lab, job.worker, assignment, trial)
    except Refused as error:
        log(f"{line}: {error}")
    except WrongToken as error:
        log(str(error))
        return LabError.exit_code
    else:
        if answer is not None and not answer["taken"]:
            log(f"{line}: {answer['message']}")
    return 0


def send_result(lab: LabClient, worker: str, assignment: Assignment, trial: Trial) -> dict[str, Any] | None:
    """Send a trial until the lab answers; its answer.

    A result that the lab can't read is sent as a failed trial, which would otherwise be measured again. Raises Refused
    or WrongToken.
    """

    def send(trial: Trial) -> dict[str, Any] | None:
        document = {"worker": worker, "run": assignment.run, "trial": trial.model_dump(mode="json")}
        return lab.insist("/api/results", document, 10.0, lambda error: log(f"the result waits for the lab: {error}"))

    try:
        return send(trial)
    except Refused as error:
        if error.status == http.HTTPStatus.CONFLICT:
            raise
        reason = f"its result was refused: {error}"
        log(f"trial {trial.order} of {assignment.run}: {reason}")
        return send(Trial.of(assignment.trial, status="failed", reason=reason, started=trial.started))


def _trial(assignment: Assignment, exporter: Exporter, folder: Path, heartbeats: Heartbeats) -> Trial:
    """The trial with its figures; a failed one where the servers do not answer."""
    started = utc_now()
    try:
        testbed = ComposeTestbed(os.environ)
        check_link(os.environ, () if assignment.trial.link is None else (assignment.trial.link,))
        run_trial = TrialRunner(testbed, links=testbed.links(), on_start=exporter.started, on_end=exporter.ended)
        return run_trial(assignment.trial, assignment.workload, folder, heartbeats.progressed)
    except TrialLost as loss:
        return Trial.of(assignment.trial, status="lost", reason=str(loss), started=started)
    except (LabError, OSError) as error:
        return Trial.of(assignment.trial, status="failed", reason=str(error), started=started)


def _abandon(_number: int, _frame: FrameType | None) -> None:
    raise Abandoned("the worker ends")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
