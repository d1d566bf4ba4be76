"""Carrying out a search for capacities: its probes, its end, the comparison behind it, and what an interrupt leaves."""

from __future__ import annotations

import json

import jsonschema
import pytest

from clientlab.errors import IncompleteRun
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.judging.capacity import capacities
from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.document import schema
from clientlab.results.store import Store
from clientlab.results.target import Target
from clientlab.results.trial import Trial
from clientlab.running.due import due_trials, seconds_of
from clientlab.running.execute import TrialInterrupted, TrialLost, execute, new_run, resumed
from clientlab.workload.workload import Workload
from clients.documents import SURROUNDINGS, a_searched_trial
from clients.running.test_execute import NAME, Recorder

CAPACITY = {"http.client": 70.0, "urllib3": 640.0}


def planned(rounds: int = 2, **search):
    """A run that has not begun."""
    experiment = Experiment(
        name="mine", question="?", strategies=list(CAPACITY), rounds=rounds, seed=1,
        find_max=CapacitySearch(conditions="p99<250ms", **search),
        workloads={"w": WorkloadTable(first=Workload(duration=5.0))},
    )  # fmt: skip
    return new_run(NAME, make_plan(experiment), Target(testbed="local"), SURROUNDINGS)


def measured(trial, workload, *_: object) -> Trial:
    """A trial that holds its rate up to its strategy's capacity."""
    assert (workload.rate, workload.duration, workload.max_late) == (trial.search.rate, 5.0, 5.0)
    rate = trial.search.rate
    done = a_searched_trial(trial.strategy, trial.round, rate, served=CAPACITY[trial.strategy])
    return Trial(**(done.model_dump() | trial.model_dump()))


@pytest.fixture
def store(tmp_path):
    """A results folder in which the run has its place."""
    made = Store(tmp_path)
    made.claim(NAME)
    return made


def test_a_search_finds_each_capacity_and_then_compares_all_at_half_of_the_smallest(store):
    """In rounds of shuffled order, each probe saved; the run file fits the schema."""
    recorder = Recorder()
    run = execute(planned(), measured, store, recorder)
    assert run.status == "done"
    assert store.read(NAME) == run
    jsonschema.validate(json.loads(run.model_dump_json()), schema())
    (arms,) = capacities(run).values()
    for arm in arms:
        assert [0.965 < rate / CAPACITY[arm.name] < 1.05 for rate in arm.by_round.values()] == [True, True]
    assert [trial.order for trial in (*run.probes, *run.trials)] == list(range(run.measured))
    assert [probe.round for probe in run.probes] == sorted(probe.round for probe in run.probes)
    half = run.trials[0].search.rate
    assert half == pytest.approx(35, rel=0.04)
    places = {(trial.search.rate, trial.search.phase, trial.round) for trial in run.trials}
    assert places == {(half, "comparison", 1), (half, "comparison", 2)}
    held = {arm.name: arm.by_round for arm in arms}
    assert all(trial.search.capacity_per_second == held[trial.arm][trial.round] for trial in run.trials)
    assert recorder.events[-2][2] == run.measured  # by then, how many trials there are is known exactly


def test_a_search_that_is_interrupted_goes_on_where_it_was(store):
    """Its probes are saved: the run that goes on has the same rates as one that was not interrupted."""
    whole = execute(planned(), measured, store, Recorder())

    def interrupted(trial, *rest):
        done = measured(trial, *rest)
        if trial.order == 7:
            raise TrialInterrupted(done.model_copy(update={"status": "lost", "reason": "interrupted"}))
        return done

    with pytest.raises(IncompleteRun, match=r"interrupted in trial 8 of \d+; what was done is in"):
        execute(planned(), interrupted, store, Recorder())
    stopped = store.read(NAME)
    assert (stopped.status, len(stopped.probes), stopped.probes[7].status) == ("incomplete", 8, "lost")
    again = execute(resumed(stopped, SURROUNDINGS), measured, store, Recorder())
    assert again.status == "done"
    rates = [(one.arm, one.round, one.search.rate) for one in again.probes if one.status == "done"]
    assert rates == [(one.arm, one.round, one.search.rate) for one in whole.probes]
    assert [trial.search for trial in again.trials] == [trial.search for trial in whole.trials]


def test_a_probe_that_is_lost_twice_ends_its_search_and_the_run_is_incomplete(store):
    """The other searches go on. Arms are compared when the run was resumed and all capacities are known."""

    def lost(trial, *rest):
        if (trial.strategy, trial.round) == ("urllib3", 1):
            raise TrialLost("box 1 is gone")
        return measured(trial, *rest)

    run = execute(planned(), lost, store, Recorder())
    assert (run.status, run.trials) == ("incomplete", [])
    assert [probe.status for probe in run.probes].count("lost") == 2
    (arms,) = capacities(run).values()
    assert {arm.name: list(arm.by_round) for arm in arms} == {"urllib3": [2], "http.client": [1, 2]}
    due = due_trials(resumed(run, SURROUNDINGS))
    (first,) = {probe.search.rate for probe in run.probes if (probe.arm, probe.round) == ("urllib3", 1)}
    assert [(one.arm, one.round, one.search.rate) for one in due.trials] == [("urllib3", 1, first)]
    again = execute(resumed(run, SURROUNDINGS), measured, store, Recorder())
    assert (again.status, len(again.trials)) == ("done", 4)


def test_an_arm_that_holds_no_rate_is_left_out_of_the_comparison(store, monkeypatch):
    """There is nothing to compare it at; a caution names it."""
    monkeypatch.setitem(CAPACITY, "http.client", 1.0)
    run = execute(planned(rounds=1), measured, store, Recorder())
    assert [trial.arm for trial in run.trials] == ["urllib3"]
    assert "no-capacity" in {caution.kind for caution in run.cautions}


def test_the_time_of_a_search_is_estimated():
    """Some sixteen probes of an arm in a round, each as long as a trial."""
    assert seconds_of(planned(rounds=1).experiment) == pytest.approx(2 * 16 * 5.7, rel=0.1)
