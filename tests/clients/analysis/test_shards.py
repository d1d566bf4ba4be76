"""Divided trials: real shards against a server that shares no code with the lab, and
the merge of their reports.
"""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from clientlab.analysis.finish import Begun
from clientlab.analysis.request_figures import compute_quantiles
from clientlab.analysis.shards import (
    AgreedStart,
    ShardReport,
    make_shard_report,
    merge_shards,
)
from clientlab.conformance.server import counting_server, ok
from clientlab.observing.measurement import Measurement
from clientlab.results.server_counters import ServerCounters
from clientlab.results.trial import ClockOffset, Outcome, utc_now
from clientlab.running.trial_runner import TrialRunner
from clientlab.trial.context import CONTEXT_FILE
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload, make_workload, take_share
from clients.documents import a_planned_trial
from clients.fake_testbed import FakeTestbed
from clients.measured import is_alive, trial_processes
from clients.sampled import records_of, samples_of


def trial_of(
    server,
    folder,
    workload,
    strategy="urllib3@threads",
    progressed=lambda _: None,
    **runner,
):
    planned = a_planned_trial(strategy).updated(concurrency=6)
    run = TrialRunner(FakeTestbed(server), **runner)
    return run(planned, workload, folder, progressed)


def workload_of(**fields) -> Workload:
    usual = {
        "requests": 50,
        "warmup": 0,
        "timeout": 5.0,
        "concurrency": 6,
        "shards": 3,
        "path": "/{k}",
    }
    return make_workload(**usual | fields)


def answer(seen):
    """Every request but one is found."""
    status = "404 Not Found" if seen.target == "/7" else "200 OK"
    return ok(b"x" * 10, status)


@pytest.mark.real
def test_a_divided_trial_sends_each_request_once_and_its_counts_are_those_of_the_server(
    tmp_path,
):
    """Requests, errors, connections, bytes and quantiles are exact; each shard's own
    figures are kept, and add up.
    """
    with counting_server(answer) as server:
        trial = trial_of(server, tmp_path, workload_of(warmup=3), keep_samples=True)
    shards = trial.shards
    assert trial.status == "done"
    assert trial.figures.requests == 50
    assert trial.figures.bytes_received == 500
    assert trial.figures.errors == {"status-4xx": 1}
    sent = {seen.target for seen in server.seen[-50:]}
    assert sent == {f"/{k}" for k in range(50)}
    assert [shard.figures.requests for shard in shards] == [17, 17, 16]
    assert {shard.concurrency for shard in shards} == {2}
    cpu = sum(shard.measured.cpu_seconds for shard in shards)
    assert trial.measured.cpu_seconds == pytest.approx(cpu)
    opened = sum(shard.measured.connections_opened for shard in shards)
    assert trial.measured.connections_opened == opened
    longest = max(shard.figures.latency_seconds.max for shard in shards)
    assert trial.figures.latency_seconds.max == longest
    began = min(shard.measured.began for shard in shards)
    assert trial.measured.began == began
    ends = [
        shard.measured.began - began + shard.measured.wall_seconds for shard in shards
    ]
    wall = trial.wall_seconds
    assert wall == pytest.approx(max(ends), abs=1e-5)
    assert trial.figures.tail_seconds == pytest.approx(max(ends) - min(ends), abs=1e-5)
    rate = trial.figures.requests_per_second
    assert 0.5 * 49 / wall < rate <= 1.01 * 49 / min(ends)
    assert sum(row.requests for row in trial.figures.over_time) == 50
    assert sum(row.errors for row in trial.figures.over_time) == 1
    # From behind the last warm-up to behind the last shard's end.
    assert trial.servers.upstream.requests == 50
    noise = trial.measured.disturbance
    assert noise is None or noise.others_cpu_seconds is not None
    assert [path.name for path in tmp_path.iterdir()] == ["samples"]
    samples = np.load(tmp_path / "samples" / "trial-0000.npz")
    assert sorted(samples["number"]) == list(range(50))

    def quantiles_of(wanted):
        seconds = samples["seconds"][wanted]
        good = samples["status"][wanted] == 200
        return compute_quantiles(seconds[good], seconds[~good])

    assert trial.figures.latency_seconds == quantiles_of(slice(None))
    for place, shard in enumerate(shards):
        own = samples["number"] % 3 == place
        assert shard.figures.latency_seconds == quantiles_of(own)


@pytest.mark.real
def test_an_open_load_is_divided_without_a_change_of_its_schedule(tmp_path):
    workload = workload_of(requests=None, rate=200, duration=0.5)
    with counting_server(lambda _: ok(b"")) as server:
        trial = trial_of(server, tmp_path, workload, "aiohttp@workers")
    assert trial.status == "done"
    assert trial.figures.requests == 100
    measured = [seen.target for seen in server.seen if not seen.target.startswith("/-")]
    assert sorted(measured) == sorted(f"/{k}" for k in range(100))
    load = trial.figures.open_load
    assert load.achieved_per_second <= load.planned_per_second == pytest.approx(200)
    assert sum(row.planned for row in load.over_time) == 100


