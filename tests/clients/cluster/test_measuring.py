"""Runs on a real Dask cluster: whole and divided trials, lost workers, a lost scheduler, and what is refused."""

from __future__ import annotations

import signal

import pytest

from running import eventually

pytestmark = pytest.mark.real

SMALL = ("--rounds", "1", "-n", "100", "-c", "4", "--delay", "2ms", "--seed", "1")
SLOW = ("--rounds", "2", "-n", "40", "--delay", "40ms", "--seed", "1")


def test_trials_are_measured_on_workers_that_offer_their_strategies(cluster):
    """The worker's page shows each request, and the run file has the same figures. Other strategies are refused."""
    workers = [cluster.worker("http.client"), cluster.worker("urllib3@threads")]
    run = cluster.run("-t", "http.client", "-t", "urllib3@threads", *SMALL)
    assert run.ended() == 0, run.said
    trials = {trial.arm: trial for trial in cluster.last_run().trials}
    assert {name: (trial.status, trial.requests) for name, trial in trials.items()} == {
        "http.client": ("done", 100), "urllib3@threads": ("done", 100),
    }  # fmt: skip
    for worker, name in zip(workers, ("http.client", "urllib3@threads"), strict=True):
        trial = trials[name]
        assert cluster.metric(worker, "clientlab_requests_total") == 100
        assert cluster.metric(worker, "clientlab_request_seconds_sum") == pytest.approx(
            100 * trial.latency_seconds.mean
        )
        assert cluster.metric(worker, "clientlab_connections_opened_total") == trial.connections_opened
    refused(cluster, "no worker offers 'pycurl'; they offer http.client, urllib3@threads", "-t", "pycurl")


def test_workers_do_the_shards_of_a_trial_and_start_together(two_workers):
    cluster, workers = two_workers
    run = cluster.run("-t", "http.client@threads", *SMALL, "-n", "301", "-c", "5", "--shards", "2")
    assert run.ended() == 0, run.said
    (trial,) = cluster.last_run().trials
    assert (trial.status, trial.requests, trial.errors, trial.concurrency) == ("done", 301, {}, 5)
    assert [(shard.requests, shard.concurrency) for shard in trial.by_shard] == [(151, 3), (150, 2)]
    assert sum(cluster.metric(worker, "clientlab_requests_total") for worker in workers) == 301
    words = ("-t", "http.client@threads", "-c", "5", "--shards", "3")
    refused(cluster, "3 shards need as many workers, and 2 measure 'http.client@threads'", *words)


def test_ctrl_c_ends_the_trial_on_its_worker(two_workers):
    cluster, workers = two_workers
    run = cluster.run("-t", "http.client", *SLOW, "-n", "4000")
    eventually(lambda: any(cluster.metric(worker, "clientlab_trial_running") for worker in workers), "the trial runs")
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == 3
    assert cluster.last_run().trials[0].status == "lost"
    assert not any(cluster.metric(worker, "clientlab_trial_running") for worker in workers)


def test_a_trial_whose_worker_is_killed_is_measured_on_another_one(two_workers):
    cluster, workers = two_workers
    run = cluster.run("-t", "http.client", *SLOW)
    eventually(lambda: any(cluster.metric(worker, "clientlab_trial_running") for worker in workers), "a trial runs")
    next(worker for worker in workers if cluster.metric(worker, "clientlab_trial_running")).kill()
    assert run.ended() == 0, run.said
    found = cluster.last_run()
    assert found.status == "done"
    assert sorted((trial.round, trial.status) for trial in found.trials) == [(1, "done"), (1, "lost"), (2, "done")]


def test_without_its_scheduler_a_run_stops_and_can_be_resumed(cluster):
    worker = cluster.worker()
    run = cluster.run("-t", "http.client", *SLOW)
    eventually(lambda: cluster.store.names() and cluster.last_run().trials, "the first trial is done")
    cluster.scheduler.kill()
    assert run.ended() == 3
    assert [trial.status for trial in cluster.last_run().trials] == ["done", "lost"]
    assert worker.ended() == 0
    cluster.start_scheduler()
    refused(cluster, "no worker", "-t", "http.client")
    cluster.worker()
    again = cluster.run("--resume", "last")
    assert again.ended() == 0, again.said
    assert [trial.status for trial in cluster.last_run().trials] == ["done", "lost", "done"]


def refused(cluster, part: str, *words: str) -> None:
    """One line, exit code 2, and no new run."""
    before = cluster.store.names()
    run = cluster.run(*words)
    assert (run.ended(), run.said.count("\n")) == (2, 1), run.said
    assert part in run.said
    assert cluster.store.names() == before
