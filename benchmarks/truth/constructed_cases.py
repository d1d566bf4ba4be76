"""Cases of the verdict that no trial of one machine can be made to show: constructed from what a trial measures."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.judging.verdict import Shares
from clientlab.measuring.outcome import Outcome
from clientlab.results.bottleneck import Bound, InFlight
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.trial import PlannedTrial
from clientlab.running.busy_shares import shares_of


@dataclass(frozen=True)
class Constructed:
    """A trial of 10 s by its figures. `cores`: of the client's machine. `upstream_cpu`: seconds of each worker.

    `processes`: of the client, of which the last had begun after `startup` seconds. `behind`: requests that the
    upstream held.
    """

    name: str
    strategy: str
    expected: Bound
    concurrency: int = 32
    cpu: float = 1.0
    cores: float = 8.0
    upstream_cpu: tuple[float, ...] = (1.0,)
    behind: float = 1.0
    threads: bool = False
    processes: int = 1
    startup: float = 0.0

    @property
    def planned(self) -> PlannedTrial:
        return PlannedTrial(
            arm="case", strategy=self.strategy, upstream="aiohttp", route="direct", workload="workload", round=1,
            order=0, concurrency=self.concurrency,
        )  # fmt: skip

    def shares(self) -> Shares:
        """The shares that follow."""
        outcome = Outcome(
            began=0.0, wall_seconds=10.0, cpu_seconds=self.cpu, idle_rss_bytes=None, peak_rss_bytes=None,
            connections_begun=32, connections_opened=32, connections_in_all=32, processes=self.processes,
            startup_seconds=self.startup,
        )  # fmt: skip
        upstream = ServerUse(
            cpu_seconds=sum(self.upstream_cpu), held_seconds=self.behind * 10, processes=len(self.upstream_cpu),
            cores=8.0, cpu_step_seconds=0.0, worker_cpu_seconds=list(self.upstream_cpu),
        )  # fmt: skip
        held = InFlight(client=self.concurrency, upstream=self.behind)
        return shares_of(self.planned, outcome, None, ServerCounters(upstream=upstream), held, usable=self.cores)


CONSTRUCTED = (
    Constructed("one of four workers full", "aiohttp@workers", "upstream-bound", upstream_cpu=(9.8, 0.1, 0.1, 0.1)),
    Constructed("threads with a GIL at 1.20 cores", "requests-session@threads", "client-bound", cpu=12, threads=True),
    Constructed("threads with a GIL at 1.30 cores", "requests-session@threads", "client-bound", cpu=13, threads=True),
    Constructed(
        "100 processes, forked for most of the time",
        "http.client@processes",
        "start-up",
        100,
        cpu=25,
        processes=100,
        startup=8.0,
    ),
    Constructed("eight threads, half idle", "requests-session@threads", "unaccounted", 8, cpu=2, threads=True),
)
