"""What decides how fast a machine runs a trial, besides its CPU: governor, SMT, virtualisation, and Python's build."""

from __future__ import annotations

import platform
import subprocess
import sysconfig
from pathlib import Path

from clientlab.measuring import usage

_ROOT = Path("/")
_PATIENCE = 10.0
_REPOSITORY = Path(__file__).parents[3]
_CODE = ("clients", "servers", "requirements", "pyproject.toml")
"""What a measurement depends on. Pages and run files that were written since do not change it."""
_FREE_THREADED = "free-threading"
_CONTAINER_MARKS = (".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io")


def cpu_governor(root: Path = _ROOT) -> str | None:
    """Return the governor of the cores' frequency, several if they differ, or None if the system shows none."""
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return ", ".join(sorted({text for path in paths if (text := _text(path))})) or None


def smt(root: Path = _ROOT) -> bool | None:
    """Tell whether two threads share a core. None if the system does not show it."""
    return {"0": False, "1": True}.get(_text(root / "sys/devices/system/cpu/smt/active") or "")


def virtualization(root: Path = _ROOT) -> str | None:
    """Return ``none``, or what is between the lab and the hardware, as ``virtual machine (QEMU), container``.

    A hypervisor shows by the flag of that name in /proc/cpuinfo, which only x86 has, or by the machine's name. Return
    None if neither is readable.
    """
    info = _text(root / "proc/cpuinfo") or ""
    vendor = _text(root / "sys/class/dmi/id/sys_vendor")
    flags = next((line.split() for line in info.splitlines() if line.startswith("flags")), None)
    if flags is None and vendor is None:
        return None
    found = []
    if flags is not None and "hypervisor" in flags:
        found.append(f"virtual machine ({vendor})" if vendor else "virtual machine")
    if any((root / mark).exists() for mark in _CONTAINER_MARKS):
        found.append("container")
    return ", ".join(found) or "none"


def python_build() -> str:
    """Return how this Python was built: GIL, compiler, optimisation, and PGO and LTO by its configure options.

    A library without support for free threading switches the GIL on when it is imported, in the trial too.
    """
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    gil = f"{_FREE_THREADED}, GIL {'on' if usage.has_gil() else 'off'}"
    parts = [
        gil if sysconfig.get_config_var("Py_GIL_DISABLED") else "GIL",
        platform.python_compiler(),
        next((flag for flag in (sysconfig.get_config_var("OPT") or "").split() if flag.startswith("-O")), ""),
        f"PGO {'on' if '--enable-optimizations' in options else 'off'}",
        f"LTO {'on' if '--with-lto' in options else 'off'}",
        "debug build" if sysconfig.get_config_var("Py_DEBUG") else "",
    ]
    return ", ".join(filter(None, parts))


def is_free_threaded(build: str | None) -> bool:
    """Tell whether a Python was built for free threading, by the text of `python_build`."""
    return (build or "").startswith(_FREE_THREADED)


def lab_commit(repository: Path = _REPOSITORY) -> str | None:
    """Return the commit of the lab's clone, and whether code differs from it, or None without a clone or git."""
    changed = changed_code(repository)
    commit = None if changed is None else _git(repository, "rev-parse", "--short=12", "HEAD")
    return commit and f"{commit}{', changed' if changed else ''}"


def changed_code(repository: Path = _REPOSITORY) -> list[str] | None:
    """Return what measures and differs from the clone's commit, as `git status` writes it. None as above."""
    found = _git(repository, "status", "--porcelain", "--", *_CODE) if (repository / ".git").exists() else None
    return None if found is None else found.splitlines()


def _git(repository: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(repository), *arguments]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if ended.returncode else ended.stdout.strip()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
