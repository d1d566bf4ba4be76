"""CPU time and memory: what processes use, and what control groups let them use.

A sum of resident sets counts a page that n forked processes share n times. Linux counts
a page without a file as 1/n in each of them (proc(5), smaps_rollup: Pss_Anon). It would
do so with pages of files, too, but those of libraries are also shared with other arms,
whose processes wait for their slices. So they count once, as in the process that has
most. Pages of mapped logs are subtracted. Linux keeps a peak only of the resident set,
so the peak of a process is what it has, and VmHWM - Rss above it, read while the
trial's clock rests.

Control groups are those of version 2. A group's limit holds for all groups below it, so
the lowest limit on the path from the process's group to the root counts (cgroups(7)).
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_PROC = Path("/proc")


def cpu_seconds() -> float:
    """Return the user and system time of this process and of its ended children."""
    return time.process_time() + children_cpu_seconds()


def children_cpu_seconds() -> float:
    """Return the CPU time of the ended children of this process, user and system."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def cpu_seconds_of(pid: int) -> float | None:
    """Return the CPU time of another process, without its children.

    It has nanosecond steps (clock_getcpuclockid(3)). Return None if the system has no
    such clock, or the process has ended.
    """
    with contextlib.suppress(OSError):
        if sys.platform == "linux":
            return time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED
    return None


def has_gil() -> bool:
    """Return whether this process has a GIL.

    A free-threaded Python has none unless a library needs it.
    """
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def peak_rss() -> int:
    """Return the largest resident set of this process so far, in bytes.

    On Linux `ru_maxrss` is only used if the process has no file descriptor left: a new
    program inherits its parent's.
    """
    with contextlib.suppress(OSError):
        return peak_rss_of("self")
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def peak_rss_of(pid: int | str, proc: Path = _PROC) -> int:
    """Return the largest resident set of a process so far, in bytes; 0 for a zombie.

    Raise OSError.
    """
    return _find_kib(_read_text(proc / f"{pid}/status"), "\nVmHWM:")


def offer_to_the_oom_killer() -> None:
    """Let the kernel end this process and its children first if memory runs out.

    See proc(5).
    """
    with contextlib.suppress(OSError):  # not Linux, or not permitted
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def raise_descriptor_limit() -> None:
    """Raise the limit of open files and sockets to the system's hard limit.

    It holds for this process and its children.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # macOS calls it unlimited and takes less.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Footprint(NamedTuple):
    """Bytes of processes that share pages.

    They are those now, and those with the peak of each process.
    """

    now: int
    peak: int


def read_footprint(
    pids: Iterable[int],
    needed: Collection[int] = (),
    proc: Path = _PROC,
    *,
    left_out: Collection[str],
) -> Footprint | None:
    """Return the memory of these processes.

    Call it while they rest: the files are read one after the other. `left_out`: ends of
    the names of mapped files that do not count.

    Return None if it cannot be read (no permission, not Linux), or if one of the
    `needed` processes has ended. Other processes that have ended hold no memory.
    """
    # The name ends the first line of a mapping in smaps.
    names = re.compile("|".join(f"{re.escape(end)}\n" for end in left_out))
    anonymous = 0
    files = 0
    above = 0
    for pid in pids:
        folder = proc / str(pid)
        try:
            rollup = _read_text(folder / "smaps_rollup")
            resident = _find_kib(rollup, "\nRss:")  # 0 of a zombie
            status = _read_text(folder / "status")
            _, *mappings = names.split(_read_text(folder / "smaps"))
        except (FileNotFoundError, ProcessLookupError):
            resident = 0
        except OSError:
            return None
        if resident:
            of_files = _find_kib(status, "\nRssFile:")
            of_files += _find_kib(status, "\nRssShmem:")
            of_files -= sum(_find_kib(mapping, "\nRss:") for mapping in mappings)
            files = max(files, of_files)
            anonymous += _find_kib(rollup, "\nPss_Anon:")
            above += max(0, _find_kib(status, "\nVmHWM:") - resident)
        elif pid in needed or not (proc / "self/smaps_rollup").exists():
            return None
    now = anonymous + files
    return Footprint(now, now + above) if now else None


def _find_kib(text: str, name: str) -> int:
    """Return the first value with this name in bytes; 0 if there is none."""
    value = text.partition(name)[2].split(None, 1)
    return int(value[0]) * 1024 if value else 0


def cpu_usable(root: Path = Path("/")) -> float:
    """Return the cores that this process may use.

    They are limited by its affinity, and by the quota of its control groups.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = float(len(os.sched_getaffinity(0)))
    else:
        cores = float(os.cpu_count() or 1)
    for group in _find_groups(root):
        # Microseconds in each period.
        quota, _, period = _read_if_present(group / "cpu.max").partition(" ")
        if quota.isdigit():
            cores = min(cores, int(quota) / int(period))
    return cores


def memory_limit(root: Path = Path("/")) -> int | None:
    """Return the bytes that the control groups may use; None if they have no limit."""
    limits = [_read_if_present(group / "memory.max") for group in _find_groups(root)]
    known = [int(limit) for limit in limits if limit.strip().isdigit()]
    return min(known, default=None)


def memory_left(root: Path = Path("/")) -> int | None:
    """Return the bytes that the control groups may still take.

    Return None if they have no limit. Cached file pages that were not used for a while
    count as free, because the kernel frees them first.
    """
    left = []
    for group in _find_groups(root):
        limit = _read_if_present(group / "memory.max").strip()
        used = _read_if_present(group / "memory.current")
        stat = _read_if_present(group / "memory.stat")
        if limit.isdigit() and used:
            cached = stat.partition("\ninactive_file ")[2].partition("\n")[0]
            left.append(int(limit) - int(used) + int(cached or 0))
    return min(left, default=None)


def _find_groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the control groups of this process (proc(5)).

    Its own comes first, then each group above it.
    """
    for line in _read_if_present(root / "proc/self/cgroup").splitlines():
        if line.startswith("0::/"):
            group = PurePosixPath(line.removeprefix("0::/"))
            # Some may be missing: without its own namespace, a container reads the
            # host's path, but sees only its own.
            for path in (group, *group.parents):
                yield root / "sys/fs/cgroup" / path


def _read_if_present(path: Path) -> str:
    try:
        return _read_text(path)
    except OSError:
        return ""


def _read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
