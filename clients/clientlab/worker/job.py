"""The jobs of a worker: each a trial, or a shard of one, its metrics for the agent, and its result for the lab.

The agent starts it as ``python -P -m clientlab.worker.job DESCRIPTOR NAME…``; the descriptor is its end of a `channel`,
and the names are the strategies that the worker's command line names: no other plug-in is loaded. It does one job after
the other: its imports take longer than a short trial. After a job that fails, it ends.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from clientlab import strategies
from clientlab.errors import LabError
from clientlab.results.shard import ShardReport
from clientlab.results.trial import ClockOffset, Trial, utc_now
from clientlab.running.execute import TrialLost
from clientlab.running.shard_report import AgreedStart, LabClock
from clientlab.running.trial_runner import TrialRunner, log_folder
from clientlab.strategies import plugins
from clientlab.testbeds.compose import ComposeTestbed, check_link
from clientlab.worker.assignment import Assignment
from clientlab.worker.channel import JobChannel, JobInput
from clientlab.worker.exporter import Exporter
from clientlab.worker.lab_client import LOST_ERRORS, POLL_TIMEOUT, Refused, WrongToken, log
from clientlab.worker.lab_clock import EstimatedClock
from clientlab.workload.shard_workload import share_of


class Abandoned(Exception):
    """The lab does not want this trial any more, or the worker ends."""


def document_of(worker: str, assignment: Assignment) -> dict[str, Any]:
    """Who has which trial."""
    return {"worker": worker, "run": assignment.run, "order": assignment.trial.order}


class Heartbeats:
    """A thread that sends the lab a heartbeat of the trial at each interval, with the number of finished requests."""

    def __init__(self, received: JobInput, assignment: Assignment) -> None:
        self._lab = received.lab
        self._document = document_of(received.worker, assignment)
        self._interval = assignment.heartbeat_seconds
        self._finished = 0
        self._over = threading.Event()
        self._wanted = True
        self._thread = threading.Thread(target=self._send, name="heartbeats", daemon=True)
        self._thread.start()

    def progressed(self, finished: int | None) -> None:
        """Note how many requests have finished. Raises Abandoned where the lab does not want the trial any more."""
        self._finished = finished or 0
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
    """Do the jobs that the agent sends; the exit code of the last one."""
    signal.signal(signal.SIGTERM, _abandon)
    channel = JobChannel(Connection(int(arguments[1])))
    plugins.admit(arguments[2:])
    code = 0
    try:
        for received in channel.inputs():
            code = _do(received, channel)
            channel.end(code)
            if code:
                break
    except Abandoned:  # between two jobs
        pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this process ends anyway
    return code


def _do(received: JobInput, channel: JobChannel) -> int:
    """Do a job; its exit code."""
    assignment = Assignment.model_validate(received.assignment)
    if (reason := refusal_of(assignment)) is not None:
        log(f"{described(assignment)} is refused: {reason}")
        refused = Trial.of(assignment.trial, status="failed", reason=reason, started=utc_now())
        return deliver(received, assignment, refused)
    job = Job(received, assignment)
    try:
        channel.begin(job.exporter)
        return job.do()
    except Abandoned as reason:
        log(f"{job} is given up: {reason}")
        job.exporter.settle(None)
        return 0


def refusal_of(assignment: Assignment) -> str | None:
    """Why this worker must not do the trial: its strategy is code that the worker's command line does not name."""
    name = assignment.trial.strategy
    if strategies.is_of_file(name):
        return f"strategy {name!r} is code of a file, which a worker never runs"
    try:
        strategies.find(name)
    except LabError as error:
        return str(error)
    return None


