"""The servers that trials run against: the interface of a testbed, and the CPUs of each part of the local one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from clientlab.errors import FieldError
from clientlab.trial.context import PeerAddress
from clientlab.trial.result import Placement
from clientlab.trial.server_counters import ServerCounters
from clientlab.trial.usage import cpu_usable
from clientlab.workload.workload import Workload

_FEWEST_CORES = 2


class Testbed(Protocol):
    """The servers that a trial runs against. Upstream and route are the names that the experiment uses."""

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it runs. Raise IncompleteRun, or ServerLost if somebody else starts it."""

    def address(self, upstream: str, route: str) -> PeerAddress:
        """Return where clients send their requests."""

    def reading(self, upstream: str, route: str) -> ServerCounters:
        """Return the counters now. Raise ServerLost if a server has ended or does not answer."""

    def check(self) -> None:
        """Raise ServerLost if a server of this machine has ended or is frozen."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:
        """Return why a health check of the upstream over this route fails now, or None if it succeeds."""


def place_here(*, proxied: bool) -> Placement:
    """Place the parts on the CPUs that this process may use. Raise FieldError if there are fewer than two cores."""
    if not hasattr(os, "sched_setaffinity"):
        raise FieldError(["pin"], "only Linux can pin processes to CPUs; leave it out")
    if cpu_usable() < _FEWEST_CORES:  # with a smaller quota, the parts would wait for each other
        message = f"parts need two cores to be apart, and this process may use {cpu_usable():g}; leave it out"
        raise FieldError(["pin"], message)
    return place(group_by_core(sorted(os.sched_getaffinity(0))), proxied=proxied)


def place(cores: Sequence[Sequence[int]], *, proxied: bool) -> Placement:
    """Divide two or more cores, each given as its CPUs, among client, upstream and proxy so that none compete.

    The client gets half of the cores, rounded down, and the servers the others, including the first one, on which many
    systems serve interrupts. A proxy gets half of the servers' cores, rounded down. With two cores in all, it shares
    one with the upstream.
    """
    servers = len(cores) - len(cores) // 2
    of_proxy = servers // 2 if proxied else 0
    upstream, proxy = cores[: servers - of_proxy], cores[servers - of_proxy : servers]
    parts = {"client": cores[servers:], "upstream": upstream, "proxy": proxy or (upstream if proxied else [])}
    return Placement(**{name: sorted(cpu for core in part for cpu in core) for name, part in parts.items()})


def group_by_core(cpus: Sequence[int], root: Path = Path("/")) -> list[list[int]]:
    """Return these CPUs by core: two threads of a core compete for it, so one part gets both.

    Each CPU counts as a core if the system does not show its siblings, or if all of them are threads of one core.
    """
    found: dict[str, list[int]] = {}
    for cpu in cpus:
        siblings = root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        core = siblings.read_text(encoding="ascii").strip() if siblings.exists() else f"cpu {cpu}"
        found.setdefault(core, []).append(cpu)
    return list(found.values()) if len(found) >= _FEWEST_CORES else [[cpu] for cpu in cpus]
