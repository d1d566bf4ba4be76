"""The clients of slow tests: one of each library, and the others where every client is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from clientlab.strategies import client_spec, find


def one_of_each_library(names: Iterable[str]) -> list[Any]:
    """Values for a parameter of slow tests: strategies; all but the first of a library are marked as further ones.

    The first keeps its connections, if the library has such a client. A library counts anew with each version of HTTP.
    """
    specs = {name: client_spec(find(name).client) for name in names}
    first: dict[tuple[str, str], str] = {}
    for name in sorted(specs, key=lambda name: specs[name].policy == "per call"):
        first.setdefault((specs[name].distribution, specs[name].http), name)
    kept = set(first.values())
    return [pytest.param(name, marks=[] if name in kept else [pytest.mark.further_client]) for name in specs]
