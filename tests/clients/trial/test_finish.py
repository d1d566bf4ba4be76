"""Finished trials, some of them real, whose bottleneck is known. `scripts/bench truth` has more and longer ones."""

from __future__ import annotations

import pytest

from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.servers import WorkerCounts
from clientlab.trial.finish import complete_outcome
from clientlab.trial.result import Outcome
from clientlab.trial.server_counters import ServerCounters
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial, a_trial

FEW_THREADS = "flask?workers=1&threads=4"
WORKERS = WorkerCounts(flask=1, aiohttp=1, threads=32)


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """Both upstreams, one of them with four threads."""
    with LocalTestbed(["aiohttp", FEW_THREADS], ["direct"], tmp_path_factory.mktemp("logs"), WORKERS) as running:
        yield running


@pytest.mark.real
@pytest.mark.parametrize(
    ("upstream", "requests", "verdict"), [("aiohttp", 160, "latency-bound"), (FEW_THREADS, 60, "upstream-threads")]
)
def test_a_delay_or_a_queue_is_found_in_a_real_trial(upstream, requests, verdict, testbed, tmp_path):
    """With 16 in flight, and with delays so long that a busy machine changes little."""
    planned = a_planned_trial("aiohttp@workers").model_copy(update={"upstream": upstream, "concurrency": 16})
    workload = Workload(requests=requests, concurrency=16, delay=Delay.parse("100ms"))
    trial = TrialRunner(testbed)(planned, workload, tmp_path, lambda _: None)
    assert trial.status == "done", trial.reason
    assert trial.bound == verdict, trial.verdict


def test_connections_that_nobody_could_count_are_unknown():
    kept = a_trial().measured.model_copy(update={"connections_opened": 0})
    unseen = kept.model_copy(update={"connections_in_all": 0})

    def opened(outcome: Outcome, succeeded: int) -> int | None:
        return complete_outcome(outcome, a_planned_trial(), ServerCounters(), succeeded).connections_opened

    assert (opened(kept, 4), opened(unseen, 4), opened(unseen, 0)) == (0, None, 0)
