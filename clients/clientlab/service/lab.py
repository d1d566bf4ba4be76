"""The parts of the lab service together, as its routes find them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from fastapi import Depends, Request

from clientlab.errors import LabError
from clientlab.experiments.file import bundled
from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.service.dispatcher import Dispatcher
from clientlab.service.plans import served_plan
from clientlab.service.recruiter import Bounds
from clientlab.service.run_index import RunIndex
from clientlab.service.run_manager import RunManager
from clientlab.service.schemas import Wanted

_log = logging.getLogger("clientlab.service")


@dataclass(frozen=True)
class LabSettings:
    """The options of `clientlab serve`. `first`: what to start if no run is unfinished."""

    folder: Path
    token: str
    first: Plan | None
    programs: dict[str, str]
    bounds: Bounds


@dataclass(frozen=True)
class Lab:
    """One service. `token` is the workers' own; it is empty if everybody is trusted."""

    store: Store
    dispatcher: Dispatcher
    run_manager: RunManager
    run_index: RunIndex
    token: str

    @classmethod
    def begin(cls, settings: LabSettings) -> Self:
        """A lab in the running event loop. It continues its unfinished run, or starts the first. Raises LabError."""
        store, dispatcher = Store(settings.folder), Dispatcher(settings.bounds)
        asked = "" if settings.first is None else settings.first.name
        run_manager = RunManager(store, dispatcher, settings.programs, _log.info, asked)
        if run_manager.resume(settings.first) is None and settings.first is not None:
            run_manager.start(settings.first)
        index = RunIndex(store, _log.warning)
        return cls(store, dispatcher, run_manager, index, settings.token)

    def start(self, wanted: Wanted) -> str:
        """Start a run and return its name. Raises LabError."""
        return self.run_manager.start(_plan_of(wanted))


def _plan_of(wanted: Wanted) -> Plan:
    """The plan of the bundled experiment of that name. Raises LabError with those there are."""
    known = bundled()
    if wanted.experiment not in known:
        raise LabError(f"experiment {wanted.experiment!r} is unknown; there are {', '.join(known)}")
    return served_plan(wanted, known[wanted.experiment])


async def _this_lab(request: Request) -> Lab:
    lab: Lab = request.app.state.lab
    return lab  # as a coroutine: FastAPI calls functions in a thread


ThisLab = Annotated[Lab, Depends(_this_lab)]
