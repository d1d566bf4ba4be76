"""Running single trials for tests: the same call that a run makes, without its file."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from clientlab import strategies
from clientlab.analysis import samples
from clientlab.analysis.samples import Samples
from clientlab.measuring.connections import Address
from clientlab.measuring.driving import Note, note_of
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.trial import Outcome, run_trial
from clientlab.workload import Workload


@dataclass(frozen=True)
class Measured:
    """What a trial left."""

    outcome: Outcome
    samples: Samples
    note: Note | None = None  # of a trial that a program drove

    @property
    def numbers(self) -> list[int]:
        """The requests' numbers, sorted."""
        return sorted(self.samples.numbers.tolist())


def measure(
    strategy: str, workload: Workload, url: str, at_ready=lambda: None, at_done=lambda: None, ca_file: str | None = None
) -> Measured:
    """One trial of a strategy against the server at `url`."""
    with tempfile.TemporaryDirectory() as folder:
        bench = TrialBench(strategies.find(strategy), workload, url, folder, Address(urlsplit(url).port), ca_file)
        tail = samples.Tail(Path(folder))
        outcome = run_trial(bench, tail.finished, at_ready, at_done)
        return Measured(outcome, samples.read(Path(folder), outcome.began), note_of(Path(folder)))


def trial_processes():
    """The processes of trials that this one has started: other tests' servers may be running as well."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "clientlab.measuring.trial_process" in child.cmdline():
                found.append(child)
    return found
