"""Running single trials for tests: the same call that a run makes, without its file."""

from __future__ import annotations

import contextlib
import tempfile
from urllib.parse import urlsplit

import psutil

from clientlab import strategies
from clientlab.measuring import measurement
from clientlab.measuring.connections import PeerAddress
from clientlab.measuring.context import TrialContext
from clientlab.measuring.outcome import Measurement
from clientlab.strategies import plugins
from clientlab.workload.workload import Workload


class Measured(Measurement):
    """A finished trial."""

    @property
    def numbers(self) -> list[int]:
        """The requests' numbers, sorted."""
        return sorted(self.samples.numbers.tolist())


def measure(strategy: str, workload: Workload, url: str, *, ca_file: str | None = None, **callbacks) -> Measured:
    """One trial of a strategy against the server at `url`. `callbacks` as of `measurement.measure`."""
    plugins.admit([strategy])
    with tempfile.TemporaryDirectory() as folder:
        context = TrialContext(
            strategies.find(strategy), workload, url, folder, PeerAddress(urlsplit(url).port), ca_file
        )
        return Measured(**vars(measurement.measure(context, **callbacks)))


def trial_processes():
    """The processes of trials that this one has started: other tests' servers may be running as well."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "clientlab.measuring.trial_process" in child.cmdline():
                found.append(child)
    return found


def is_alive(process):
    """Whether it runs or is stopped: one that nobody has waited for is not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
