"""The process of a worker that waits."""

from __future__ import annotations

import signal
import subprocess
import sys

from clientlab.worker import agent


def test_an_idle_worker_does_not_load_what_only_a_trial_needs():
    """Sixty of them wait beside one trial: numpy alone would be 600 MB."""
    code = "import sys, clientlab.worker.agent; print({'numpy', 'pydantic', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_job_that_is_stopped_is_ended_and_one_that_works_is_not(monkeypatch):
    """The agent waits for the job's end, which would never come."""
    monkeypatch.setattr(agent, "_LOOK_SECONDS", 0.02)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as job:
        watch = agent.JobWatch(job)
        watch.over.wait(0.1)
        assert job.poll() is None
        job.send_signal(signal.SIGSTOP)
        assert job.wait(20) == -signal.SIGKILL
        watch.over.set()
        assert watch.how_it_ended() == "was stopped, as by SIGSTOP, and was ended"
