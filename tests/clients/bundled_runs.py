"""A run of each bundled experiment, with figures for all its arms as a machine would measure them."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from clientlab.experiments.file import bundled, read_experiment
from clientlab.judging.judgement import with_judgement
from clientlab.results.document import Run, list_of
from clientlab.results.plan import Arm, Plan
from clientlab.results.trial import LoadSlice, Slice, Trial
from clients.documents import a_run, a_searched_trial, an_open_trial
from clients.report_runs import a_measured_trial

MOST_ARMS = 70
"""Of an experiment with more arms, only each second, third or later one has trials."""

CAPACITY = 200.0
"""Requests per second that each arm of a search holds."""


@functools.cache
def a_bundled_run(name: str, rounds: int = 1) -> Run:
    """A judged run of a bundled experiment. An arm has a trial in each round; every seventh one has failed requests.

    The last arm has a second trial in its last round, which was killed.
    """
    plan = read_experiment(bundled()[name]).plan().model_copy(update={"rounds": rounds})
    trials = [trial for number in range(1, rounds + 1) for trial in _round(plan, number)]
    killed = trials[-1].model_copy(
        update={"status": "failed", "reason": "its process was ended by SIGKILL", "partial": True, "verdict": None}
    )
    lists: dict[str, list[Trial]] = {"trials": [], "probes": [], "overloads": []}
    for order, trial in enumerate((*trials, killed)):
        lists[list_of(trial)].append(trial.model_copy(update={"order": order}))
    return with_judgement(a_run().model_copy(update={"experiment": plan, **lists}))


def _round(plan: Plan, number: int) -> Iterator[Trial]:
    for place, arm in enumerate(plan.arms[:: 1 + len(plan.arms) // MOST_ARMS]):
        known = {
            "arm": arm.name, "upstream": arm.upstream, "route": arm.route, "workload": arm.workload, "link": arm.link,
            "environment": arm.environment, "concurrency": 1 + place % 8, "busy": {"client": 0.9, "upstream": 0.2},
        }  # fmt: skip
        if place % 7 == 6:
            known |= {"errors": {"reset": 3}, "error_examples": {"reset": "Connection reset by peer"}}
        if plan.find_max is not None:
            yield from _searched(arm, number, known, overloads=plan.find_max.overload)
        elif plan.workloads[arm.workload].rate is not None:
            yield an_open_trial(arm.strategy, number, 0.009 + place / 1000, **known)
        else:
            kept = 400 if "aiohttp" in arm.upstream else 0
            yield a_measured_trial(arm.strategy, number, 1.0 + place / 10, kept_alive=kept, **known)


def _searched(arm: Arm, number: int, known: dict, overloads: tuple[float, ...]) -> Iterator[Trial]:
    """The probes of a search that is over, a trial at equal load, and an overload of each share."""
    yield a_searched_trial(arm.strategy, number, CAPACITY, probe=True, **known)
    for _ in range(2):
        yield a_searched_trial(arm.strategy, number, CAPACITY * 1.01, served=CAPACITY / 2, probe=True, **known)
    yield a_searched_trial(arm.strategy, number, CAPACITY / 2, capacity=CAPACITY, **known)
    for share in overloads:
        yield _overloaded(a_searched_trial(arm.strategy, number, share * CAPACITY, capacity=CAPACITY, **known))


def _overloaded(trial: Trial) -> Trial:
    """The trial as an overload: calm, 5 s with more than the arm can serve, then calm until the backlog is gone."""
    load = [LoadSlice(at=at / 2, planned=50, sent=50, dropped=0, backlog=0) for at in range(50)]
    ended = [Slice(at=at / 2, requests=50, errors=0) for at in range(50)]
    place = trial.search.model_copy(update={"phase": "overload"})
    parts = trial.open_load.model_copy(update={"over_time": load})
    return trial.model_copy(update={"search": place, "open_load": parts, "over_time": ended, "wall_seconds": 25.0})
