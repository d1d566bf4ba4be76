"""The control group of this process (version 2): the least limit on the way from its own group to the root.

A group's limit holds for all groups below it. So the limit of a process is the least of all groups on its path
(cgroups(7)), as far as the process can see them: a container often sees its own group as the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Cores' worth of CPU time that the groups may use. None: no limit, or no control groups."""
    quotas = [
        int(words[0]) / int(words[1])  # microseconds in each period
        for folder in _folders(root)
        if len(words := _words(folder / "cpu.max")) == 2 and words[0].isdigit()
    ]
    return min(quotas, default=None)


def memory_limit(root: Path = Path("/")) -> int | None:
    """Bytes that the groups may use. None: no limit, or no control groups."""
    limits = (_words(folder / "memory.max") for folder in _folders(root))
    return min((int(words[0]) for words in limits if words and words[0].isdigit()), default=None)


def memory_left(root: Path = Path("/")) -> int | None:
    """Bytes that may still be taken within the groups; the kernel can free their unused file pages first.

    None: no limit, or no control groups.
    """
    found = [
        int(limit[0]) - int(used[0]) + _inactive_file(folder)
        for folder in _folders(root)
        if (limit := _words(folder / "memory.max")) and limit[0].isdigit()
        if (used := _words(folder / "memory.current"))
    ]
    return min(found, default=None)


def cpu_pressure_file(root: Path = Path("/")) -> Path | None:
    """The file with the CPU pressure of this process's own group. None where there is none."""
    return next((path for folder in _folders(root) if (path := folder / "cpu.pressure").exists()), None)


def _inactive_file(folder: Path) -> int:
    """Bytes of cached file pages that were not used for a while; 0 if unknown."""
    words = (line.split() for line in _lines(folder / "memory.stat"))
    return next((int(value) for name, value in words if name == "inactive_file"), 0)


def _folders(root: Path) -> Iterator[Path]:
    """Folders of the groups that may limit this process: its own first, then each group above (proc(5))."""
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
    """The words of a small file; none where it cannot be read."""
    return " ".join(_lines(path)).split()
