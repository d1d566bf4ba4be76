"""Single trials for tests: measured as in a run, without its file."""

from __future__ import annotations

import contextlib
import tempfile

import psutil

from clientlab import plugins, strategies
from clientlab.observing import measurement
from clientlab.observing.measurement import Measurement
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.workload.workload import Workload


class Measured(Measurement):
    """A finished trial."""

    @property
    def numbers(self) -> list[int]:
        """The requests' numbers, sorted."""
        return sorted(self.samples.numbers.tolist())


def measure(
    strategy: str,
    workload: Workload,
    url: str,
    *,
    ca_file: str | None = None,
    slices: int = 1,
    **options,
) -> Measured:
    """Measure one trial against the server at `url`, in at most so many slices of ten
    waves.

    `options`: as of `measurement.measure_by_steps`.
    """
    plugins.admit([strategy])
    with tempfile.TemporaryDirectory() as folder:
        address = PeerAddress(url, ca_file=ca_file)
        found = strategies.find(strategy)
        context = TrialContext(
            found, workload, address, folder, slices=slices, least_waves=10
        )
        return Measured(**vars(measurement.measure(context, **options)))


def trial_processes():
    """Return the processes of trials that this process has started."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "clientlab.trial.process" in child.cmdline():
                found.append(child)
    return found


def is_alive(process):
    """Return whether the process runs or is stopped. A zombie is not alive."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
