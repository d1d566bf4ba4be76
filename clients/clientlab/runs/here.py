"""Measuring a trial on this machine: its process, its samples, the servers' counters before and after."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clientlab import strategies
from clientlab.analysis import samples
from clientlab.measuring.connections import Address
from clientlab.measuring.driving import note_of
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.trial import TrialFailed, run_trial
from clientlab.runs import kept_samples
from clientlab.runs.document import Trial
from clientlab.runs.driven import as_driven, by_note
from clientlab.runs.figures import Reading, spent, with_figures
from clientlab.workload import Workload


class Home(Protocol):
    """Where the upstreams are, and what can be read off them."""

    def serve(self, upstream: str) -> None:
        """Have that upstream running. Raises IncompleteRun where it does not start."""

    def base_url(self, upstream: str, route: str) -> str:
        """Scheme, host and port."""

    def address(self, upstream: str, route: str) -> Address:
        """How connections to it are told from others."""

    def ca_file(self, upstream: str, route: str) -> str | None:
        """The PEM file of the CA that clients are to trust; None: those that they know."""

    def reading(self, upstream: str, route: str) -> Reading:
        """The counters now. Raises IncompleteRun where a server has died."""


@dataclass(frozen=True)
class Here:
    """Does trials as child processes of this one, against a home's upstreams."""

    home: Home
    keep_samples: bool = False

    def __call__(self, planned: Trial, workload: Workload, folder: Path, progressed: Callable[[int], None]) -> Trial:
        """One trial with its figures; its sample log is read and removed, and kept in another form where asked."""
        self.home.serve(planned.upstream)
        place = folder / f"trial-{planned.order:04d}"
        bench = TrialBench(
            strategies.find(planned.strategy),
            workload,
            self.home.base_url(planned.upstream, planned.route),
            str(place),
            self.home.address(planned.upstream, planned.route),
            self.home.ca_file(planned.upstream, planned.route),
        )
        tail = samples.Tail(place)

        def watch() -> int:
            finished = tail.finished()
            progressed(finished)
            return finished

        readings: list[Reading] = []

        def read() -> None:
            readings.append(self.home.reading(planned.upstream, planned.route))

        try:
            outcome = run_trial(bench, watch, read, read)
        except TrialFailed as failure:
            # Its logs and its process's last words are kept beside the run file.
            return planned.model_copy(update={"status": "failed", "reason": str(failure)})
        found = samples.read(place, outcome.began)
        note = note_of(place)
        trial = with_figures(planned, workload, by_note(outcome, note), found, spent(*readings))
        if note is not None:
            trial = as_driven(trial, note)
        elif self.keep_samples:
            kept_samples.write(folder, trial, workload, found, outcome.began)
        shutil.rmtree(place)
        return trial
