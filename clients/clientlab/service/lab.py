"""The service's parts together, as its handlers find them."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from clientlab.errors import LabError
from clientlab.runs.experiment import Experiment
from clientlab.runs.experiment_file import bundled, read_experiment
from clientlab.runs.store import Store
from clientlab.service.archive import Archive
from clientlab.service.conductor import Conductor
from clientlab.service.shapes import Start, command_of
from clientlab.service.turns import Turns


@dataclass(frozen=True)
class Lab:
    """One service. `token` is the workers' own, empty where everybody is trusted; `grafana` a URL or empty."""

    store: Store
    turns: Turns
    conductor: Conductor
    archive: Archive
    token: str
    grafana: str

    def start(self, asked: Start) -> str:
        """Begin a run and return its name. Raises LabError."""
        return self.conductor.start(experiment_of(asked), command_of(asked.experiment, asked.rounds, quick=asked.quick))


LAB = web.AppKey("lab", Lab)


def experiment_of(asked: Start) -> Experiment:
    """The experiment that is asked for. Raises LabError with those there are."""
    known = bundled()
    if asked.experiment not in known:
        raise LabError(f"experiment {asked.experiment!r} is unknown; there are {', '.join(known)}")
    found = read_experiment(known[asked.experiment], quick=asked.quick)
    return found if asked.rounds is None else found.model_copy(update={"rounds": asked.rounds})
