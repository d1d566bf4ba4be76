"""What a trial's process gets from its parent, and what it returns at its end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from clientlab.measuring.connections import PeerAddress
from clientlab.strategies import Strategy, client_spec
from clientlab.workload.load import expected_requests, is_warm
from clientlab.workload.shard_workload import ShardWorkload, share_of
from clientlab.workload.workload import Workload

CONTEXT_FILE = "context.pickle"
"""In the trial's folder while its processes start, which inherit the open file."""

OUTPUT_FILES = "trial*.log"
"""Pattern of the names of `output_file`."""

WARM_UP_FOLDER = "warm-up"
"""In the trial's folder: the sample log of a warm-up whose connections are closed before the measured part."""


@dataclass(frozen=True)
class TrialContext:
    """One strategy, one workload and one target. Small and plain, so that it can be sent to other processes.

    `base_url`: scheme, host and port of the target. `folder`: where the sample log is written. `address`: which
    connections are counted. `ca_file`: PEM file of the CA that all clients trust; None leaves each library its own
    trust store. `whole`: the context of the trial, for a shard that shares the sample log with the others. `slices`:
    parts of the measured time, between which the processes wait. `rest`: seconds after which they send a few requests
    before the next slice, because the server may have closed connections.
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

    @property
    def shards(self) -> int:
        """Number of processes of this machine that divide the trial; 1 for a share of a trial on several machines."""
        return 1 if isinstance(self.workload, ShardWorkload) else self.workload.shards

    def of_shard(self, shard: int) -> TrialContext:
        """Return the context of one of the processes."""
        if self.shards == 1:
            return self
        return replace(self, workload=share_of(self.workload, shard, self.concurrency), whole=self)

    @property
    def warm_up(self) -> int:
        """Number of requests that warm up the connections. Their numbers are below 0."""
        return max(self.workload.warmup, self.concurrency) if self.warm else 0

    @property
    def warm(self) -> bool:
        """Whether connections are opened before the clock starts."""
        return is_warm(self.workload)

    @property
    def has_tool(self) -> bool:
        """Whether an external tool sends the requests."""
        return bool(client_spec(self.strategy.client).program)

    @property
    def concurrency(self) -> int:
        """Largest number of requests in flight at once, over all processes."""
        return self.strategy.in_flight(self.workload.concurrency, expected_requests(self.workload))


def output_file(shard: int, shards: int) -> str:
    """Return the name of the file in the trial's folder with the output of one of its processes."""
    return f"trial-{shard + 1}.log" if shards > 1 else "trial.log"


@dataclass(frozen=True)
class Done:
    """Figures of one process of a trial, without those of its children. `began`: on the monotonic clock.

    `slices`: when each slice began, on that clock, and its wall seconds. `extended`: as in `Outcome`.
    """

    began: float
    wall_seconds: float
    cpu_seconds: float
    extended: bool | None
    gil: bool
    peak_rss_bytes: int
    slices: tuple[tuple[float, float], ...] = ()
