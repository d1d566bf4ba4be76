"""Connections opened, where attempts to connect fail: on every way that a library takes out of them."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from clientlab.conformance.server import counting_server
from clientlab.workload.workload import Workload
from clients.measured import measure, trial_processes

pytestmark = pytest.mark.real

FEW = 16
"""Descriptors left: enough for loops and runtimes, and not for `WANTED` connections."""
WANTED = 40


@pytest.mark.parametrize("strategy", ["http.client", "requests", "aiohttp", "httpx", "pycurl"])
def test_a_name_that_is_not_found_opens_no_connection(strategy):
    measured = measure(strategy, Workload(requests=2, warmup=0, timeout=20), "http://nowhere.invalid:9")
    assert measured.samples.errors == {"connect": 2}
    assert measured.outcome.connections_opened == 0


def leave_few_descriptors():
    """Lower the limit of the trial that waits for its start; a process can't raise it again."""
    (trial,) = trial_processes()
    used = {int(entry.name) for entry in Path(f"/proc/{trial.pid}/fd").iterdir()}
    limit = [number for number in range(len(used) + FEW + 1) if number not in used][FEW]
    resource.prlimit(trial.pid, resource.RLIMIT_NOFILE, (limit, limit))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux sets another process's limit")
@pytest.mark.parametrize("strategy", ["requests-session@threads", "aiohttp@workers", "urllib3@gevent"])
def test_a_process_out_of_descriptors_says_so_and_counts_what_it_opened(strategy):
    """Kind other:EMFILE, and no fault of the network; connections are those that the server accepted."""
    with counting_server(hold=0.1) as server:
        workload = Workload(requests=2 * WANTED, concurrency=WANTED, warmup=0)
        measured = measure(strategy, workload, server.url, on_start=leave_few_descriptors)
        assert set(measured.samples.errors) == {"other:EMFILE"}
        assert measured.outcome.connections_opened == server.accepted > 0
