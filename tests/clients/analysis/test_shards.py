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
from clientlab.observing.samples import RECORD, Samples
from clientlab.results.server_counters import ServerCounters
from clientlab.results.trial import ClockOffset, Outcome, utc_now
from clientlab.running.trial_runner import TrialRunner
from clientlab.trial.context import CONTEXT_FILE
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload, make_workload, take_share
from clients.documents import a_planned_trial
from clients.fake_testbed import FakeTestbed
from clients.measured import is_alive, trial_processes


def trial_of(
    server,
    folder,
    workload,
    strategy="urllib3@threads",
    in_flight=6,
    progressed=lambda _: None,
    **runner,
):
    planned = a_planned_trial(strategy).updated(concurrency=in_flight)
    return TrialRunner(FakeTestbed(server), **runner)(
        planned, workload, folder, progressed
    )


def workload_of(**fields) -> Workload:
    return make_workload(
        **{
            "requests": 50,
            "warmup": 0,
            "timeout": 5.0,
            "concurrency": 6,
            "shards": 3,
            "path": "/{k}",
        }
        | fields
    )


def measured_targets(server) -> list[str]:
    return sorted(
        seen.target for seen in server.seen if not seen.target.startswith("/-")
    )


@pytest.mark.real
def test_a_divided_trial_sends_each_request_once_and_its_counts_are_those_of_the_server(
    tmp_path,
):
    """Requests, errors, connections, bytes and quantiles are exact; each shard's own
    figures are kept, and add up.
    """
    with counting_server(
        lambda seen: ok(b"x" * 10, "404 Not Found" if seen.target == "/7" else "200 OK")
    ) as server:
        trial = trial_of(server, tmp_path, workload_of(warmup=3), keep_samples=True)
    shards = trial.shards
    assert trial.status == "done"
    assert trial.figures.requests == 50
    assert trial.figures.bytes_received == 500
    assert trial.figures.errors == {"status-4xx": 1}
    assert sorted(seen.target for seen in server.seen[-50:]) == sorted(
        f"/{k}" for k in range(50)
    )
    assert [(shard.figures.requests, shard.concurrency) for shard in shards] == [
        (17, 2),
        (17, 2),
        (16, 2),
    ]
    assert trial.measured.cpu_seconds == pytest.approx(
        sum(shard.measured.cpu_seconds for shard in shards)
    )
    assert trial.measured.connections_opened == sum(
        shard.measured.connections_opened for shard in shards
    )
    assert trial.figures.latency_seconds.max == max(
        shard.figures.latency_seconds.max for shard in shards
    )
    ends = [
        shard.measured.began - trial.measured.began + shard.measured.wall_seconds
        for shard in shards
    ]
    assert min(shard.measured.began for shard in shards) == trial.measured.began
    assert trial.figures.wall_seconds == pytest.approx(max(ends), abs=1e-5)
    assert trial.figures.tail_seconds == pytest.approx(max(ends) - min(ends), abs=1e-5)
    assert (
        0.5 * 49 / trial.figures.wall_seconds
        < trial.figures.requests_per_second
        <= 1.01 * 49 / min(ends)
    )
    assert sum(row.requests for row in trial.figures.over_time) == 50
    assert sum(row.errors for row in trial.figures.over_time) == 1
    assert (
        trial.servers.upstream.requests == 50
    )  # from behind the last warm-up to behind the last shard's end
    noise = trial.measured.disturbance
    assert noise is None or noise.others_cpu_seconds is not None
    assert [path.name for path in tmp_path.iterdir()] == ["samples"]
    samples = np.load(tmp_path / "samples" / "trial-0000.npz")
    seconds = samples["seconds"]
    number = samples["number"]
    good = samples["status"] == 200
    assert sorted(number) == list(range(50))
    for part, of in (
        (trial, number >= 0),
        *((shard, number % 3 == place) for place, shard in enumerate(shards)),
    ):
        assert part.figures.latency_seconds == compute_quantiles(
            seconds[of & good], seconds[of & ~good]
        )


@pytest.mark.real
def test_an_open_load_is_divided_without_a_change_of_its_schedule(tmp_path):
    with counting_server(lambda _: ok(b"")) as server:
        trial = trial_of(
            server,
            tmp_path,
            workload_of(requests=None, rate=200, duration=0.5),
            "aiohttp@workers",
        )
    assert trial.status == "done"
    assert trial.figures.requests == 100
    assert measured_targets(server) == sorted(f"/{k}" for k in range(100))
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
    errors=None,
    kinds=None,
    delay_shares=None,
) -> ShardReport:
    """The report of a shard whose clock is 50 s ahead of the lab's, and whose requests
    followed each other.

    `began`: seconds after the agreed start, which is at 1.7e9 by the lab's clock.
    """
    start = AgreedStart(
        f"host-{index}",
        shards,
        lambda: (1.7e9, ClockOffset(seconds=-50.0, error_seconds=0.0)),
    )
    start.meet()
    records = np.zeros(len(seconds), RECORD)
    first = start.wait_almost() + began
    records["seconds"] = seconds
    records["start"] = first + np.cumsum(seconds) - seconds
    records["error"] = errors or 0
    records["bytes"] = 21
    records["done"] = 1
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
    samples = Samples(
        records, np.arange(len(seconds)), {}, {}, kinds or {}, delay_shares=delay_shares
    )
    share = take_share(
        make_workload(requests=1, shards=shards), index, PLANNED.concurrency
    )
    return make_shard_report(
        share, Measurement(outcome, samples), ServerCounters(), ServerCounters(), start
    )


def merged(reports, requests: int):
    workload = make_workload(
        requests=requests, shards=len(reports), concurrency=len(reports)
    )
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
    trial = merged([second, first], 1000)
    assert trial.status == "done"
    assert trial.figures.requests == 1000
    assert trial.figures.bytes_received == 21_000
    assert trial.figures.errors == {"other:Odd": 2, "other:New": 1}
    answered = np.concatenate([draw[0][:-1], draw[1][:-2]])
    failed = np.concatenate([draw[0][-1:], draw[1][-2:]])
    assert trial.figures.latency_seconds == compute_quantiles(answered, failed)
    assert [
        (shard.host, shard.figures.requests, shard.concurrency)
        for shard in trial.shards
    ] == [
        ("host-0", 500, 3),
        ("host-1", 500, 2),
    ]
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
    workload = make_workload(
        duration=1.0, delay=Delay.parse("20ms"), shards=2, concurrency=2
    )
    trial = merge_shards(Begun(PLANNED, workload, utc_now(), 30.0), reports)
    assert trial.status == "done"
    assert trial.reason is None
    assert trial.figures.delay_seconds == pytest.approx(0.11 / 6)


def test_shards_that_end_apart_have_the_rate_of_the_time_in_which_all_sent():
    """5,000 requests in 5 s and 5,000 in 20 s were 1,250/s together, and not 500/s."""
    trial = merged(
        [a_report(0, np.full(5000, 1e-3)), a_report(1, np.full(5000, 4e-3))], 10_000
    )
    assert trial.status == "done", trial.reason
    assert trial.figures.requests_per_second == pytest.approx(1250, rel=0.02)
    assert trial.figures.wall_seconds == pytest.approx(20.0)
    assert trial.figures.tail_seconds == pytest.approx(15.0)


def test_a_shard_that_lacks_requests_fails_the_trial():
    trial = merged([a_report(0, np.full(4, 1e-3)), a_report(1, np.full(3, 1e-3))], 8)
    assert trial.status == "failed"
    assert trial.reason == "7 of 8 requests were finished; shard 2: 3 of 4"
