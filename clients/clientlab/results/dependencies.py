"""Versions below a measured library: the distributions that it requires."""

from __future__ import annotations

import importlib.metadata
from collections import deque
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


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
