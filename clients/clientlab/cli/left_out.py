"""Strategies of a user's code that can't be loaded: each is told in its two lines, and the others go on."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from clientlab.errors import LabError, PluginError
from clientlab.strategies import check_settings, find


def faults_of(names: Iterable[str]) -> dict[str, PluginError]:
    """Name → what is wrong with its code; whatever else is wrong with a name is for others to find.

    Where no strategy is left, all but the first are told here, and that one is raised: nothing is to be measured.
    """
    known = list(dict.fromkeys(names))
    faults = {name: fault for name in known if (fault := _fault(name)) is not None}
    if faults and len(faults) == len(known):
        first, *others = faults.values()
        tell(others)
        raise first
    return faults


def tell(faults: Iterable[PluginError]) -> None:
    """Each in its lines, on standard error."""
    for fault in faults:
        say(fault)


def say(error: LabError) -> None:
    """One line; a second one where code that is not the lab's has an error of its own."""
    where, _, what = str(error).partition("\n" if isinstance(error, PluginError) else "\0")
    print(f"clientlab: {' '.join(where.split())}", file=sys.stderr)  # noqa: T201
    if what:
        print(f"  {' '.join(what.split())}", file=sys.stderr)  # noqa: T201


def _fault(name: str) -> PluginError | None:
    try:
        check_settings(find(name))
    except PluginError as fault:
        return fault
    except LabError:
        return None
    return None
