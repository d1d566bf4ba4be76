"""Whether the hashed locks in requirements/ fit the dependencies in pyproject.toml. `scripts/lock` writes the locks."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCKS = {"servers": "servers.txt", "clients": "clients.txt", "dev": "development.txt"}
"""Extra of pyproject.toml → its lock in requirements/."""

_PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+).*\n(?P<comments>(?: +.*\n)*)", re.MULTILINE)


def misfits() -> list[str]:
    """One line for each library that a lock has in no permitted version, or that pyproject.toml does not name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    found = []
    for extra, lock in LOCKS.items():
        pinned = _direct((ROOT / "requirements" / lock).read_text(encoding="utf-8"))
        wanted: dict[str, Requirement] = {canonicalize_name(one.name): one for one in _required(extras, extra)}
        for name in sorted(pinned.keys() | wanted.keys()):
            if name not in wanted:
                found.append(f"requirements/{lock} has {name}, which pyproject.toml does not name")
            elif name not in pinned:
                found.append(f"requirements/{lock} lacks {wanted[name]}")
            elif not all(version in wanted[name].specifier for version in pinned[name]):
                found.append(f"requirements/{lock} has {name} {', '.join(map(str, pinned[name]))}, not {wanted[name]}")
    return found


def _direct(lock: str) -> dict[str, list[Version]]:
    """Library → its versions, which differ by Python, of those that pyproject.toml names itself."""
    found: dict[str, list[Version]] = {}
    for pin in _PIN.finditer(lock):
        if "clientlab (pyproject.toml)" in pin["comments"]:
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
