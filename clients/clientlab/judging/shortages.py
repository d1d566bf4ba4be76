"""What a plan needs, and the system does not have: open files, ephemeral ports, a queue for new connections, memory.

A shortage is fatal where trials would surely fail. All others may make figures worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from clientlab import units
from clientlab.judging.demands import OWN_FILES, Demand, demands_of
from clientlab.measuring.limits import SHARE_OF_FREE
from clientlab.results.document import SystemLimits
from clientlab.results.plan import Plan

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
