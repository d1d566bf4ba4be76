"""Control groups of this process, versions 1 and 2: the least limit on the way from its own group to the root.

A group's limit holds for all groups below it. So the limit of a process is the least of all groups on its path
(cgroups(7)), as far as the process can see them: a container often sees its own group as the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_UNLIMITED = 1 << 60
"""Version 1 writes the largest multiple of the page size for "no limit"."""


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Cores' worth of CPU time that the groups may use. None: no limit, or no control groups."""
    quotas = [quota for folder in _folders("cpu", root) if (quota := _quota(folder)) is not None]
    return min(quotas, default=None)


def memory_limit(root: Path = Path("/")) -> int | None:
    """Bytes that the groups may use. None: no limit, or no control groups."""
    limits = [
        int(words[0])
        for folder in _folders("memory", root)
        for name in ("memory.max", "memory.limit_in_bytes")
        if (words := _words(folder / name)) and words[0].isdigit() and int(words[0]) < _UNLIMITED
    ]
    return min(limits, default=None)


def memory_left(root: Path = Path("/")) -> int | None:
    """Bytes that may still be taken within the groups; the kernel can free their unused file pages first.

    None: no limit, or no control groups.
    """
    found = [
        int(limit[0]) - int(used[0]) + _inactive_file(folder)
        for folder in _folders("memory", root)
        for names in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
        if (limit := _words(folder / names[0])) and limit[0].isdigit() and int(limit[0]) < _UNLIMITED
        if (used := _words(folder / names[1]))
    ]
    return min(found, default=None)


def cpu_pressure_file(root: Path = Path("/")) -> Path | None:
    """The file with the CPU pressure of this process's own group. None where there is none."""
    return next((path for folder in _folders("cpu", root) if (path := folder / "cpu.pressure").exists()), None)


def _inactive_file(folder: Path) -> int:
    """Bytes of cached file pages that were not used for a while; 0 if unknown."""
    words = (line.split() for line in _lines(folder / "memory.stat"))
    return next((int(value) for name, value in words if name in {"inactive_file", "total_inactive_file"}), 0)


def _quota(folder: Path) -> float | None:
    """Microseconds of CPU time in each period, over the microseconds of the period. None: no limit."""
    words = _words(folder / "cpu.max")
    words = words or _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
    if len(words) != 2 or not all(word.isdigit() for word in words):  # "max", or -1 in version 1
        return None
    quota, period = map(int, words)
    return quota / period if quota and period else None


def _folders(controller: str, root: Path) -> Iterator[Path]:
    """Folders of the groups that may limit this process by the controller: its own first, then each group above."""
    for version, path in _paths(controller, root):
        found = _mount(controller, version, root)
        if found is None:
            continue
        top, mount = found
        inside = PurePosixPath(path)
        # Without a namespace of its own, a container sees the host's path and a mount that begins in the middle of it.
        below = inside.relative_to(top) if inside.is_relative_to(top) and ".." not in inside.parts else PurePosixPath()
        for group in (below, *below.parents):
            yield mount / group


def _paths(controller: str, root: Path) -> Iterator[tuple[int, str]]:
    """Version of control groups, and path of this process's group, for each hierarchy that may hold the controller."""
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            yield 2, path
        elif controller in controllers.split(","):
            yield 1, path


def _mount(controller: str, version: int, root: Path) -> tuple[PurePosixPath, Path] | None:
    """The group at which a hierarchy's mount begins, and the folder of the mount (proc(5), mountinfo)."""
    for line in _lines(root / "proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        kind, _, options = [*right.split(" ", 2), "", ""][:3]
        fits = kind == "cgroup2" if version == 2 else kind == "cgroup" and controller in options.split(",")
        if fits:
            fields = left.split()
            return PurePosixPath(fields[3]), root / fields[4].lstrip("/")
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    """The words of a small file; none where it cannot be read."""
    return " ".join(_lines(path)).split()
