"""Installed distributions: what they require, and the modules that they do not.

Environments import this module too, so it loads `packaging` only when it is needed.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Iterable


def dependencies_of(distributions: Iterable[str]) -> dict[str, str]:
    """Return the versions of what these distributions require, directly or not.

    A requirement counts if it is installed, and if its marker holds for this Python and
    system, or the requirement that led here names the extra it belongs to.
    """
    # See the module's docstring.
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - likewise

    roots = {canonicalize_name(name) for name in distributions}
    queue: list[tuple[str, frozenset[str]]] = [(name, frozenset()) for name in roots]
    versions: dict[str, str] = {}
    for name, extras in queue:  # it grows during the loop
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name not in roots:
            versions[name] = distribution.version
        environments = [{"extra": extra} for extra in ("", *extras)]
        for line in distribution.requires or ():
            try:
                requirement = Requirement(line)
            except InvalidRequirement:  # old metadata, which installers skip as well
                continue
            marker = requirement.marker
            if marker is not None and not any(map(marker.evaluate, environments)):
                continue
            required = canonicalize_name(requirement.name)
            entry = (required, frozenset(requirement.extras))
            if entry not in queue:
                queue.append(entry)
    return dict(sorted(versions.items()))


@functools.cache
def unrelated_modules(*distributions: str) -> list[str]:
    """Return the installed top-level modules that these distributions do not require.

    The lab's own module is not among them, nor are those of editable installations.
    """
    # See the module's docstring.
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    names = ["clientlab", *distributions, *dependencies_of(distributions)]
    required = {canonicalize_name(name) for name in names}
    unrelated = []
    for module, owners in importlib.metadata.packages_distributions().items():
        if required.isdisjoint(map(canonicalize_name, owners)):
            unrelated.append(module)
    return unrelated
