"""What the arms of a plan need of the system at once: open files, connections, memory."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Collection
from dataclasses import dataclass

from clientlab import strategies
from clientlab.errors import LabError
from clientlab.results.plan import Arm, Plan
from clientlab.strategies import Strategy
from clientlab.upstreams import find
from clientlab.workload.load import expected_requests, is_open
from clientlab.workload.workload import Workload

OWN_FILES = 64
"""Files that a process opens beside its connections: libraries, logs, pipes, event loops."""

_LOOPBACK = ("127.", "localhost", "[::1]")
_PIPES = 2
"""Open files of a process for each child process of its pool."""

_PER_PROCESS, _PER_THREAD, _PER_CONNECTION = 6 << 20, 16 << 10, 32 << 10
"""Bytes, about: of a process of a pool, of a thread, and of a connection with its request on both sides.

Measured in clients, by more requests in flight: 14 KiB for a connection of aiohttp, 17 KiB for a thread of requests
with its connection, 5.8 MiB for a process of a pool with urllib3.
"""


@dataclass(frozen=True)
class Demand:
    """What one arm needs. `certain`: surely so much; else it is the most that it may need.

    `files`: open files of its largest process, of the client. `files_of_servers`: of the link, of the proxy, or of one
    worker of the upstream: one connection for each request in flight, and one more behind the link or the proxy; 0
    where the lab does not start them. `connections`: at once, to one address. `burst`: connections that it may open at
    one moment inside the clock, to a server that the lab starts. `opened`: connections of a trial, if each request has
    its own; infinite where their number is unknown, 0 for all other arms. `memory`: bytes, of the trial's processes and
    of the lab's servers.
    """

    arm: str
    certain: bool
    files: int
    files_of_servers: int
    connections: int
    burst: int
    opened: float
    memory: int
    proxied: bool
    linked: bool
    on_loopback: bool


def demands_of(plan: Plan, served: Collection[str]) -> list[Demand]:
    """The demands of the arms. `served`: the upstreams that the lab itself starts.

    Arms of an imported run are left out if their strategy is not installed here.
    """
    found = []
    for arm in plan.arms:
        with contextlib.suppress(LabError):
            found.append(_demand(arm, strategies.find(arm.strategy), plan.workloads[arm.workload], served))
    return found


def _demand(arm: Arm, strategy: Strategy, workload: Workload, served: Collection[str]) -> Demand:
    client, executor = strategies.client_spec(strategy.client), strategies.executor_spec(strategy.executor)
    count, own_server, proxied = expected_requests(workload), arm.upstream in served, arm.route != "direct"
    in_flight = strategy.in_flight(workload.concurrency, count)
    in_flight = in_flight if count is None else min(in_flight, count)
    shared = client.http == "2"  # all requests of a client are on one connection
    connections = 1 if shared else in_flight
    # A pool of its own may be smaller, and an open load opens connections only while its answers are late.
    own_pool = {"pool", "library_defaults"} & strategy.settings.keys()
    each = strategy.policy == "per call" and not shared
    of_threads = (executor.threads + (own_server and find(arm.upstream).framework == "flask")) * _PER_THREAD
    of_processes = _PER_PROCESS if executor.size == "processes" else 0
    return Demand(
        arm=arm.name,
        certain=not (shared or own_pool or executor.unbounded or is_open(workload)),
        files=OWN_FILES + _files(strategy, connections),
        files_of_servers=OWN_FILES + in_flight * (2 if proxied or arm.link else 1) if own_server else 0,
        connections=connections,
        burst=connections if own_server and workload.connections == "cold" else 0,
        opened=0 if not each else math.inf if count is None else count,
        memory=in_flight * (_PER_CONNECTION + of_threads + of_processes),
        proxied=proxied,
        linked=arm.link is not None,
        on_loopback=own_server or arm.upstream.startswith(_LOOPBACK),
    )


def _files(strategy: Strategy, connections: int) -> int:
    """Open files for the connections of a trial, in the process of the client that has the most."""
    executor = strategies.executor_spec(strategy.executor)
    if executor.size == "processes":
        return _PIPES * connections
    if strategy.executor == "async-processes":
        by_default = inspect.signature(strategies.load(executor.import_path)).parameters["chunks"].default
        return -(-connections // int(strategy.settings.get("chunks", by_default)))
    return connections
