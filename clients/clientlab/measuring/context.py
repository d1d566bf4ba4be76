"""The context of a trial: what its process needs to know, and the file that brings it there."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.measuring.connections import Address
from clientlab.strategies import Strategy
from clientlab.workload.load import requests_in
from clientlab.workload.workload import Workload

CONTEXT_FILE = "context.pickle"
"""Where the trial's process finds its context, in the trial's folder."""

OUTPUT_FILE = "trial.log"
"""In the trial's folder: what its process writes to standard output and standard error."""

WARM_UP_FOLDER = "warm-up"
"""In the trial's folder: the sample log of a warm-up whose connections are closed before the measured part."""


@dataclass(frozen=True)
class TrialContext:
    """One strategy, one workload and one target. Small and plain, so that it can be sent to other processes.

    `base_url`: scheme, host and port of the target. `folder`: where each process of the trial writes its sample
    log. `address`: which connections are counted as connections to the target. `ca_file`: PEM file of the CA that
    all clients trust; None leaves each library its own trust store.
    """

    strategy: Strategy
    workload: Workload
    base_url: str
    folder: str
    address: Address
    ca_file: str | None = None

    @property
    def warm_up(self) -> int:
        """Number of requests that warm up the connections. They are numbered from below zero up to -1."""
        return max(self.workload.warmup, self.concurrency) if self.warm else 0

    @property
    def warm(self) -> bool:
        """Whether connections are opened before the clock starts."""
        return self.workload.connections == "warm"

    @property
    def concurrency(self) -> int:
        """Largest number of requests in flight at once, over all processes."""
        return self.strategy.in_flight(self.workload.concurrency, requests_in(self.workload))
