"""The rate of a closed load while it was whole: stragglers, shards that end apart, and delays as long as the trial."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.measuring.outcome import Measurement, Outcome
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.shard import ShardSlices
from clientlab.results.trial import PlannedTrial
from clientlab.running.merged_shards import merged_trial
from clientlab.running.quantiles import times_of
from clientlab.running.trial_result import Begun, finished_trial
from clientlab.running.whole_load import censored_mean, progress_of
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial, a_shard_report

C = 64
COMMON = {
    "cpu_seconds": 0.0, "processes": 1, "idle_rss_bytes": None, "peak_rss_bytes": None, "connections_begun": C,
    "connections_opened": C, "connections_in_all": C,
}  # fmt: skip


def closed_loop(draw, duration: float, in_flight: int = C) -> Samples:
    """The samples of a closed load without any overhead. `draw`: delays of so many requests, in seconds."""
    starts, lengths, now = [], [], np.zeros(in_flight)
    while (going := now < duration).any():
        took = draw(in_flight)
        starts.append(now[going])
        lengths.append(took[going])
        now = np.where(going, now + took, now)
    made = np.zeros(sum(map(len, starts)), RECORD)
    made["start"], made["seconds"], made["done"] = np.concatenate(starts), np.concatenate(lengths), 1
    return Samples(np.sort(made, order="start"), np.arange(len(made)), {}, {}, {})


def judged(found: Samples, servers: ServerCounters | None = None, outcome=None, **workload):
    """The finished trial of these samples, whose clock began at 0. `outcome`: fields of its outcome."""
    wall = float((found.records["start"] + found.records["seconds"]).max())
    ended = {"began": 0.0, "wall_seconds": wall, "extended": None if "requests" in workload else False}
    measured = Outcome(**{**COMMON, **ended, **(outcome or {})})
    planned = PlannedTrial(
        arm="a", strategy="aiohttp", upstream="aiohttp", route="direct", workload="w", round=1, order=0, concurrency=C
    )
    begun = Begun(planned, Workload(concurrency=C, **workload), "2024-05-06T07:08:09+00:00")
    return finished_trial(begun, Measurement(measured, found), servers or ServerCounters())


def used(held_seconds: float, **fields) -> ServerCounters:
    """What an upstream with little work spent."""
    return ServerCounters(upstream=ServerUse(cpu_seconds=1.0, held_seconds=held_seconds, **fields))


DRAW = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("draw", "mean", "duration"),
    [
        (lambda many: DRAW.exponential(0.06, many), 0.06, 60.0),
        (lambda many: np.full(many, 3.0), 3.0, 5.0),
    ],
    ids=["exponential", "two and a half"],
)
def test_the_rate_with_a_duration_is_that_of_the_whole_load(draw, mean, duration):
    """The rate is c divided by the mean delay, however the last responses are spread."""
    trial = judged(closed_loop(draw, duration), duration=duration)
    assert trial.requests_per_second == pytest.approx(C / mean, rel=0.02)
    assert trial.tail_seconds == pytest.approx(trial.wall_seconds - duration)


def test_a_straggler_changes_neither_rate_nor_shares_nor_the_verdict():
    """One request of 30 s keeps a trial of 10 s waiting; the client stays full."""
    found = closed_loop(lambda many: np.full(many, 0.032), 10.0)
    held = float(found.records["seconds"].sum()) * 0.9
    spent = {"outcome": {"cpu_seconds": 9.0}, "duration": 10.0}
    before = judged(found, servers=used(held), **spent)
    found.records["seconds"][-1] = 30.0
    after = judged(found, servers=used(held + 30.0), **spent)
    assert (before.wall_seconds < 11, after.wall_seconds > 30) == (True, True)
    assert after.requests_per_second == pytest.approx(before.requests_per_second, rel=0.02)
    assert after.busy == pytest.approx(before.busy, abs=0.01)
    assert after.in_flight.client == pytest.approx(C, rel=0.02)
    assert (before.verdict, after.verdict) == ("client-bound", "client-bound")


def test_time_that_workers_held_requests_after_the_duration_fills_no_worker():
    """Both workers hold 28 of their 32 requests on average, and go on so for twice the duration with the last ones."""
    found = closed_loop(lambda many: np.full(many, 0.1), 10.0)
    found.records["seconds"][-C:] = 10.0
    held = float(found.records["seconds"].sum()) * 28 / 32
    servers = used(held, slots=60, processes=2, worker_held_seconds=[held / 2, held / 2])
    trial = judged(found, servers=servers, duration=10.0)
    assert trial.tail_seconds == pytest.approx(trial.wall_seconds - 10.0)
    assert trial.busy["upstream_threads"] == pytest.approx(28 / 30, rel=0.02)


def test_the_start_of_a_pool_is_a_share_of_the_time_in_which_the_load_was_whole():
    """The last of 64 processes began after 4 of 5 s, and their last responses took 7 s more."""
    found = closed_loop(lambda many: np.full(many, 2.4), 5.0)
    found.records["seconds"][-C:] = 7.5
    trial = judged(found, outcome={"processes": C, "startup_seconds": 4.0}, duration=5.0)
    assert trial.busy["startup"] == pytest.approx(0.8)


def test_a_number_of_requests_keeps_its_wall_time():
    """Without shards, the rate is over the wall time, and there is no tail."""
    found = closed_loop(lambda many: DRAW.exponential(0.06, many), 1.0)
    trial = judged(found, requests=len(found.records))
    assert trial.tail_seconds is None
    assert trial.requests_per_second == pytest.approx(len(found.records) / trial.wall_seconds)


def test_a_trial_in_which_nothing_ends_before_the_deadline_has_the_rate_of_its_wall_time():
    """Requests of 8 s in a trial of 5 s: nobody knows another rate."""
    trial = judged(closed_loop(lambda many: np.full(many, 8.0), 5.0), duration=5.0)
    assert (trial.tail_seconds, trial.requests_per_second) == (None, C / 8.0)


def shard_reports(walls: dict[float, int]):
    """Reports of shards with one request in flight each, which did so many requests in so many seconds."""
    reports = []
    for index, (wall, requests) in enumerate(walls.items()):
        planned = a_planned_trial("aiohttp").model_copy(update={"concurrency": len(walls)})
        report = a_shard_report(planned, index, len(walls), requests)
        seconds = np.full(requests, wall / requests)
        counts = report.counts.model_copy(update={"in_flight_seconds": wall})
        slices = int(wall / 0.5)
        each = tuple(requests / slices for _ in range(slices))
        reports.append(
            report.model_copy(
                update={
                    "outcome": report.outcome.__class__(**{**vars(report.outcome), "wall_seconds": wall}),
                    "counts": counts,
                    "latency": times_of(seconds, seconds[:0]),
                    "slices": ShardSlices(exponent=-1, ended=tuple(map(int, each)), failed=(0,) * slices, done=each),
                }
            )
        )
    begun = Begun(planned, Workload(requests=10_000, shards=len(walls), concurrency=len(walls)), reports[0].started)
    return begun, reports


def test_shards_that_end_apart_have_the_rate_of_the_time_in_which_all_sent():
    """5,000 requests in 5 s and 5,000 in 20 s were 1,250/s together, and not 500/s."""
    trial = merged_trial(*shard_reports({5.0: 5000, 20.0: 5000}))
    assert trial.status == "done", trial.reason
    assert trial.requests_per_second == pytest.approx(1250, rel=0.02)
    assert (trial.wall_seconds, trial.tail_seconds) == (20.0, pytest.approx(15.0))


@pytest.mark.parametrize(
    ("seconds", "ended", "mean"),
    [([1, 1, 3], [True, False, True], 7 / 3), ([4, 2], [False, True], 3.0)],
)
def test_the_mean_takes_account_of_requests_that_had_not_ended(seconds, ended, mean):
    """The values are worked out by hand from the survival curve."""
    assert censored_mean(np.array(seconds, float), np.array(ended)) == pytest.approx(mean)


def test_a_request_in_flight_is_done_by_the_part_of_its_time():
    """Half of a request of 2 s is done after 1 s."""
    assert progress_of(np.array([0.0, 1.0]), np.array([2.0, 2.0]), [0.0, 1.0, 1.5, 3.0]).tolist() == [0, 0.5, 1.25, 2]
