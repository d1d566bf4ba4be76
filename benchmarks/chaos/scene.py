"""What all incidents have in common: their moment, their victim, the strike, and how it is reported."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from types import TracebackType
from typing import Self

import psutil

from benchmarks.chaos.incidents import Incident
from benchmarks.chaos.place import Missed, Place, awaited, find
from clientlab.results.document import Run
from clientlab.samples.log_reader import FinishedCounter

WARM_UP = 10
_COMES_WITHIN = 60.0
_FOUND_WITHIN = 2.0


@dataclass(frozen=True)
class IncidentReport:
    """What did not hold, in sentences, and what happened. `attempt`: victims were gone too early before it."""

    broken: list[str]
    summary: str
    attempt: int


class Scene(ABC):
    """One incident. A context manager, which ends all processes."""

    strategy = "http.client"
    requests = 150

    def __init__(self, incident: Incident, folder: Path) -> None:
        self.incident = incident
        self.place = Place(folder)
        self.struck_at = 0.0
        self.saved: Run | None = None  # as the strike found it
        self.children: list[psutil.Process] = []  # of the victim, then
        if incident.strike.pooled:
            self.strategy, self.requests = "requests-session@processes", 400

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.place.end()

    @abstractmethod
    def play(self, attempt: int) -> IncidentReport:
        """Start everything, strike, and look what became of it. Raises Missed."""

    @abstractmethod
    def trial_folder(self) -> Path | None:
        """The folder of the trial of the incident's moment; None before there is one."""

    @abstractmethod
    def goes_on(self) -> bool:
        """Whether the moment can still come."""

    def await_moment(self) -> None:
        """Return when it has come. Raises Missed."""
        if not awaited(self._has_come, _COMES_WITHIN):
            raise Missed(f"its moment did not come within {_COMES_WITHIN:g} s")
        time.sleep(self.incident.moment.later)

    def strike(self, known: dict[str, int]) -> psutil.Process:
        """Send the signal. `known`: victim → process id, of those that the scene has started. Raises Missed."""
        self.await_moment()
        strike = self.incident.strike
        found: list[psutil.Process] = []
        victim = known.get(strike.victim)
        if victim is not None:
            found.append(psutil.Process(victim))
        elif not awaited(lambda: self._find(found), _FOUND_WITHIN):
            raise Missed(f"there was no {strike.victim}")
        self.saved = self.place.run()
        try:
            self.children = found[0].children(recursive=True)
            self.struck_at = time.monotonic()
            found[0].send_signal(strike.number)
        except psutil.NoSuchProcess:
            raise Missed(f"the {strike.victim} had ended") from None
        if strike.certain and strike.reason and self.incident.moment.event == "share" and self._finished() is None:
            raise Missed("all requests of the trial had finished")
        return found[0]

    def continue_after(self, victim: psutil.Process) -> None:
        """SIGCONT after the incident's pause, where it has one."""
        strike = self.incident.strike
        if strike.number == SIGSTOP and strike.continued:
            time.sleep(self.incident.pause)
            victim.send_signal(SIGCONT)

    def _find(self, found: list[psutil.Process]) -> bool:
        incident = self.incident
        one = find(self.place.processes(), incident.strike.victim, incident.pick, incident.moment.trial)
        found.extend([one] if one else [])
        return bool(found)

    def _has_come(self) -> bool:
        moment, run = self.incident.moment, self.place.run()
        if not self.goes_on() or (run is not None and len(run.trials) > moment.trial and moment.event != "saved"):
            raise Missed("the run was beyond its moment")
        if moment.event == "folder":
            return any(self.place.results.folder.glob("*/"))
        if moment.event == "saved":
            return run is not None and len(run.trials) > moment.trial
        if moment.event == "begun":
            return self.trial_folder() is not None
        return (self._finished() or 0.0) >= moment.share

    def _finished(self) -> float | None:
        """The share of the trial's requests that have finished; None after the last one, or without its folder."""
        folder = self.trial_folder()
        share = 1.0 if folder is None else (FinishedCounter(folder).count() - WARM_UP) / self.requests
        return share if share < 1 else None
