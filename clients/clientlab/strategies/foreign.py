"""The strategies that are not listed: a user's class alone, and those of installed packages."""

from __future__ import annotations

import re
from dataclasses import replace

from clientlab.errors import PluginError
from clientlab.strategies import plugins, user_file
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.pairs import STRATEGIES, Strategy
from clientlab.strategies.rows import ClientRow

_NAMES = re.compile(r"(?P<client>.+?\.py:\w+|[^@]*)(?:@(?P<executor>.+))?")


def parts(name: str) -> tuple[str, str]:
    """Client and executor of ``client@executor``; no executor where there is none. A path may hold an @."""
    client, _, executor = name.partition("@")
    if client in CLIENTS or client in plugins.installed().clients:
        return client, executor
    found = _NAMES.fullmatch(name)
    return (found["client"], found["executor"] or "") if found else (name, "")


def alone(name: str) -> Strategy | None:
    """A strategy from elsewhere by its one name; None where there is none. Raises PluginError."""
    if user_file.is_place(name):
        place = user_file.absolute(name)
        if plugins.is_executor(user_file.load(place)):
            client = {"blocking": "requests-session", "asyncio": "aiohttp"}[plugins.executor_row(place).needs]
            raise PluginError(f"strategy {name!r} is an executor, and runs a client; write {client}@{name}")
        return _one_by_one(plugins.client_row(place), name, "file")
    if name in plugins.installed().faults:
        raise plugins.installed().faults[name]
    return of_packages().get(name)


def of_packages() -> dict[str, Strategy]:
    """Strategies that entry points bring, each client of theirs alone among them; their source is the package."""
    found = plugins.installed()
    strategies = {name: _one_by_one(row, name, found.sources[name]) for name, row in found.clients.items()}
    for name, other in found.others.items():
        if isinstance(other, Strategy) and name not in STRATEGIES:
            strategies[name] = replace(other, source=found.sources[name])
    return strategies


def faults() -> list[PluginError]:
    """What is wrong with entry points that bring nothing."""
    found = plugins.installed()
    brought = of_packages()
    strange = [
        PluginError(f"strategy {name!r} of {found.sources[name]}: neither a class, a row nor a strategy of a new name")
        for name in found.others
        if name not in brought
    ]
    return [*found.faults.values(), *strange]


def _one_by_one(row: ClientRow, name: str, source: str) -> Strategy:
    return Strategy(name, row.name, "serial" if row.kind == "blocking" else "await", 1, source)
