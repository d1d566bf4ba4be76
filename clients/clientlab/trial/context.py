"""What a trial's process gets from its parent, and what it returns at its end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from clientlab.strategies import Strategy
from clientlab.workload.load import count_warm_up, expected_requests, is_warm
from clientlab.workload.workload import ShardWorkload, Workload, take_share

# Files in the trial's folder
CONTEXT_FILE = (
    "context.pickle"  # only while its processes start, which inherit the open file
)
OUTPUT_FILES = (
    "trial*.log"  # pattern of the names of the files with the output of its processes
)
# The sample log of a warm-up whose connections are closed before the measured part.
WARM_UP_FOLDER = "warm-up"
TOOL_FILE = "tool.json"  # the `ToolNote` of an external tool


@dataclass(frozen=True)
class PeerAddress:
    """How clients reach the upstream."""

    url: str  # scheme, host and port
    refusing: tuple[
        str, ...
    ] = ()  # IP addresses of its host that refuse, often ::1 of localhost
    ca_file: str | None = (
        # PEM file of the CA that clients trust; None: each library's own trust store.
        None
    )

    @property
    def port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)


@dataclass(frozen=True)
class TrialContext:
    """One strategy, one workload and one target.

    Small and plain, so that it can be sent to other processes.
    """

    strategy: Strategy
    workload: Workload
    address: PeerAddress  # where requests go, and whose connections are counted
    folder: str  # where the sample log is written
    whole: TrialContext | None = (
        None  # that of the trial, for a shard that shares the sample log with others
    )
    slices: int = 1  # most parts of the measured time, between which the processes wait
    least_waves: int = 0  # that a slice has to last; 0: there are exactly `slices`
    # Seconds between slices after which a few requests are sent: connections may be
    # closed.
    rest: float = math.inf

    @property
    def shards(self) -> int:
        """Number of processes on this machine that divide the trial; 1 for a share of a
        trial on several machines.
        """
        return 1 if isinstance(self.workload, ShardWorkload) else self.workload.shards

    def of_shard(self, shard: int) -> TrialContext:
        """Return the context of one of these processes."""
        if self.shards == 1:
            return self
        return replace(
            self,
            workload=take_share(self.workload, shard, self.concurrency),
            whole=self,
        )

    @property
    def warm_up(self) -> int:
        """Number of requests that warm up the connections.

        Their numbers are below 0.
        """
        return count_warm_up(self.workload, self.concurrency)

    @property
    def warm(self) -> bool:
        return is_warm(self.workload)

    @property
    def concurrency(self) -> int:
        """Largest number of requests in flight at once, over all processes."""
        return self.strategy.in_flight(
            self.workload.concurrency, expected_requests(self.workload)
        )


@dataclass(frozen=True)
class Done:
    """Figures of one process of a trial, without its children."""

    began: float  # on the monotonic clock
    wall_seconds: float
    cpu_seconds: float
    extended: bool | None  # as in `Outcome`
    gil: bool
    peak_rss_bytes: int
    slices: tuple[
        tuple[float, float], ...
    ] = ()  # when each slice began, on that clock, and its wall seconds
    steady_cpu_seconds: float | None = None  # as in `Outcome`
    steady_requests: int | None = None
    # Of a cold trial: from the start of the interpreter until the libraries were
    # imported.
    import_seconds: float = 0.0


@dataclass(frozen=True)
class ToolNote:
    """Figures of an external tool that no sample can hold.

    `kept_alive`: requests on kept connections.
    """

    wall_seconds: float
    cpu_seconds: float
    kept_alive: int
