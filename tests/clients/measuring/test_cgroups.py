"""Limits of control groups: the least on the path, of both versions, and of what a container sees."""

from __future__ import annotations

import pytest

from clientlab.measuring.cgroups import cpu_quota, memory_left, memory_limit

MIB = 1 << 20
UNIFIED = "30 23 0:26 {top} /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"


def a_system(root, groups: str, mounts: str, files: dict[str, str]):
    """A file system with these groups of the process, mounts, and files below /sys/fs/cgroup."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    (root / "proc/self/mountinfo").write_text(mounts)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_least_limit_on_the_path_of_version_2_counts(tmp_path):
    """That of a group above; a group beside the path does not count."""
    system = a_system(
        tmp_path, "0::/a/b/c\n", UNIFIED.format(top="/"),
        {"a/cpu.max": "150000 100000", "a/b/cpu.max": "max 100000", "a/b/c/cpu.max": "400000 100000",
         "z/cpu.max": "1000 100000", "a/memory.max": str(900 * MIB), "a/b/memory.max": str(512 * MIB),
         "a/b/c/memory.max": "max"},
    )  # fmt: skip
    assert cpu_quota(system) == 1.5
    assert memory_limit(system) == 512 * MIB


@pytest.mark.parametrize(
    ("groups", "top", "where"),
    [("0::/\n", "/", ""), ("0::/docker/abc\n", "/docker/abc", ""), ("0::/../../other\n", "/", ""),
     ("0::/docker/abc/inner\n", "/docker/abc", "inner/")],
)  # fmt: skip
def test_a_container_sees_its_own_group_as_the_root_of_the_mount(groups, top, where, tmp_path):
    files = {f"{where}cpu.max": "25000 100000", f"{where}memory.max": str(64 * MIB)}
    system = a_system(tmp_path, groups, UNIFIED.format(top=top), files)
    assert (cpu_quota(system), memory_limit(system)) == (0.25, 64 * MIB)


def test_memory_left_is_the_least_of_all_groups_and_counts_cached_files_as_free(tmp_path):
    system = a_system(
        tmp_path, "0::/a/b\n", UNIFIED.format(top="/"),
        {"a/memory.max": str(900 * MIB), "a/memory.current": str(800 * MIB),
         "a/memory.stat": f"anon 5\ninactive_file {50 * MIB}\n",
         "a/b/memory.max": "max", "a/b/memory.current": str(800 * MIB)},
    )  # fmt: skip
    assert memory_left(system) == 150 * MIB
    assert memory_left(tmp_path / "none") is None
