"""What a trial's process gets from its parent, and what it returns at its end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from clientlab.strategies import Strategy
from clientlab.workload.load import count_warm_up, expected_requests, is_warm
from clientlab.workload.workload import ShardWorkload, Workload, take_share

# Files in the trial's folder
CONTEXT_FILE = "context.pickle"
"""Exists only while the trial's processes start, which inherit the open file."""

OUTPUT_FILES = "trial*.log"
"""Pattern of the names of the files with the output of its processes."""

WARM_UP_FOLDER = "warm-up"
"""The sample log of a warm-up whose connections are closed before the measured part."""

TOOL_FILE = "tool.json"
"""The `ToolNote` of an external tool."""


@dataclass(frozen=True)
class PeerAddress:
    """How clients reach the upstream."""

    url: str
    """Scheme, host and port."""

    refusing: tuple[str, ...] = ()
    """IP addresses of its host that refuse connections, often ::1 of localhost."""

    ca_file: str | None = None
    """PEM file of the CA that clients trust. None: each library's own trust store."""

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

    address: PeerAddress
    """Where requests go, and whose connections are counted."""

    folder: str
    """Where the sample log is written."""

    whole: TrialContext | None = None
    """The context of the trial, for a shard that shares the sample log with others."""

    slices: int = 1
    """Most parts of the measured time, between which the processes wait."""

    least_waves: int = 0
    """Waves that a slice has to last. 0: there are exactly `slices`."""

    numbered: bool = False
    """Whether requests tell the upstream their numbers, which it logs."""

    rest: float = math.inf
    """Seconds between slices after which a few requests are sent first.

    Connections may have been closed by then.
    """

    @property
    def shards(self) -> int:
        """Number of processes on this machine that divide the trial.

        It is 1 for a share of a trial on several machines.
        """
        return 1 if isinstance(self.workload, ShardWorkload) else self.workload.shards

    def of_shard(self, shard: int) -> TrialContext:
        """Return the context of one of these processes."""
        if self.shards == 1:
            return self
        share = take_share(self.workload, shard, self.concurrency)
        return replace(self, workload=share, whole=self)

    @property
    def warm_up(self) -> int:
        """Number of requests that warm up the connections, with numbers below 0."""
        return count_warm_up(self.workload, self.concurrency)

    @property
    def warm(self) -> bool:
        return is_warm(self.workload)

    @property
    def concurrency(self) -> int:
        """Largest number of requests in flight at once, over all processes."""
        expected = expected_requests(self.workload)
        return self.strategy.in_flight(self.workload.load.concurrency, expected)


@dataclass(frozen=True)
class Done:
    """Figures of one process of a trial, without its children."""

    began: float
    """On the monotonic clock."""

    wall_seconds: float
    cpu_seconds: float

    extended: bool | None
    """As in `Outcome`, like the steady ones."""

    gil: bool
    peak_rss_bytes: int

    slices: tuple[tuple[float, float], ...] = ()
    """When each slice began, on that clock, and its wall seconds."""

    steady_cpu_seconds: float | None = None
    steady_requests: int | None = None

    import_seconds: float = 0.0
    """Of a cold trial: from the interpreter's start to the imported libraries."""


@dataclass(frozen=True)
class ToolNote:
    """Figures of an external tool that no sample can hold."""

    wall_seconds: float
    cpu_seconds: float

    kept_alive: int
    """Requests on kept connections."""
