"""Report plug-in strategies that cannot be loaded, each in two lines; the other strategies are measured."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from clientlab.errors import LabError, PluginError
from clientlab.printable import printable
from clientlab.strategies import check_settings, find


def faults_of(names: Iterable[str]) -> dict[str, PluginError]:
    """Name → error of its plug-in code. Other errors in a name are found by other checks.

    If no strategy is left, prints all errors but the first, and raises the first: there is nothing to measure.
    """
    known = list(dict.fromkeys(names))
    faults = {name: fault for name in known if (fault := _fault(name)) is not None}
    if faults and len(faults) == len(known):
        first, *others = faults.values()
        tell(others)
        raise first
    return faults


def tell(faults: Iterable[PluginError]) -> None:
    """Print errors on standard error."""
    for fault in faults:
        say(fault)


def say(error: LabError) -> None:
    """Print one line; a second one for the error of the plug-in's code."""
    where, _, what = printable(str(error)).partition("\n" if isinstance(error, PluginError) else "\0")
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
