"""The experiment `free-threads`: its length, and the sentences and the table of its run."""

from __future__ import annotations

import pytest

from clientlab.experiments.file import bundled, read_plan
from clientlab.running.due import seconds_of
from clients.documents import a_run, a_trial
from docs.stored_runs import stored_runs
from findings import free_threads
from findings.free_threads import LIBRARIES, WITH, WITHOUT
from findings.page import render

PLAN = read_plan(bundled()["free-threads"])
GAINS = {"requests": 0.6, "urllib3": 0.8, "httpx2": 1.0, "pycurl": 1.3, "aiohttp": 0.7}
"""Library → the time of several threads without a GIL over that with it."""


@pytest.fixture
def run():
    """Nine rounds. One thread takes 1.07 times the CPU time without a GIL; pycurl switches it on in one of its arms."""
    trials, planned = [], {arm.name: arm for arm in PLAN.arms}
    for library in LIBRARIES:
        for arm, gain in ((library.one, 1.1), (library.many, GAINS[library.name])):
            for environment in (WITH, WITHOUT):
                free = environment == WITHOUT
                locked = not free or arm == "pycurl-8"
                one = planned[f"{arm} in {environment}"]
                trials += [
                    a_trial(
                        one.strategy, number, number * (gain if free else 1.0), arm=one.name, workload=one.workload,
                        environment=environment, cpu_seconds=number * (1.07 if free else 1.0), gil=locked,
                        gil_switched_by="pycurl" if free and locked else None,
                    )
                    for number in range(1, 10)
                ]  # fmt: skip
    return a_run().model_copy(update={"experiment": PLAN, "trials": trials})


def test_every_arm_of_the_page_is_in_the_experiment():
    """With a GIL and without; no arm of the experiment is left out."""
    arms = [arm for library in LIBRARIES for arm in (library.one, library.many)]
    assert {f"{arm} in {environment}" for arm in arms for environment in (WITH, WITHOUT)} == {
        arm.name for arm in PLAN.arms
    }
    threads = {library.many: library.threads for library in LIBRARIES}
    settings = {arm.name: arm.strategy for arm in PLAN.arms}
    assert settings[f"aiohttp-{threads['aiohttp-2']} in {WITH}"] == "aiohttp@async-threads?threads=2"


def test_a_run_takes_no_more_than_a_quarter_of_an_hour():
    """By the lab's own estimate."""
    assert seconds_of(PLAN) <= 15 * 60


def test_the_answer_groups_libraries_by_what_their_ratio_states(run):
    """Those that gain first, then those that lose, then equal ones; each has its ratio."""
    assert free_threads.threads_answer(run) == (
        "threads with requests 0.600 (0.600 to 0.600), urllib3 0.800 (0.800 to 0.800) and aiohttp 0.700 (0.700 to "
        "0.700) take less time; threads with pycurl 1.30 (1.30 to 1.30) take more time; "
        "threads with httpx2 1.00 (1.00 to 1.00) take as long within 5 %"
    )


def test_the_cost_is_of_one_thread_and_in_cpu_time(run):
    """Of each library, with its interval."""
    assert free_threads.cost_answer(run).startswith("requests 1.07 (1.07 to 1.07), urllib3 1.07")
    assert free_threads.cost_answer(run).endswith("and aiohttp 1.07 (1.07 to 1.07)")


def test_wheels_that_turn_the_gil_on_are_named_with_their_arms(run):
    """By the first module that did; with a GIL from the start, nothing is turned on."""
    assert free_threads.switched_answer(run) == "pycurl turns the GIL on again in pycurl-8 in 3.14t"
    free = [trial.model_copy(update={"gil": False, "gil_switched_by": None}) for trial in run.trials]
    without = run.model_copy(update={"trials": free})
    assert free_threads.switched_answer(without) == "No wheel of these libraries turns the GIL on again"


def test_the_table_has_a_line_for_one_thread_and_one_for_several(run):
    """The rates are medians over the rounds, the ratios are paired by round."""
    lines = free_threads.scaling_table(run).splitlines()
    assert len(lines) == 2 + 2 * len(LIBRARIES)
    one, many = (line.strip("| ").split(" | ") for line in lines[2:4])
    assert (one[:2], many[:2]) == (["requests", "1"], ["requests", "8"])
    assert one[4:] == ["1.10 (1.10 to 1.10)", "1.07 (1.07 to 1.07)"]
    assert many[4:] == ["0.600 (0.600 to 0.600)", "1.07 (1.07 to 1.07)"]


@pytest.mark.slow
def test_the_page_is_there_once_its_run_is_stored(run):
    """It opens with its answer, which stands in the list of all experiments, and has a sentence for each question."""
    pages = render(stored_runs() | {"free-threads": run})
    page = pages["findings-free-threads.md"]
    answer = f"Without a GIL on two cores, {free_threads.threads_answer(run)}"
    assert page.startswith(f"# free-threads: do threads scale without a GIL?\n\n**{answer}.**")
    assert f"{answer}." in pages["findings.md"]
    for sentence in (free_threads.cost_answer(run), free_threads.switched_answer(run), "requests supported (1.83"):
        assert sentence in page
