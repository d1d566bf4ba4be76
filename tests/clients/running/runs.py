"""Runs that have not begun, and an observer."""

from __future__ import annotations

from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.results.document import Run
from clientlab.results.plan import Target
from clientlab.running.execute import create_run
from clientlab.workload.workload import make_workload
from clients.documents import SURROUNDINGS

NAME = "20240506-070809-mine-abcd"


def planned(*strategies: str, rounds: int = 1, more=None, **workload) -> Run:
    """A run with 12 requests per trial unless given.

    `more`: other keys of its experiment.
    """
    workload = {
        "requests": None if "duration" in workload else 12,
        "warmup": 2,
        "timeout": 5.0,
    } | workload
    experiment = Experiment(
        name="mine",
        question="?",
        strategies=list(strategies),
        rounds=rounds,
        workloads={"w": WorkloadTable(first=make_workload(**workload))},
        **{"seed": 1} | (more or {}),
    )
    return create_run(
        NAME, make_plan(experiment), Target(testbed="local"), SURROUNDINGS
    )


class Recorder:
    """An observer that keeps all events.

    Its functions are called with each trial, and with its progress.
    """

    def __init__(
        self, at_start=lambda _: None, at_end=lambda _: None, progressed=lambda _: None
    ) -> None:
        self.events = []
        self.at_start = at_start
        self.at_end = at_end
        self.progressed = progressed

    def run_started(self, run, folder) -> None:
        self.events.append(("run", run.run, folder.name))

    def trials_started(self, trials, planned) -> None:
        for trial in trials:
            self.events.append(("start", trial.strategy, planned))
            self.at_start(trial)

    def trial_ended(self, trial) -> None:
        self.events.append(("end", trial.planned.strategy, trial.status))
        self.at_end(trial)

    def round_judged(self, run, rounds) -> None:
        self.events.append(("round", rounds, dict(run.decided)))
