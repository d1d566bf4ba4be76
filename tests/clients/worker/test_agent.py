"""The process of a worker that waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from clientlab.worker import job_process
from clientlab.worker.assignment import Assignment
from clientlab.worker.channel import JobMetrics
from clientlab.worker.job_process import KeptJobs
from clientlab.worker.lab_client import LabClient
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial
from clients.worker.test_job import refusing
from running import eventually


def test_an_idle_worker_does_not_load_what_only_a_trial_needs():
    """Sixty of them wait beside one trial: numpy alone would be 600 MB."""
    code = "import sys, clientlab.worker.agent; print({'numpy', 'pydantic', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_job_that_is_stopped_is_ended_and_one_that_works_is_not(monkeypatch):
    """The agent waits for the job's end, which would never come."""
    monkeypatch.setattr(job_process, "_LOOK_SECONDS", 0.02)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as job:
        watch = job_process.JobWatch(job)
        watch.over.wait(0.1)
        assert job.poll() is None
        job.send_signal(signal.SIGSTOP)
        assert job.wait(20) == -signal.SIGKILL
        watch.over.set()
        assert watch.was_stopped


@pytest.fixture
def job_of_a_file():
    """An assignment that a job answers at once, since it runs no strategy of a file, and the lab that takes it."""
    planned = a_planned_trial("evil.py:X")
    given = Assignment(run="r", experiment="e", trial=planned, workload=Workload(), heartbeat_seconds=1.0)
    with refusing(413) as (url, _):
        yield given.model_dump(), "a" * 16, LabClient(url, ""), JobMetrics()


def test_one_process_does_one_job_after_the_other(job_of_a_file):
    """Its imports would take longer than a short trial; when the worker ends, it ends as well."""
    processes = []
    with KeptJobs(()) as jobs:
        for _ in range(2):
            with jobs.take() as job:
                assert job.do(*job_of_a_file) == 0
                processes.append(job.pid)
    assert processes[0] == processes[1]
    assert not psutil.pid_exists(processes[0])


def test_a_process_that_was_killed_between_two_jobs_is_replaced(job_of_a_file):
    """The next job does not know of it."""
    with KeptJobs(()) as jobs:
        with jobs.take() as job:
            assert job.do(*job_of_a_file) == 0
            killed = job.pid
        os.kill(killed, signal.SIGKILL)
        over = os.WEXITED | os.WNOHANG | os.WNOWAIT  # its other threads end after the first one
        eventually(lambda: os.waitid(os.P_PID, killed, over) is not None, "the job did not end")
        with jobs.take() as job:
            assert job.do(*job_of_a_file) == 0
            assert job.pid != killed


def test_a_worker_that_waits_for_long_has_no_process_for_jobs(job_of_a_file, monkeypatch):
    """Sixty workers wait beside one trial."""
    monkeypatch.setattr(job_process, "KEPT_SECONDS", 0.05)
    with KeptJobs(()) as jobs:
        with jobs.take() as job:
            assert job.do(*job_of_a_file) == 0
        eventually(lambda: not psutil.pid_exists(job.pid), "the process is still there")
