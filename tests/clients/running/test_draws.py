"""What chance decides in a run: equal for all arms of a round, anew in each round, and repeatable by the run's seed."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from itertools import pairwise

import pytest
from benchmarks.simulated_runs import LOADS, simulate_trials

from clientlab.analysis.ratios import CONFIDENCE
from clientlab.analysis.typical import typical, typical_interval
from clientlab.conformance.server import counting_server, ok
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.results.document import Run
from clientlab.results.store import Store
from clientlab.results.target import Target
from clientlab.running.due import due_trials, planned_trial
from clientlab.running.execute import execute, new_run, resumed
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.delays import Delay
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload, delay_of
from clients.documents import SURROUNDINGS, a_trial
from clients.fake_testbed import FakeTestbed
from clients.running.test_execute import Recorder

NAME = "20240506-070809-mine-abcd"
RANDOM = {"delay": Delay.parse("exponential:10ms"), "requests": 30}


def a_new_run(*strategies: str, rounds: int = 3, seed: int | None = None, own_seed: int = 1, **workload) -> Run:
    """A run that has not begun. `own_seed`: of its workload."""
    table = WorkloadTable(first=Workload(**RANDOM | {"seed": own_seed, "timeout": 5.0} | workload))
    named = {"name": "mine", "question": "?", "strategies": list(strategies or ["urllib3", "pycurl"])}
    experiment = Experiment(**named, rounds=rounds, seed=seed, workloads={"w": table})
    return new_run(NAME, make_plan(experiment), Target(testbed="local"), SURROUNDINGS)


def workloads_of(run: Run) -> dict[tuple[int, str], Workload]:
    """(round, arm) → the workload that its trial does."""
    return {(due.round, due.arm): planned_trial(run, due, 0)[1] for due in due_trials(run).trials}


def drawn(run: Run) -> dict[int, list[list[float]]]:
    """Round → for each arm, the delays of its first requests."""
    found: dict[int, list[list[float]]] = {}
    for (number, _), workload in workloads_of(run).items():
        found.setdefault(number, []).append(list(map(delay_of(workload), range(5))))
    return found


def test_arms_of_a_round_have_the_same_delays_and_rounds_have_others():
    """Ratios are paired by round, and their interval covers the draw."""
    found = drawn(a_new_run(rounds=4))
    assert len(found) == 4
    assert all(one == other for delays in found.values() for one, other in pairwise(delays))
    assert len({tuple(delays[0]) for delays in found.values()}) == 4


def test_recorded_requests_are_drawn_in_each_round(tmp_path):
    """By weight, in an order of its own for each round."""
    path = tmp_path / "recorded.jsonl"
    path.write_text('{"path": "/a", "weight": 1}\n{"path": "/b", "weight": 1}\n')
    workloads = workloads_of(a_new_run("urllib3", replay=str(path), delay=None)).values()
    assert len({tuple(requests_of(one, "http://h")(k).url for k in range(60)) for one in workloads}) == 3


def test_a_run_repeats_the_draws_of_another_by_its_seed_alone():
    """Order, delays and all else. A run without a given seed has a new one, which its file states."""
    one, other = a_new_run(), a_new_run()
    assert one.experiment.seed != other.experiment.seed
    again = a_new_run(seed=one.experiment.seed)
    assert list(workloads_of(again).items()) == list(workloads_of(one).items())
    assert drawn(other) != drawn(one)


def test_a_run_that_was_read_again_goes_on_with_its_own_draws(tmp_path):
    """What is left of it is planned as it was before it stopped."""
    store, run = Store(tmp_path), a_new_run(rounds=3)
    store.claim(NAME)
    before = workloads_of(run)
    first = due_trials(run).trials[0]
    stopped = run.with_trial(a_trial(first.arm, first.round, workload="w", order=0))
    store.save(stopped.model_copy(update={"status": "incomplete"}))
    after = workloads_of(resumed(store.read(NAME), SURROUNDINGS))
    assert list(after.items()) == list(before.items())[1:]


@pytest.mark.real
def test_overhead_leaves_out_the_delay_that_the_server_was_asked_for_in_this_round(tmp_path):
    """Lab and upstream agree on the delay of request k of each round, to the microsecond."""
    asked: list[float] = []

    def answer(seen):
        delay = float(seen.target.partition("delay=")[2])
        asked.append(delay)
        time.sleep(delay)
        return ok(b"")

    store = Store(tmp_path)
    store.claim(NAME)
    run = a_new_run("urllib3", rounds=2, requests=12, warmup=0, delay=Delay.parse("uniform:1ms,20ms"))
    with counting_server(answer) as server:
        done = execute(run, TrialRunner(FakeTestbed(server)), store, Recorder())
    rounds = asked[:12], asked[12:]
    assert sorted(rounds[0]) != sorted(rounds[1])
    for trial, delays in zip(done.trials, rounds, strict=True):
        known = trial.latency_seconds.mean - trial.overhead_seconds.mean
        assert known == pytest.approx(statistics.fmean(delays), abs=1e-6)


def test_intervals_hold_the_typical_p99_of_fresh_draws():
    """Runs that repeat one draw in all rounds do not: theirs are far too narrow. `scripts/bench truth` draws more."""
    workload, rounds, runs = replace(LOADS["closed"], requests=100), range(1, 6), range(60)
    truth = typical(simulate_trials(workload, [(2**40, number) for number in range(300)], [1])[0])
    fresh = simulate_trials(workload, [(run, number) for run in runs for number in rounds], [2])[0].reshape(60, 5)
    copies = simulate_trials(workload, [(run, 1) for run in runs for _ in rounds], [2])[0].reshape(60, 5)
    shares = []
    for logs in (fresh, copies):
        low, high = typical_interval(logs, CONFIDENCE)
        shares.append(((low <= truth) & (high >= truth)).mean())
    assert shares[0] >= 0.9
    assert shares[1] < 0.2
