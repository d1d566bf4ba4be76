"""Divided trials: real shards against a server that shares no code with the lab, and the merge of their reports."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.measuring.context import CONTEXT_FILE
from clientlab.running.quantiles import quantiles_of
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial
from clients.fake_testbed import FakeTestbed
from clients.measured import is_alive, trial_processes

pytestmark = pytest.mark.real


def trial_of(server, folder, workload, strategy="urllib3@threads", in_flight=6, progressed=lambda _: None, **runner):
    """A divided trial against the server."""
    planned = a_planned_trial(strategy).model_copy(update={"concurrency": in_flight})
    return TrialRunner(FakeTestbed(server), **runner)(planned, workload, folder, progressed)


def workload_of(**fields) -> Workload:
    return Workload(
        **{"requests": 50, "warmup": 0, "timeout": 5.0, "concurrency": 6, "shards": 3, "path": "/{k}"} | fields
    )


def measured_targets(server) -> list[str]:
    """The paths of requests outside of warm-ups."""
    return sorted(seen.target for seen in server.seen if not seen.target.startswith("/-"))


def test_a_divided_trial_sends_each_request_once_and_its_counts_are_those_of_the_server(tmp_path):
    """Requests, errors, connections and bytes are exact; each shard's own figures are kept, and add up."""
    with counting_server(lambda seen: ok(b"x" * 10, "404 Not Found" if seen.target == "/7" else "200 OK")) as server:
        trial = trial_of(server, tmp_path, workload_of())
    shards = trial.by_shard
    assert (trial.status, trial.requests, trial.errors, trial.bytes_received) == ("done", 50, {"status-4xx": 1}, 500)
    assert measured_targets(server) == sorted(f"/{k}" for k in range(50))
    assert [(shard.requests, shard.concurrency) for shard in shards] == [(17, 2), (17, 2), (16, 2)]
    assert trial.cpu_seconds == pytest.approx(sum(shard.cpu_seconds for shard in shards))
    assert trial.connections_opened == sum(shard.connections_opened for shard in shards)
    assert trial.latency_seconds.max == max(shard.latency_seconds.max for shard in shards)
    ends = [shard.began_seconds + shard.wall_seconds for shard in shards]
    assert min(shard.began_seconds for shard in shards) == 0
    assert trial.wall_seconds == pytest.approx(max(ends), abs=1e-5)
    assert trial.tail_seconds == pytest.approx(max(ends) - min(ends), abs=1e-5)
    assert 0.5 * 49 / trial.wall_seconds < trial.requests_per_second <= 1.01 * 49 / min(ends)
    assert (sum(row.requests for row in trial.over_time), sum(row.errors for row in trial.over_time)) == (50, 1)
    assert not list(tmp_path.iterdir())


def test_percentiles_are_those_of_all_samples(tmp_path):
    """The shards share the sample log; one file keeps the samples of all."""
    workload = workload_of(requests=200, warmup=3)
    with counting_server(lambda _: ok(b"")) as server:
        trial = trial_of(server, tmp_path, workload, "aiohttp@async-processes", keep_samples=True)
    samples = np.load(tmp_path / "samples" / "trial-0000.npz")
    assert sorted(samples["number"]) == list(range(200))
    assert trial.latency_seconds == quantiles_of(samples["seconds"])
    assert trial.upstream_use.requests == 200  # from behind the last shard's warm-up to behind the last one's end
    for place, shard in enumerate(trial.by_shard):
        assert shard.latency_seconds == quantiles_of(samples["seconds"][samples["number"] % 3 == place])
    assert trial.noise is None or trial.noise.others_cpu_seconds is not None


def test_an_open_load_is_divided_without_a_change_of_its_schedule(tmp_path):
    """Planned and achieved rate are those of the whole, and so is every count over time."""
    with counting_server(lambda _: ok(b"")) as server:
        trial = trial_of(server, tmp_path, workload_of(requests=None, rate=200, duration=0.5), "aiohttp@workers")
    assert (trial.status, trial.requests) == ("done", 100)
    assert measured_targets(server) == sorted(f"/{k}" for k in range(100))
    load = trial.open_load
    assert load.achieved_per_second <= load.planned_per_second == pytest.approx(200)
    assert sum(row.planned for row in load.over_time) == sum(row.sent for row in load.over_time) == 100
    assert load.over_time[-1].backlog == 0


def test_a_shard_whose_process_is_killed_ends_the_trial_and_names_the_shard(tmp_path):
    """The others are stopped; no process and no file is left of them."""
    killed, contexts = threading.Event(), []

    def kill(finished: int | None) -> None:
        contexts.extend(tmp_path.rglob(CONTEXT_FILE))
        if (finished or 0) > 3 and not killed.is_set():
            killed.set()
            os.kill(trial_processes()[0].pid, signal.SIGKILL)

    with counting_server(lambda _: ok(b""), hold=0.1) as server:
        trial = trial_of(server, tmp_path, workload_of(requests=5000), progressed=kill)
    assert trial.status == "failed"
    assert trial.reason.startswith("shard ")
    assert "SIGKILL" in trial.reason
    assert trial.partial
    assert 3 < trial.requests < 5000
    assert not contexts
    assert not list(tmp_path.rglob("trial.samples"))
    assert not any(map(is_alive, trial_processes()))
