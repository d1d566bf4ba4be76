"""The limits of this system that a run may reach, as the run document holds them."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path

from clientlab.measuring.limits import free_memory
from clientlab.results.document import SystemLimits

_ROOT = Path("/")
_NO_LIMIT = (1 << 63) - 1


def system_limits(root: Path = _ROOT) -> SystemLimits:
    """The limits now: of this process, and of its network namespace (ip-sysctl.rst of the Linux kernel)."""
    network = root / "proc/sys/net"
    return SystemLimits(
        open_files=most_open_files(),
        ephemeral_ports=_ports(network / "ipv4"),
        time_wait_reuse=_number(network / "ipv4/tcp_tw_reuse"),
        listen_backlog=_number(network / "core/somaxconn"),
        free_memory_bytes=free_memory(),
    )


def most_open_files() -> int:
    """The hard limit of open files: so far a process may raise its own limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _NO_LIMIT if hard == resource.RLIM_INFINITY else hard


def _ports(folder: Path) -> int | None:
    """How many ports the kernel chooses from: its range, without those that are reserved (``8080,9000-9010``)."""
    words = _words(folder / "ip_local_port_range")
    if len(words) != 2:
        return None
    first, last = map(int, words)
    reserved = 0
    for part in ",".join(_words(folder / "ip_local_reserved_ports")).split(","):
        low, _, high = part.partition("-")
        if low:
            reserved += max(0, min(last, int(high or low)) - max(first, int(low)) + 1)
    return last - first + 1 - reserved


def _number(path: Path) -> int | None:
    words = _words(path)
    return int(words[0]) if len(words) == 1 else None


def _words(path: Path) -> list[str]:
    """The words of a small file; none where it cannot be read."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii").split()
    return []
