"""Libraries that are compiled into measured ones. Imports the standard library only: environments run it, too."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


def compiled_into(distributions: Iterable[str]) -> dict[str, str]:
    """Distribution → the libraries compiled into it, as it reports them: libcurl, its TLS library and its features."""
    found: dict[str, str] = {}
    for name in sorted({re.sub(r"[-_.]+", "-", name).lower() for name in distributions} & _REPORTS.keys()):
        try:
            found[name] = _REPORTS[name]()
        except ImportError:  # not installed: its strategies are left out of the run
            continue
    return found


def _pycurl() -> str:
    pycurl = importlib.import_module("pycurl")
    bits: int = pycurl.version_info()[4]
    flags = {
        name.removeprefix("VERSION_"): getattr(pycurl, name) for name in dir(pycurl) if name.startswith("VERSION_")
    }
    return f"{pycurl.version}; {' '.join(sorted(name for name, bit in flags.items() if bits & bit))}"


def _curl_cffi() -> str:
    return str(importlib.import_module("curl_cffi").__curl_version__)


_REPORTS: Mapping[str, Callable[[], str]] = {"pycurl": _pycurl, "curl-cffi": _curl_cffi}
"""Distributions that bundle their libraries and can tell the versions. pyreqwest bundles its own and tells none."""


def dependencies_of(distributions: Iterable[str]) -> dict[str, str]:
    """Name → version of every installed distribution that these require, directly or not; they themselves left out.

    Requirements count where their markers hold for this Python and this system. Those of an extra count where a
    requirement on the way names the extra.
    """
    roots = {canonicalize_name(name) for name in distributions}
    due: deque[tuple[str, frozenset[str]]] = deque((name, frozenset()) for name in sorted(roots))
    seen, versions = set(due), dict[str, str]()
    while due:
        name, extras = due.popleft()
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name not in roots:
            versions[name] = found.version
        for requirement in _required(found, extras):
            one = canonicalize_name(requirement.name), frozenset(requirement.extras)
            if one not in seen:
                seen.add(one)
                due.append(one)
    return dict(sorted(versions.items()))


def _required(distribution: importlib.metadata.Distribution, extras: frozenset[str]) -> list[Requirement]:
    """The requirements of a distribution whose markers hold, without extras or with one of these."""
    environments = [{"extra": extra} for extra in ("", *extras)]
    found = []
    for line in distribution.requires or ():
        try:
            requirement = Requirement(line)
        except InvalidRequirement:  # old metadata, which installers skip as well
            continue
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            found.append(requirement)
    return found
