"""Runs on a real Dask cluster: whole and divided trials, lost workers, a lost
scheduler, and what is refused.
"""

from __future__ import annotations

import signal

import pytest

from clientlab.cli import run_command_line
from running import eventually
from signal_handlers import handling

pytestmark = pytest.mark.real

SMALL = ("--rounds", "1", "-n", "100", "-c", "4", "--delay", "2ms", "--seed", "1")
SLOW = (
    "-t",
    "http.client",
    "--rounds",
    "2",
    "-n",
    "40",
    "--delay",
    "40ms",
    "--seed",
    "1",
)


ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals whose handlers the command line replaces."""


@pytest.fixture
def check_refused(monkeypatch, capsys):
    """Check that a run ends with one line and exit code 2, and is not stored."""
    # Otherwise it would wait for workers that may have been started with it.
    monkeypatch.setattr("clientlab.cluster.workers._ARRIVE_SECONDS", 0.0)

    def check(cluster, part: str, *words: str) -> None:
        monkeypatch.setenv("AIOHTTP_ADDRESS", cluster.upstream)
        before = cluster.store.names()
        places = ("--cluster", cluster.address, "--out", str(cluster.store.folder))
        with handling({number: signal.getsignal(number) for number in ENDING}):
            code = run_command_line(["run", *words, *places])
        said = capsys.readouterr().err
        assert (code, said.count("\n")) == (2, 1), said
        assert part in said
        assert cluster.store.names() == before

    return check


def measuring(workers):
    """The worker that measures a trial now; None if there is none."""
    return next(
        (worker for worker in workers if worker.metric("clientlab_trial_running")), None
    )


def test_trials_are_measured_on_workers_that_offer_their_strategies(
    cluster, check_refused
):
    """The worker's page and the run file have the same figures.

    Other strategies are refused.
    """
    names = ("http.client", "urllib3@threads")
    workers = cluster.workers(*names)
    run = cluster.run("-t", names[0], "-t", names[1], *SMALL)
    assert run.ended() == 0, run.said
    trials = {trial.planned.arm: trial for trial in cluster.last_run().trials}
    for worker, name in zip(workers, names, strict=True):
        figures = trials[name].figures
        seconds = worker.metric("clientlab_request_seconds_sum")
        assert trials[name].status == "done"
        assert figures.requests == 100
        assert worker.metric("clientlab_requests_total") == 100
        assert seconds == pytest.approx(100 * figures.latency_seconds.mean)
        assert (
            worker.metric("clientlab_connections_opened_total")
            == trials[name].measured.connections_opened
        )
    check_refused(
        cluster,
        "no worker offers 'pycurl'; they offer http.client, urllib3@threads",
        "-t",
        "pycurl",
    )


def test_workers_measure_the_shards_of_a_trial_together(two_workers, check_refused):
    cluster, workers = two_workers
    run = cluster.run(
        "-t", "http.client@threads", *SMALL, "-n", "301", "-c", "5", "--shards", "2"
    )
    assert run.ended() == 0, run.said
    (trial,) = cluster.last_run().trials
    assert trial.status == "done"
    assert trial.figures.errors == {}
    assert trial.planned.concurrency == 5
    assert [(shard.figures.requests, shard.concurrency) for shard in trial.shards] == [
        (151, 3),
        (150, 2),
    ]
    assert (
        sum(worker.metric("clientlab_requests_total") for worker in workers)
        == trial.figures.requests
        == 301
    )
    words = ("-t", "http.client@threads", "-c", "5", "--shards", "3")
    check_refused(
        cluster,
        "3 shards need as many workers, and 2 measure 'http.client@threads'",
        *words,
    )


def test_ctrl_c_ends_the_trial_on_its_worker(two_workers):
    cluster, workers = two_workers
    run = cluster.run(*SLOW, "-n", "4000")
    eventually(lambda: measuring(workers), "the trial runs")
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == 3
    assert cluster.last_run().trials[0].status == "lost"
    eventually(lambda: measuring(workers) is None, "the trial has ended")


def test_a_trial_whose_worker_is_killed_is_measured_on_another_one(two_workers):
    cluster, workers = two_workers
    run = cluster.run(*SLOW)
    eventually(lambda: measuring(workers), "a trial runs")
    measuring(workers).kill()
    assert run.ended() == 0, run.said
    found = cluster.last_run()
    trials = sorted((trial.planned.round, trial.status) for trial in found.trials)
    assert found.status == "done"
    assert trials == [(1, "done"), (1, "lost"), (2, "done")]


@pytest.mark.release
def test_without_its_scheduler_a_run_stops_and_can_be_resumed(cluster, check_refused):
    (worker,) = cluster.workers("")
    run = cluster.run(*SLOW)
    eventually(
        lambda: cluster.store.names() and cluster.last_run().trials,
        "the first trial is done",
    )
    cluster.scheduler.kill()
    assert run.ended() == 3
    assert [trial.status for trial in cluster.last_run().trials] == ["done", "lost"]
    assert worker.ended() == 0
    cluster.start_scheduler()
    check_refused(cluster, "no worker", "-t", "http.client")
    cluster.workers("")
    again = cluster.run("--resume", "last")
    assert again.ended() == 0, again.said
    assert [trial.status for trial in cluster.last_run().trials] == [
        "done",
        "lost",
        "done",
    ]
