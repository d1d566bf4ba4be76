"""Whether the hashed locks in requirements/ fit the dependencies in pyproject.toml. `scripts/lock` writes the locks."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]

_PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+).*\n(?P<comments>(?: +.*\n)*)", re.MULTILINE)
_DIRECT = ("clientlab (pyproject.toml)", "-r requirements/servers.in")
"""How a lock names the source of a library that no other library requires."""


def misfits() -> list[str]:
    """One line for each library that a lock has in no permitted version, or that pyproject.toml does not name."""
    found = []
    for lock, wanted in _wanted().items():
        pinned = _direct((ROOT / "requirements" / lock).read_text(encoding="utf-8"))
        for name in sorted(pinned.keys() | wanted.keys()):
            if name not in wanted:
                found.append(f"requirements/{lock} has {name}, which pyproject.toml does not name")
            elif name not in pinned:
                found.append(f"requirements/{lock} lacks {wanted[name]}")
            elif not all(version in wanted[name].specifier for version in pinned[name]):
                found.append(f"requirements/{lock} has {name} {', '.join(map(str, pinned[name]))}, not {wanted[name]}")
    return found


def wanted_by(image: str) -> set[str]:
    """The libraries that pyproject.toml names for an image, ``servers`` or ``clients``."""
    return set(_wanted()[f"{image}.txt"])


def _wanted() -> dict[str, dict[str, Requirement]]:
    """Lock in requirements/ → library → what pyproject.toml requires of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    plain = _by_name(map(Requirement, project["dependencies"]))
    clients = plain | _by_name(_required(extras, "all"))
    servers, servers_only = _names("servers.in"), _names("servers-only.in")
    return {
        "servers.txt": {name: one for name, one in plain.items() if name in servers},
        "clients.txt": {name: one for name, one in clients.items() if name not in servers_only},
        "development.txt": clients | _by_name(_required(extras, "dev")),
    }


def _names(file: str) -> set[str]:
    """The libraries that a file in requirements/ names, a line each, without versions."""
    lines = (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(line) for line in lines if line and not line.startswith("#")}


def _by_name(requirements: Iterable[Requirement]) -> dict[str, Requirement]:
    return {canonicalize_name(one.name): one for one in requirements}


def _direct(lock: str) -> dict[str, list[Version]]:
    """Library → its versions, which differ by Python, of those that pyproject.toml names itself."""
    found: dict[str, list[Version]] = {}
    for pin in _PIN.finditer(lock):
        if any(source in pin["comments"] for source in _DIRECT):
            found.setdefault(canonicalize_name(pin["name"]), []).append(Version(pin["version"]))
    return found


def _required(extras: dict[str, list[str]], extra: str) -> Iterator[Requirement]:
    """The requirements of an extra, and of the project's other extras that it names."""
    for requirement in map(Requirement, extras[extra]):
        if requirement.name == "clientlab":
            for inner in requirement.extras:
                yield from _required(extras, inner)
        else:
            yield requirement


if __name__ == "__main__":
    lines = misfits()
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.exit(bool(lines))