class Job:
    """A trial, or a shard of one, that is measured here."""

    def __init__(self, received: JobInput, assignment: Assignment) -> None:
        self._received, self._lab, self._assignment = received, received.lab, assignment
        self._folder = Path(received.folder)
        self._clock = EstimatedClock(received.lab)
        self.exporter = _exporter(assignment, self._folder)

    def __str__(self) -> str:
        return described(self._assignment)

    def do(self) -> int:
        """Measure, and send the result to the lab; the exit code. Raises Abandoned."""
        heartbeats = Heartbeats(self._received, self._assignment)
        try:
            found = self._measured(heartbeats)
        finally:
            heartbeats.stop()
        self.exporter.settle(found.outcome if isinstance(found, ShardReport) else found)
        return deliver(self._received, self._assignment, found)

    def _measured(self, heartbeats: Heartbeats) -> Trial | ShardReport:
        """The trial, or the report of the shard; a failed trial where the servers do not answer."""
        assignment, started = self._assignment, utc_now()
        try:
            testbed = ComposeTestbed(os.environ)
            check_link(os.environ, () if assignment.trial.link is None else (assignment.trial.link,))
            leave = partial(self.exporter.settle, None)
            runner = TrialRunner(testbed, links=testbed.links(), on_end=self.exporter.ended, on_leave=leave)
            if assignment.shard is None:
                runner = replace(runner, on_start=self._start)
                trial = runner(assignment.trial, assignment.workload, self._folder, heartbeats.progressed)
                return by_lab_clock(trial, self._clock.now)
            start = AgreedStart(socket.gethostname(), self._meet, self._lab_clock)
            planned, workload, shard = assignment.trial, assignment.workload, assignment.shard
            found = runner.shard(planned, workload, shard, self._folder, heartbeats.progressed, start)
        except TrialLost as loss:
            return Trial.of(assignment.trial, status="lost", reason=str(loss), started=started)
        except (LabError, OSError) as error:
            return Trial.of(assignment.trial, status="failed", reason=str(error), started=started)
        if isinstance(found, ShardReport) and found.clock is not None:
            return found.model_copy(update={"started": _shifted(found.started, found.clock)})
        return found

    def _start(self) -> None:
        """The trial is ready, and its measured part begins next."""
        self._clock.estimate()
        self.exporter.started()

    def _meet(self) -> float:
        """The start on which the lab and all shards agree, when all of them are ready. Raises Abandoned."""
        self._clock.estimate()
        document, answer = document_of(self._received.worker, self._assignment), None
        while answer is None:
            try:
                answer = self._lab.insist("/api/meetings", document, POLL_TIMEOUT)
            except (Refused, WrongToken) as error:
                raise Abandoned(str(error)) from error
        start: float = answer["start"]
        clock = self._lab_clock()
        self.exporter.started(start - (0.0 if clock.offset is None else clock.offset.seconds), start)
        return start

    def _lab_clock(self) -> LabClock:
        """The lab's clock, near the start. Raises Abandoned where the lab is away: then the start has passed."""
        if self._clock.now is None:
            self._clock.estimate()
        if self._clock.now is None:
            raise Abandoned("the lab does not answer, and its clock is unknown")
        return self._clock.now


def by_lab_clock(trial: Trial, clock: LabClock | None) -> Trial:
    """The trial with the time of its start by the lab's clock, if that is known."""
    if clock is None or clock.offset is None:
        return trial
    return trial.model_copy(update={"started": _shifted(trial.started, clock.offset), "clock": clock.offset})


def _shifted(started: str, offset: ClockOffset) -> str:
    return (datetime.fromisoformat(started) + timedelta(seconds=offset.seconds)).isoformat(timespec="milliseconds")


def described(assignment: Assignment) -> str:
    """The trial, or the shard of it, for the log."""
    of = "" if assignment.shard is None else f"shard {assignment.shard + 1} of "
    return f"{of}trial {assignment.trial.order} of {assignment.run}"


def deliver(received: JobInput, assignment: Assignment, found: Trial | ShardReport) -> int:
    """Send a trial, or the report of a shard, until the lab answers; return the exit code of the job."""
    part = "shard" if isinstance(found, ShardReport) else "trial"
    document = {"worker": received.worker, "run": assignment.run, part: found.model_dump(mode="json")}
    try:
        received.lab.insist("/api/results", document)
    except Refused as error:
        log(f"{described(assignment)}: {error}")
    except WrongToken as error:
        log(str(error))
        return LabError.exit_code
    return 0


def _exporter(assignment: Assignment, folder: Path) -> Exporter:
    """The metrics of the trial, or of the shard."""
    trial, workload = assignment.trial, assignment.workload
    if assignment.shard is not None:
        workload = share_of(workload, assignment.shard, trial.concurrency)
        trial = trial.model_copy(update={"concurrency": workload.concurrency})
    return Exporter(assignment.run, assignment.experiment, trial, workload, log_folder(folder, trial, workload))


def _abandon(_number: int, _frame: FrameType | None) -> None:
    raise Abandoned("the worker ends")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
