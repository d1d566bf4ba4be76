"""The process that does the jobs of a worker."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import psutil
import pytest

from clientlab.worker.assignment import Assignment
from clientlab.worker.channel import JobMetrics
from clientlab.worker.job_process import KeptJobs
from clientlab.worker.lab_client import LabClient
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial


class Lab(BaseHTTPRequestHandler):
    """Takes every result."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()


@pytest.fixture
def job_of_a_file():
    """An assignment that a job answers at once, since it runs no strategy of a file, and the lab that takes it."""
    planned = a_planned_trial("evil.py:X")
    given = Assignment(run="r", experiment="e", trial=planned, workload=Workload(), heartbeat_seconds=1.0)
    with HTTPServer(("127.0.0.1", 0), Lab) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield given.model_dump(), "a" * 16, LabClient(f"http://127.0.0.1:{server.server_port}", ""), JobMetrics()
        server.shutdown()
        thread.join()


@pytest.mark.real
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
