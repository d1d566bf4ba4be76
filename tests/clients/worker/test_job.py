"""What a job does with a result that the lab refuses."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from clientlab.worker.assignment import Assignment
from clientlab.worker.job import send_result
from clientlab.worker.lab_client import LabClient
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial, a_trial


@contextmanager
def refusing(first: int):
    """A lab that answers the first result with this status and takes the next: its URL, and what it was sent."""
    sent: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, answer = (first, {"error": "too much"}) if len(sent) == 1 else (200, {"taken": True, "says": ""})
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_) -> None:
            """Nothing: the test's output is enough."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()
        thread.join()


def send(url: str):
    planned = a_planned_trial()
    assignment = Assignment(run="r", experiment="small", trial=planned, workload=Workload(), heartbeat_seconds=1.0)
    return send_result(LabClient(url, ""), "a" * 16, assignment, a_trial())


@pytest.mark.real
def test_a_result_that_the_lab_can_not_take_is_sent_as_a_failed_trial():
    """With the lab's line as its reason; so it is not measured a second time."""
    with refusing(413) as (url, sent):
        assert send(url)["taken"]
    first, second = (document["trial"] for document in sent)
    assert (first["status"], second["status"], second["order"]) == ("done", "failed", first["order"])
    assert "413" in second["reason"]
