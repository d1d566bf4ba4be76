"""The reports of shards on other machines, and the trial that they make."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.measuring.outcome import Measurement, Outcome
from clientlab.results.server_counters import ServerCounters
from clientlab.results.trial import ClockOffset, utc_now
from clientlab.running.quantiles import quantiles_of
from clientlab.running.shard_report import AgreedStart, ShardReport, merged_trial, report_of
from clientlab.running.trial_result import Begun
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.shard_workload import share_of
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial

PLANNED = a_planned_trial("urllib3@threads").model_copy(update={"concurrency": 5})


def a_report(
    index: int, seconds: np.ndarray, *, shards: int = 2, began: float = 0.0, errors=None, kinds=None
) -> ShardReport:
    """The report of a shard whose clock is 50 s ahead of the lab's, and whose requests followed each other.

    `began`: seconds after the agreed start, which is at 1.7e9 by the lab's clock.
    """
    start = AgreedStart(f"host-{index}", shards, lambda: (1.7e9, ClockOffset(seconds=-50.0, error_seconds=0.0)))
    start.meet()
    records = np.zeros(len(seconds), RECORD)
    first = start.wait_almost() + began
    records["seconds"], records["start"] = seconds, first + np.cumsum(seconds) - seconds
    records["error"], records["bytes"], records["done"] = errors or 0, 21, 1
    outcome = Outcome(
        began=first, wall_seconds=max(1e-3, float(seconds.sum())), cpu_seconds=0.5, idle_rss_bytes=None,
        peak_rss_bytes=40 << 20, connections_begun=1, connections_opened=1, connections_in_all=1, processes=1,
    )  # fmt: skip
    samples = Samples(records, np.arange(len(seconds)), {}, {}, kinds or {})
    share = share_of(Workload(requests=1, shards=shards), index, PLANNED.concurrency)
    return report_of(share, Measurement(outcome, samples), ServerCounters(), ServerCounters(), start)


def merged(reports, requests: int):
    """The trial of these reports."""
    workload = Workload(requests=requests, shards=len(reports), concurrency=len(reports))
    return merged_trial(Begun(PLANNED, workload, utc_now(), 30.0), reports)


def test_the_samples_of_all_shards_are_pooled():
    """Quantiles are exact, and an error keeps its kind, although each shard has its own code for it."""
    draw = np.random.default_rng(9).lognormal(-6, 1.2, (2, 500))
    first = a_report(0, draw[0], errors=[0] * 499 + [64], kinds={64: "other:Odd"})
    second = a_report(1, draw[1], began=0.5, errors=[0] * 498 + [64, 65], kinds={64: "other:New", 65: "other:Odd"})
    trial = merged([second, first], 1000)
    assert (trial.status, trial.requests, trial.bytes_received) == ("done", 1000, 21_000)
    assert trial.errors == {"other:Odd": 2, "other:New": 1}
    answered, failed = np.concatenate([draw[0][:-1], draw[1][:-2]]), np.concatenate([draw[0][-1:], draw[1][-2:]])
    assert trial.latency_seconds == quantiles_of(answered, failed)
    assert [(shard.host, shard.requests, shard.concurrency) for shard in trial.by_shard] == [
        ("host-0", 500, 3), ("host-1", 500, 2),
    ]  # fmt: skip
    assert [shard.began_seconds for shard in trial.by_shard] == pytest.approx([0.0, 0.5], abs=1e-5)


def test_shards_that_end_apart_have_the_rate_of_the_time_in_which_all_sent():
    """5,000 requests in 5 s and 5,000 in 20 s were 1,250/s together, and not 500/s."""
    trial = merged([a_report(0, np.full(5000, 1e-3)), a_report(1, np.full(5000, 4e-3))], 10_000)
    assert trial.status == "done", trial.reason
    assert trial.requests_per_second == pytest.approx(1250, rel=0.02)
    assert (trial.wall_seconds, trial.tail_seconds) == (pytest.approx(20.0), pytest.approx(15.0))


def test_a_shard_that_lacks_requests_fails_the_trial():
    """The report adds up; the trial as a whole lacks a request."""
    trial = merged([a_report(0, np.full(4, 1e-3)), a_report(1, np.full(3, 1e-3))], 8)
    assert (trial.status, trial.reason) == ("failed", "7 of 8 requests were finished; shard 2: 3 of 4")
