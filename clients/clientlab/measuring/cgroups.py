"""The limits of this process's control groups (version 2).

A group's limit holds for all groups below it, so the lowest limit on the path from the process's own group to the root
counts (cgroups(7)), as far as the process can see them: a container often sees its own group as the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return how many cores' worth of CPU time the groups may use; None without a limit, or without control groups."""
    quotas = [
        int(words[0]) / int(words[1])  # microseconds in each period
        for folder in _folders(root)
        if len(words := _words(folder / "cpu.max")) == 2 and words[0].isdigit()
    ]
    return min(quotas, default=None)


def memory_limit(root: Path = Path("/")) -> int | None:
    """Return the bytes that the groups may use; None without a limit, or without control groups."""
    limits = (_words(folder / "memory.max") for folder in _folders(root))
    return min((int(words[0]) for words in limits if words and words[0].isdigit()), default=None)


def memory_left(root: Path = Path("/")) -> int | None:
    """Return the bytes that the groups may still take; None without a limit, or without control groups.

    Cached file pages that were not used for a while count as free, because the kernel frees them first.
    """
    found = []
    for folder in _folders(root):
        limit, used, stat = (_words(folder / f"memory.{name}") for name in ("max", "current", "stat"))
        if limit and limit[0].isdigit() and used:
            cached = dict(zip(stat[::2], stat[1::2], strict=False)).get("inactive_file", "0")
            found.append(int(limit[0]) - int(used[0]) + int(cached))
    return min(found, default=None)


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folders of the groups that may limit this process: its own first, then each group above (proc(5))."""
    group = next((line[3:] for line in _lines(root / "proc/self/cgroup") if line.startswith("0::")), None)
    mount = next((line for line in _lines(root / "proc/self/mountinfo") if " - cgroup2 " in line), None)
    if group is None or mount is None:
        return
    inside, (top, folder) = PurePosixPath(group), mount.split()[3:5]
    # Without a namespace of its own, a container sees the host's path and a mount that begins in the middle of it.
    below = inside.relative_to(top) if inside.is_relative_to(top) and ".." not in inside.parts else PurePosixPath()
    for one in (below, *below.parents):
        yield root / folder.lstrip("/") / one


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()
