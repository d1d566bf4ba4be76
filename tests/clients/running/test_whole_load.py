"""The rate of a closed load while it was whole: stragglers, shards that end apart, and delays as long as the trial."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.measuring.outcome import Measurement, Outcome
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running.trial_result import Begun, finished_trial
from clientlab.running.whole_load import censored_mean
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial

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
    planned = a_planned_trial("aiohttp").model_copy(update={"concurrency": C})
    begun = Begun(planned, Workload(concurrency=C, **workload), "2024-05-06T07:08:09+00:00")
    return finished_trial(begun, Measurement(measured, found), servers or ServerCounters())


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
    uses = (ServerUse(cpu_seconds=1.0, held_seconds=seconds) for seconds in (held, held + 30.0))
    before, after = (ServerCounters(upstream=use) for use in uses)
    before = judged(found, servers=before, **spent)
    found.records["seconds"][-1] = 30.0
    after = judged(found, servers=after, **spent)
    assert (before.wall_seconds < 11, after.wall_seconds > 30) == (True, True)
    assert after.requests_per_second == pytest.approx(before.requests_per_second, rel=0.02)
    assert after.busy == pytest.approx(before.busy, abs=0.01)
    assert after.in_flight.client == pytest.approx(C, rel=0.02)
    assert (before.verdict, after.verdict) == ("client-bound", "client-bound")


def test_the_start_of_a_pool_is_a_share_of_the_time_in_which_the_load_was_whole():
    """The last of 64 processes began after 4 of 5 s, and their last responses took 7 s more."""
    found = closed_loop(lambda many: np.full(many, 2.4), 5.0)
    found.records["seconds"][-C:] = 7.5
    trial = judged(found, outcome={"processes": C, "startup_seconds": 4.0}, duration=5.0)
    assert trial.busy["startup"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("delay", "measured"), [(0.06, {"requests": 1000}), (8.0, {"duration": 5.0})], ids=["requests", "none ended"]
)
def test_some_trials_have_the_rate_of_their_wall_time(delay, measured):
    """Those of a number of requests, and those in which nothing ended before the deadline. They have no tail."""
    found = closed_loop(lambda many: np.full(many, delay), 5.0)
    if "requests" in measured:
        measured = {"requests": len(found.records)}
    trial = judged(found, **measured)
    assert (trial.tail_seconds, trial.requests_per_second) == (None, len(found.records) / trial.wall_seconds)


@pytest.mark.parametrize(
    ("seconds", "ended", "mean"),
    [([1, 1, 3], [True, False, True], 7 / 3), ([4, 2], [False, True], 3.0)],
)
def test_the_mean_takes_account_of_requests_that_had_not_ended(seconds, ended, mean):
    """The values are worked out by hand from the survival curve."""
    assert censored_mean(np.array(seconds, float), np.array(ended)) == pytest.approx(mean)
