"""What a trial's process gets from its parent, the context in a file, and what it returns at its end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from clientlab.measuring.connections import PeerAddress
from clientlab.strategies import Strategy
from clientlab.workload.load import expected_requests, is_warm
from clientlab.workload.shard_workload import ShardWorkload, share_of
from clientlab.workload.workload import Workload

CONTEXT_FILE = "context.pickle"
"""In the trial's folder while its processes start: their context. Each of them inherits the open file."""

OUTPUT_FILES = "trial*.log"
"""Pattern of the names of `output_file`."""

WARM_UP_FOLDER = "warm-up"
"""In the trial's folder: the sample log of a warm-up whose connections are closed before the measured part."""


@dataclass(frozen=True)
class CpuSampling:
    """How a trial samples its own main thread. `file`: beginning of the path that it writes to. `rate`: per second."""

    file: str
    rate: int


@dataclass(frozen=True)
class TrialContext:
    """One strategy, one workload and one target. Small and plain, so that it can be sent to other processes.

    `base_url`: scheme, host and port of the target. `folder`: where each process of the trial writes its sample log.
    `address`: which connections are counted as connections to the target. `ca_file`: PEM file of the CA that all
    clients trust; None leaves each library its own trust store. `whole`: of a shard that shares the sample log with the
    others, the context of the trial. `slices`: parts of the measured time; between them the processes wait. `rest`:
    seconds after which they send a few requests before the next slice, because the server may have closed connections.
    `sampling`: of a trial that is profiled. `phases`, `memory`: of one that records phases or allocations, the
    beginning of the path to write.
    `own_upstream`: whether the target is an upstream of the lab, which counts the attempts of a request.
    """

    strategy: Strategy
    workload: Workload
    base_url: str
    folder: str
    address: PeerAddress
    ca_file: str | None = None
    whole: TrialContext | None = None
    slices: int = 1
    rest: float = math.inf
    sampling: CpuSampling | None = None
    phases: str | None = None
    memory: str | None = None
    own_upstream: bool = False

    @property
    def shards(self) -> int:
        """How many processes of this machine divide the trial. A share of a trial on several machines has one."""
        return 1 if isinstance(self.workload, ShardWorkload) else self.workload.shards

    def of_shard(self, shard: int) -> TrialContext:
        """What one of the processes does; all of it without shards."""
        if self.shards == 1:
            return self
        return replace(self, workload=share_of(self.workload, shard, self.concurrency), whole=self)

    @property
    def warm_up(self) -> int:
        """Number of requests that warm up the connections. They are numbered from below zero up to -1."""
        return max(self.workload.warmup, self.concurrency) if self.warm else 0

    @property
    def warm(self) -> bool:
        """Whether connections are opened before the clock starts."""
        return is_warm(self.workload)

    @property
    def concurrency(self) -> int:
        """Largest number of requests in flight at once, over all processes."""
        return self.strategy.in_flight(self.workload.concurrency, expected_requests(self.workload))


def output_file(shard: int, shards: int) -> str:
    """In the trial's folder: what a process of the trial writes to standard output and standard error."""
    return f"trial-{shard + 1}.log" if shards > 1 else "trial.log"


@dataclass(frozen=True)
class Done:
    """Figures of one process of a trial, without those of its children. `began`: on the monotonic clock.

    `slices`: when each slice of a trial in slices began, on that clock, and its wall seconds. `extended`: whether
    requests were begun after the workload's duration; None without one. `gil`: whether the process had a GIL at its
    end; `gil_switched_by`: the extension module that switched it on; None: none did, or it is unknown.
    """

    began: float
    wall_seconds: float
    cpu_seconds: float
    extended: bool | None
    gil: bool
    gil_switched_by: str | None
    peak_rss_bytes: int
    slices: tuple[tuple[float, float], ...] = ()