@pytest.mark.real
def test_a_shard_whose_process_is_killed_ends_the_trial_and_names_the_shard(tmp_path):
    killed = threading.Event()
    contexts = []

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
    assert 3 < trial.figures.requests < 5000
    assert not contexts
    assert not list(tmp_path.rglob("trial.samples"))
    assert not any(map(is_alive, trial_processes()))


PLANNED = a_planned_trial("urllib3@threads").updated(concurrency=5)


def a_report(
    index: int,
    seconds: np.ndarray,
    *,
    shards: int = 2,
    began: float = 0.0,
    errors=0,
    **of_samples,
) -> ShardReport:
    """The report of a shard whose clock is 50 s ahead of the lab's, and whose requests
    followed each other.

    `began`: seconds after the agreed start, which is at 1.7e9 by the lab's clock.
    """
    offset = ClockOffset(seconds=-50.0, error_seconds=0.0)
    start = AgreedStart(f"host-{index}", shards, lambda: (1.7e9, offset))
    start.meet()
    first = start.wait_almost() + began
    starts = first + np.cumsum(seconds) - seconds
    records = records_of(starts, seconds, errors)
    records["bytes"] = 21
    outcome = Outcome(
        began=first,
        wall_seconds=max(1e-3, float(seconds.sum())),
        cpu_seconds=0.5,
        peak_rss_bytes=40 << 20,
        connections_begun=1,
        connections_opened=1,
        connections_in_all=1,
        processes=1,
    )
    workload = make_workload(requests=1, shards=shards)
    share = take_share(workload, index, PLANNED.concurrency)
    measurement = Measurement(outcome, samples_of(records, **of_samples))
    none = ServerCounters()
    return make_shard_report(share, measurement, none, none, start)


def merged(reports, **workload):
    """The trial of two shards."""
    workload = make_workload(shards=2, concurrency=2, **workload)
    return merge_shards(Begun(PLANNED, workload, utc_now(), 30.0), reports)


def test_the_samples_of_all_shards_are_pooled():
    """Quantiles are exact, and an error keeps its kind, although each shard has its own
    code for it.
    """
    draw = np.random.default_rng(9).lognormal(-6, 1.2, (2, 500))
    first = a_report(0, draw[0], errors=[0] * 499 + [64], kinds={64: "other:Odd"})
    second = a_report(
        1,
        draw[1],
        began=0.5,
        errors=[0] * 498 + [64, 65],
        kinds={64: "other:New", 65: "other:Odd"},
    )
    trial = merged([second, first], requests=1000)
    assert trial.status == "done"
    assert trial.figures.requests == 1000
    assert trial.figures.bytes_received == 21_000
    assert trial.figures.errors == {"other:Odd": 2, "other:New": 1}
    answered = np.concatenate([draw[0][:-1], draw[1][:-2]])
    failed = np.concatenate([draw[0][-1:], draw[1][-2:]])
    assert trial.figures.latency_seconds == compute_quantiles(answered, failed)
    assert [shard.host for shard in trial.shards] == ["host-0", "host-1"]
    assert [shard.figures.requests for shard in trial.shards] == [500, 500]
    assert [shard.concurrency for shard in trial.shards] == [3, 2]
    assert trial.start_spread == pytest.approx(0.5, abs=1e-5)


def test_shards_know_what_part_of_a_delay_their_first_requests_asked_for():
    """Of 20 ms, the first request of a slot asks for a half in one shard, and for all
    in the other.
    """
    halves = np.array([0.5, 1.0, 1.0])
    whole = np.array([1.0, 1.0, 1.0])
    reports = [
        a_report(index, 0.0201 * shares, delay_shares=shares)
        for index, shares in enumerate((halves, whole))
    ]
    trial = merged(reports, duration=1.0, delay=Delay.parse("20ms"))
    assert trial.status == "done"
    assert trial.reason is None
    assert trial.figures.delay_seconds == pytest.approx(0.11 / 6)


def test_shards_that_end_apart_have_the_rate_of_the_time_in_which_all_sent():
    """5,000 requests in 5 s and 5,000 in 20 s were 1,250/s together, and not 500/s."""
    short = a_report(0, np.full(5000, 1e-3))
    long = a_report(1, np.full(5000, 4e-3))
    trial = merged([short, long], requests=10_000)
    assert trial.status == "done", trial.reason
    assert trial.figures.requests_per_second == pytest.approx(1250, rel=0.02)
    assert trial.wall_seconds == pytest.approx(20.0)
    assert trial.figures.tail_seconds == pytest.approx(15.0)


def test_a_shard_that_lacks_requests_fails_the_trial():
    four = a_report(0, np.full(4, 1e-3))
    three = a_report(1, np.full(3, 1e-3))
    trial = merged([four, three], requests=8)
    assert trial.status == "failed"
    assert trial.reason == "7 of 8 requests were finished; shard 2: 3 of 4"
