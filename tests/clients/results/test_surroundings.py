"""Where a run was measured."""

from __future__ import annotations

import platform
import subprocess

import psutil
import pytest

from clientlab.results import surroundings as machine
from clientlab.results.surroundings import surroundings


@pytest.mark.real
def test_surroundings_are_those_of_this_machine():
    here = surroundings(["requests"], {"flask": "gunicorn"})
    assert here.host == platform.node()
    assert here.kernel == platform.release()
    assert here.architecture == platform.machine()
    assert 0 < here.cpu_usable <= here.cpu_count == psutil.cpu_count()
    assert here.memory_bytes == pytest.approx(psutil.virtual_memory().total, rel=1e-3)
    assert {"requests", "flask"} <= here.libraries.keys()
    assert "urllib3" in here.dependencies
    assert here.cpu_model


def test_a_governor_smt_and_a_hypervisor_are_read_where_the_system_shows_them(tmp_path):
    assert (
        machine.cpu_governor(tmp_path),
        machine.smt(tmp_path),
        machine.virtualization(tmp_path),
    ) == (None,) * 3
    files = {
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/smt/active": "1\n",
        "sys/class/dmi/id/sys_vendor": "QEMU\n",
        "proc/cpuinfo": "model name : x\nflags : fpu hypervisor sse\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine.cpu_governor(tmp_path) == "performance, powersave"
    assert machine.smt(tmp_path) is True
    assert machine.virtualization(tmp_path) == "virtual machine (QEMU)"
    (tmp_path / ".dockerenv").touch()
    assert machine.virtualization(tmp_path) == "virtual machine (QEMU), container"


@pytest.mark.real
def test_the_labs_commit_is_that_of_its_clone(tmp_path):
    def git(*arguments):
        who = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments],
            check=True,
            capture_output=True,
        )

    assert machine.lab_commit(tmp_path) is machine.changed_code(tmp_path) is None
    git("init")
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "a").write_text("1")
    git("add", "clients")
    git("commit", "-m", "a")
    commit = machine.lab_commit(tmp_path)
    assert len(commit) == 12
    (tmp_path / "page").write_text("written by a measurement")
    assert machine.lab_commit(tmp_path) == commit
    (tmp_path / "clients" / "b").write_text("2")
    assert machine.lab_commit(tmp_path).endswith(", changed")
    assert machine.changed_code(tmp_path) == ["?? clients/b"]
