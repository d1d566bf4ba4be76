"""What chance decides in a run: equal for all arms of a round, anew in each round, and repeatable by the run's seed."""

from __future__ import annotations

import statistics
import time

import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.results.document import Run
from clientlab.running.due import due_trials, planned_trial
from clientlab.running.execute import execute, resumed
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload, delay_of
from clients.documents import SURROUNDINGS, a_trial
from clients.fake_testbed import FakeTestbed
from clients.running.runs import NAME, Recorder, planned


def a_new_run(*strategies: str, rounds: int = 3, seed: int | None = None, **workload) -> Run:
    """A run that has not begun."""
    random = {"delay": Delay.parse("exponential:10ms"), "requests": 30}
    return planned(*strategies or ("urllib3", "pycurl"), rounds=rounds, more={"seed": seed}, **random | workload)


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
    found = drawn(a_new_run(rounds=4)).values()
    assert all(one == other for one, other in found)
    assert len({tuple(delays[0]) for delays in found}) == 4


def test_a_run_repeats_the_draws_of_another_by_its_seed_alone():
    """Order, delays and all else. A run without a given seed has a new one, which its file states."""
    one, other = a_new_run(), a_new_run()
    assert one.experiment.seed != other.experiment.seed
    again = a_new_run(seed=one.experiment.seed)
    assert list(workloads_of(again).items()) == list(workloads_of(one).items())
    assert drawn(other) != drawn(one)


def test_a_run_that_was_read_again_goes_on_with_its_own_draws(store):
    """What is left of it is planned as it was before it stopped."""
    run = a_new_run(rounds=3)
    before = workloads_of(run)
    first = due_trials(run).trials[0]
    stopped = run.with_trial(a_trial(first.arm, first.round, workload="w", order=0))
    store.save(stopped.model_copy(update={"status": "incomplete"}))
    after = workloads_of(resumed(store.read(NAME), SURROUNDINGS))
    assert list(after.items()) == list(before.items())[1:]


@pytest.mark.real
def test_overhead_leaves_out_the_delay_that_the_server_was_asked_for_in_this_round(store):
    """Lab and upstream agree on the delay of request k of each round, to the microsecond."""
    asked: list[float] = []

    def answer(seen):
        delay = float(seen.target.partition("delay=")[2])
        asked.append(delay)
        time.sleep(delay)
        return ok(b"")

    run = a_new_run("urllib3", rounds=2, requests=12, warmup=0, delay=Delay.parse("uniform:1ms,20ms"))
    with counting_server(answer) as server:
        done = execute(run, TrialRunner(FakeTestbed(server)), store, Recorder())
    rounds = asked[:12], asked[12:]
    assert sorted(rounds[0]) != sorted(rounds[1])
    for trial, delays in zip(done.trials, rounds, strict=True):
        known = trial.latency_seconds.mean - trial.overhead_seconds.mean
        assert known == pytest.approx(statistics.fmean(delays), abs=1e-6)
