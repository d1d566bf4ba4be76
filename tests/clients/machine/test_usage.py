"""Memory of processes, and the limits of their control groups."""

from __future__ import annotations

import os

import pytest

from clientlab.machine.usage import (
    Footprint,
    cpu_usable,
    memory_left,
    memory_limit,
    read_footprint,
)
from clientlab.trial.sample_log import MAPPED_FILES

KIB = 1 << 10
MIB = 1 << 20
LOG = (
    "7f00-7f01 rw-s 00000000 08:01 7   /tmp/trial-0000/trial.samples\nSize:  99"
    " kB\nRss:   {} kB\nPss:   9 kB\n"
)


def write_process(
    proc, pid: int, anonymous: int, files: int, peak: int, logs: tuple[int, ...] = ()
) -> None:
    """Write the files of a process of 9,000 KiB.

    `logs`: resident size of its mappings of a sample log.
    """
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "smaps_rollup").write_text(
        "5555-7fff ---p 00000000 00:00 0    [rollup]\nRss:   9000 kB\nPss:    1"
        f" kB\nPss_Anon:   {anonymous} kB\n"
    )
    sizes = (
        f"VmHWM:\t  {peak} kB\nVmRSS:\t 9000 kB\nRssFile:\t {files} kB\nRssShmem:\t 0"
        " kB\n"
    )
    (folder / "status").write_text(f"Name:\tx\n{sizes}")
    mapped = "".join(map(LOG.format, logs))
    (folder / "smaps").write_text(
        f"55-56 r-xp 0 08:01 3   /lib/libc.so\nRss:  7 kB\nPss:   5 kB\n{mapped}"
    )


def test_shared_pages_count_once_and_the_log_does_not(tmp_path):
    """Pages of files are shared with other arms, so they count as in the process that
    has most of them.
    """
    write_process(tmp_path, 7, anonymous=2000, files=6301, peak=9500, logs=(150, 151))
    write_process(tmp_path, 8, anonymous=1000, files=5000, peak=8999)
    expected = Footprint((2000 + 1000 + 6000) * KIB, (2000 + 1000 + 6000 + 500) * KIB)
    assert read_footprint([7, 8], {7, 8}, tmp_path, left_out=MAPPED_FILES) == expected
    assert (
        read_footprint([7, 9], {7, 9}, tmp_path, left_out=MAPPED_FILES) is None
    )  # a process that is needed has ended


def write_groups(root, group: str, files: dict[str, str]):
    """Return a file system in which the process is in this group, with files below
    /sys/fs/cgroup.
    """
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"0::{group}\n")
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_lowest_limit_on_the_path_counts(tmp_path, monkeypatch):
    """It may be that of a group above. A group beside the path does not count."""
    files = {
        "a/cpu.max": "150000 100000",
        "a/b/cpu.max": "max 100000",
        "a/b/c/cpu.max": "400000 100000",
        "z/cpu.max": "1000 100000",
        "a/memory.max": str(900 * MIB),
        "a/b/memory.max": str(512 * MIB),
        "a/b/c/memory.max": "max",
    }
    system = write_groups(tmp_path, "/a/b/c", files)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert cpu_usable(system) == 1.5
    assert memory_limit(system) == 512 * MIB


@pytest.mark.parametrize("group", ["/", "/docker/abc", "/../../other"])
def test_a_container_sees_its_own_group_as_the_root(group, tmp_path):
    system = write_groups(
        tmp_path, group, {"cpu.max": "25000 100000", "memory.max": str(64 * MIB)}
    )
    assert cpu_usable(system) == 0.25
    assert memory_limit(system) == 64 * MIB


def test_memory_left_is_the_least_of_all_groups_and_counts_cached_files_as_free(
    tmp_path,
):
    files = {
        "a/memory.max": str(900 * MIB),
        "a/memory.current": str(800 * MIB),
        "a/memory.stat": f"anon 5\ninactive_file {50 * MIB}\n",
        "a/b/memory.max": "max",
        "a/b/memory.current": str(800 * MIB),
    }
    assert memory_left(write_groups(tmp_path, "/a/b", files)) == 150 * MIB
    assert memory_left(tmp_path / "none") is None
