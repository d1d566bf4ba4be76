"""The verdict on real trials whose bottleneck is known. `scripts/bench truth` has more of them, and longer ones."""

from __future__ import annotations

import pytest

from clientlab.results.trial import PlannedTrial
from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import WorkerCounts
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload

FEW_THREADS = "flask?workers=1&threads=4"
WORKERS = WorkerCounts(flask=1, aiohttp=1, threads=32)

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """Both upstreams, one of them with four threads."""
    with LocalTestbed(["aiohttp", FEW_THREADS], ["direct"], tmp_path_factory.mktemp("logs"), WORKERS) as running:
        yield running


@pytest.mark.parametrize(
    ("strategy", "upstream", "requests", "verdict"),
    [
        ("aiohttp@workers", "aiohttp", 160, "latency-bound"),
        ("aiohttp@workers", FEW_THREADS, 60, "upstream-threads"),
    ],
)
def test_a_delay_or_a_queue_is_found_in_a_real_trial(strategy, upstream, requests, verdict, testbed, tmp_path):
    """With 16 in flight, and with delays so long that a busy machine changes little."""
    planned = PlannedTrial(
        arm="arm", strategy=strategy, upstream=upstream, route="direct", workload="workload", round=1, order=0,
        concurrency=16,
    )  # fmt: skip
    workload = Workload(requests=requests, concurrency=16, delay=Delay.parse("100ms"))
    trial = TrialRunner(testbed)(planned, workload, tmp_path, lambda _: None)
    assert trial.status == "done", trial.reason
    assert trial.verdict == verdict, trial.busy
