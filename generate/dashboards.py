"""The JSON of the dashboards, which Grafana loads, from their code in dashboards/source."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType

from dashboards.source import compare, experiment, history, live, servers
from dashboards.source.house import as_json

FOLDER = "dashboards/grafana/dashboards"
_MODULES = {"live": live, "compare": compare, "servers": servers, "experiment": experiment, "history": history}


def names() -> list[str]:
    """The names of all dashboards."""
    return list(_MODULES)


def files() -> dict[str, Callable[[], str]]:
    """Path from the repository's root → the function that returns the file's text."""
    return {f"{FOLDER}/{name}.json": partial(_json_of, module) for name, module in _MODULES.items()}


def _json_of(module: ModuleType) -> str:
    return as_json(module.dashboard())
