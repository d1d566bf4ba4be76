"""What a plan needs of the system, and what of it is lacking: open files, connections, memory.

A shortage is fatal where trials would surely fail. All others may make figures worse.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from clientlab import strategies, units
from clientlab.errors import LabError
from clientlab.measuring.limits import SHARE_OF_FREE
from clientlab.results.document import SystemLimits
from clientlab.results.plan import Arm, Plan
from clientlab.strategies import Strategy
from clientlab.upstreams import find
from clientlab.workload.load import expected_requests, is_open, is_warm
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
    own_pool = {"pool", "library_defaults", "as_written"} & strategy.settings.keys()
    each = strategy.policy == "per call" and not shared
    of_threads = (executor.threads + (own_server and find(arm.upstream).framework == "flask")) * _PER_THREAD
    of_processes = _PER_PROCESS if executor.size == "processes" else 0
    return Demand(
        arm=arm.name,
        certain=not (shared or own_pool or executor.unbounded or is_open(workload)),
        files=OWN_FILES + _files(strategy, connections),
        files_of_servers=OWN_FILES + in_flight * (2 if proxied or arm.link else 1) if own_server else 0,
        connections=connections,
        burst=connections if own_server and not is_warm(workload) else 0,
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


_TIME_WAIT_SECONDS = 60
"""A closed connection keeps its port for so long (TCP_TIMEWAIT_LEN of Linux)."""

_FASTEST = 10_000
"""Connections per second: ApacheBench opened 7,200 on two cores. Where ports are free after 1 s, so many are enough."""

MORE_PORTS = "sysctl -w net.ipv4.ip_local_port_range='1024 65535'"
"""The command that gives nearly all ports to outgoing connections."""


@dataclass(frozen=True)
class Shortage:
    """Something that arms of a plan need and the system does not have. `advice`: with the command that raises it."""

    kind: str
    arms: list[str]
    text: str
    advice: str
    fatal: bool = False


def shortages(plan: Plan, limits: SystemLimits, served: Collection[str]) -> list[Shortage]:
    """All shortages of a plan, the fatal ones first. `served`: the upstreams that the lab itself starts."""
    demands = demands_of(plan, served)
    rules = (_open_files, _ports, _time_wait, _files_of_servers, _backlog, _memory)
    found = [shortage for rule in rules for shortage in rule(demands, limits)]
    return sorted(found, key=lambda one: not one.fatal)


_Demands = Sequence[Demand]


def _open_files(demands: _Demands, limits: SystemLimits) -> Iterator[Shortage]:
    for certain in (True, False):
        beyond = [one for one in demands if one.files > limits.open_files and one.certain == certain]
        if beyond:
            most = _most(beyond, lambda one: one.files)
            yield Shortage(
                "open-files",
                _names(beyond),
                f"{most.arm} needs {most.files:,} open files in a process, and the hard limit is {limits.open_files:,}",
                f"lower -c, or raise the limit of this shell as root: {more_files(most.files)}",
                fatal=certain,
            )


def _files_of_servers(demands: _Demands, limits: SystemLimits) -> Iterator[Shortage]:
    beyond = [one for one in demands if one.files <= limits.open_files < one.files_of_servers]
    if beyond:
        most = _most(beyond, lambda one: one.files_of_servers)
        server = "the link" if most.linked else "the proxy" if most.proxied else "a worker of the upstream"
        yield Shortage(
            "open-files",
            _names(beyond),
            f"{server} may need {most.files_of_servers:,} open files for {most.arm}, and the hard limit is "
            f"{limits.open_files:,}: requests beyond it would fail",
            f"lower -c, or raise the limit of this shell as root: {more_files(most.files_of_servers)}",
        )


def _ports(demands: _Demands, limits: SystemLimits) -> Iterator[Shortage]:
    there = math.inf if limits.ephemeral_ports is None else limits.ephemeral_ports
    for certain in (True, False):
        beyond = [one for one in demands if one.connections > there and one.certain == certain]
        if beyond:
            most = _most(beyond, lambda one: one.connections)
            yield Shortage(
                "ephemeral-ports",
                _names(beyond),
                f"{most.arm} needs {most.connections:,} connections to one address, and the system has {there:,} "
                "ephemeral ports for them",
                f"lower -c, or run as root: {MORE_PORTS}",
                fatal=certain,
            )


def _time_wait(demands: _Demands, limits: SystemLimits) -> Iterator[Shortage]:
    """Arms with a connection for each request: those that are closed keep their ports for a while."""
    if limits.ephemeral_ports is None or limits.time_wait_reuse is None:
        return
    there, reuse = limits.ephemeral_ports, limits.time_wait_reuse
    slow = [one for one in demands if one.opened > there and not (reuse == 1 or (reuse and one.on_loopback))]
    fast = [one for one in demands if one.opened > there and one not in slow and there < _FASTEST]
    for beyond, seconds, raised in ((slow, _TIME_WAIT_SECONDS, "net.ipv4.tcp_tw_reuse=1"), (fast, 1, "")):
        if beyond:
            yield Shortage(
                "ephemeral-ports",
                _names(beyond),
                f"{', '.join(_names(beyond))} open a connection for each request: the port of a closed one is taken "
                f"for {seconds} s, and there are {there:,}, enough for {units.rate(there / seconds)} connections/s",
                "beyond that, connecting fails: send fewer requests, or run as root: "
                + (f"sysctl -w {raised}" if raised else MORE_PORTS),
            )


def _backlog(demands: _Demands, limits: SystemLimits) -> Iterator[Shortage]:
    there = math.inf if limits.listen_backlog is None else limits.listen_backlog
    beyond = [one for one in demands if one.burst > there]
    if beyond:
        most = _most(beyond, lambda one: one.burst)
        yield Shortage(
            "listen-backlog",
            _names(beyond),
            f"{most.arm} may open {most.burst:,} connections at once, and the queue of a listening socket holds "
            f"{there:,}: others wait 1 s or longer, until the kernel sends their packets again",
            f"use --connections warm, or run as root: {longer_queue(most.burst)}",
        )


def _memory(demands: _Demands, limits: SystemLimits) -> Iterator[Shortage]:
    if limits.free_memory_bytes is None:
        return
    most_bytes = SHARE_OF_FREE * limits.free_memory_bytes
    beyond = [one for one in demands if one.memory > most_bytes]
    if beyond:
        most = _most(beyond, lambda one: one.memory)
        yield Shortage(
            "free-memory",
            _names(beyond),
            f"{most.arm} needs about {units.memory(most.memory)} with its servers, and "
            f"{units.memory(limits.free_memory_bytes)} of memory are free",
            f"a trial that holds more than {SHARE_OF_FREE:.0%} of it is ended: stop other programs, or lower -c",
        )


def _most(demands: _Demands, of: Callable[[Demand], float]) -> Demand:
    return max(demands, key=of)


def _names(demands: _Demands) -> list[str]:
    return sorted({one.arm for one in demands})


def more_files(files: int) -> str:
    """The command that raises the limit of open files of a shell."""
    enough = _power_of_two(files + OWN_FILES)
    return f"prlimit --pid $$ --nofile={enough}:{enough}"


def longer_queue(connections: int) -> str:
    """The command that lets so many connections wait to be accepted."""
    return f"sysctl -w net.core.somaxconn={_power_of_two(connections)}"


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
