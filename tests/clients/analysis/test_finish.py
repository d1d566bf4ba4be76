"""Finished trials, some of them real, whose bottleneck is known.

`scripts/bench truth` has more and longer ones.
"""

from __future__ import annotations

import pytest

from clientlab.analysis.finish import Begun, complete_outcome
from clientlab.observing.samples import read_measured
from clientlab.results.server_counters import ServerCounters
from clientlab.results.trial import Outcome
from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.servers import WorkerCounts
from clientlab.trial.sample_log import SampleLog
from clientlab.workload.values import Delay
from clientlab.workload.workload import make_workload
from clients.documents import a_planned_trial, a_trial

FEW_THREADS = "flask?workers=1&threads=4"
WORKERS = WorkerCounts(flask=1, aiohttp=1, threads=32)


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """Both upstreams, one of them with four threads."""
    with LocalTestbed(
        ["aiohttp", FEW_THREADS], ["direct"], tmp_path_factory.mktemp("logs"), WORKERS
    ) as running:
        yield running


@pytest.mark.real
@pytest.mark.parametrize(
    ("upstream", "requests", "verdict"),
    [("aiohttp", 160, "latency-bound"), (FEW_THREADS, 60, "upstream-threads")],
)
def test_a_delay_or_a_queue_is_found_in_a_real_trial(
    upstream, requests, verdict, testbed, tmp_path
):
    """With 16 in flight, and with delays so long that a busy machine changes little."""
    planned = a_planned_trial("aiohttp@workers").updated(
        upstream=upstream, concurrency=16
    )
    workload = make_workload(
        requests=requests, concurrency=16, delay=Delay.parse("60ms")
    )
    trial = TrialRunner(testbed)(planned, workload, tmp_path, lambda _: None)
    assert trial.status == "done", trial.reason
    assert trial.bound == verdict, trial.verdict


def test_connections_that_nobody_could_count_are_unknown():
    kept = a_trial().measured.updated(connections_opened=0)
    unseen = kept.updated(connections_in_all=0)

    def opened(outcome: Outcome, succeeded: int) -> int | None:
        return complete_outcome(
            outcome, a_planned_trial(), ServerCounters(), succeeded
        ).connections_opened

    assert opened(kept, 4) == 0
    assert opened(unseen, 4) is None
    assert opened(unseen, 0) == 0


def test_a_trial_with_one_record_that_takes_no_time_says_why_it_ended(tmp_path):
    """A request that is not sent because it is too late takes none."""
    log = SampleLog(tmp_path, 0, 8)
    log.write_late(0, 100.0, 0.0, 0, 0, log.error_code("dropped", "not sent"))
    log.close(0)
    planned = a_planned_trial()
    begun = Begun(planned, make_workload(duration=1.0, rate=50.0), a_trial().started)
    trial = begun.end("lost", "interrupted", read_measured(tmp_path))
    assert trial.reason == "interrupted"
    assert trial.partial
    assert trial.figures.errors == {"dropped": 1}
    assert trial.figures.requests_per_second == 0
