"""A run of each bundled experiment, with figures for all its arms as a machine would measure them."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from clientlab.experiments.file import bundled, read_experiment
from clientlab.judging.judgement import with_judgement
from clientlab.results.document import Run
from clientlab.results.plan import Plan
from clientlab.results.trial import Trial
from clients.documents import a_run
from clients.report_runs import a_measured_trial


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
    ordered = [trial.model_copy(update={"order": order}) for order, trial in enumerate((*trials, killed))]
    return with_judgement(a_run().model_copy(update={"experiment": plan, "trials": ordered}))


def _round(plan: Plan, number: int) -> Iterator[Trial]:
    for place, arm in enumerate(plan.arms):
        known = {
            "arm": arm.name, "upstream": arm.upstream, "route": arm.route, "workload": arm.workload, "link": arm.link,
            "environment": arm.environment, "concurrency": 1 + place % 8, "busy": {"client": 0.9, "upstream": 0.2},
        }  # fmt: skip
        if place % 7 == 6:
            known |= {"errors": {"reset": 3}, "error_examples": {"reset": "Connection reset by peer"}}
        kept = 400 if "aiohttp" in arm.upstream else 0
        yield a_measured_trial(arm.strategy, number, 1.0 + place / 10, kept_alive=kept, **known)
