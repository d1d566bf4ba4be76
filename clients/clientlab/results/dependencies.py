"""Versions below a measured library: the distributions that it requires."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


def dependencies_of(distributions: Iterable[str]) -> dict[str, str]:
    """Return name → version of every installed distribution that these require, directly or not, without themselves.

    Requirements count if their markers hold for this Python and this system. Those of an extra count if a requirement
    on the way names the extra.
    """
    roots = {canonicalize_name(name) for name in distributions}
    due: list[tuple[str, frozenset[str]]] = [(name, frozenset()) for name in roots]
    seen, versions = set(due), dict[str, str]()
    for name, extras in due:  # which grows meanwhile
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name not in roots:
            versions[name] = found.version
        environments = [{"extra": extra} for extra in ("", *extras)]
        for line in found.requires or ():
            try:
                requirement = Requirement(line)
            except InvalidRequirement:  # old metadata, which installers skip as well
                continue
            one = canonicalize_name(requirement.name), frozenset(requirement.extras)
            marker = requirement.marker
            if one not in seen and (marker is None or any(map(marker.evaluate, environments))):
                seen.add(one)
                due.append(one)
    return dict(sorted(versions.items()))
