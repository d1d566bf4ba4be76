"""Which CPUs each part of the local testbed gets, so that client, upstream and proxy do not compete for one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from clientlab.errors import FieldError
from clientlab.results.document import Placement
from clientlab.results.surroundings import cpu_usable

_ROOT = Path("/")
_FEWEST = 2


def placement_here(*, proxied: bool) -> Placement:
    """Return the placement on the CPUs that this process may use. Raise FieldError if there are fewer than two cores.

    With a quota of less than two cores' worth of time, parts would still wait for each other.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise FieldError(["pin"], "only Linux can pin processes to CPUs; leave it out")
    if cpu_usable() < _FEWEST:
        message = f"parts need two cores to be apart, and this process may use {cpu_usable():g}; leave it out"
        raise FieldError(["pin"], message)
    return placed(cores_of(sorted(os.sched_getaffinity(0))), proxied=proxied)


def placed(cores: Sequence[Sequence[int]], *, proxied: bool) -> Placement:
    """Divide two or more cores, each given as its CPUs, among the parts.

    The client gets half of them, rounded down, and the servers all others, the first one included: many systems serve
    interrupts there. A proxy gets half of the servers' cores, rounded down. With two cores, it shares one with
    the upstream.
    """
    servers = len(cores) - len(cores) // 2
    of_proxy = servers // 2 if proxied else 0
    upstream, proxy = cores[: servers - of_proxy], cores[servers - of_proxy : servers]
    parts = {"client": cores[servers:], "upstream": upstream, "proxy": proxy or (upstream if proxied else [])}
    return Placement(**{name: sorted(cpu for core in part for cpu in core) for name, part in parts.items()})


def cores_of(cpus: Sequence[int], root: Path = _ROOT) -> list[list[int]]:
    """Return these CPUs by core: two threads of a core compete for it, so one part has both.

    Each CPU counts as a core if the system does not tell, and if all of them are threads of one core.
    """
    found: dict[str, list[int]] = {}
    for cpu in cpus:
        siblings = root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        core = siblings.read_text(encoding="ascii").strip() if siblings.exists() else f"cpu {cpu}"
        found.setdefault(core, []).append(cpu)
    return list(found.values()) if len(found) >= _FEWEST else [[cpu] for cpu in cpus]
