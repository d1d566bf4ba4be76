"""Tables of strategies.md and known-limits.md: strategies, clients with their quirks, executors, settings."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from clientlab.cli.listing import client_rows, executor_rows, markdown, strategy_rows
from clientlab.clients.retry_policy import KINDS_OF_SETTINGS, POLICIES
from clientlab.settings import written
from clientlab.strategies import EVERY_CLIENT, EXECUTORS, load, settings_of
from clientlab.strategies.specs import Quirks


def strategy_table() -> str:
    """Every strategy, as `clientlab list --markdown` prints it."""
    return markdown(strategy_rows())


def client_table() -> str:
    """Every client, as `clientlab list clients --markdown` prints it."""
    return markdown(client_rows())


def executor_table() -> str:
    """Every executor, as `clientlab list executors --markdown` prints it."""
    return markdown(executor_rows())


def quirk_table() -> str:
    """Every difference between the libraries that the conformance checks permit, with the clients that have it."""
    clients: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in fields(Quirks):
        for spec in EVERY_CLIENT.values():
            value = getattr(spec.quirks, one.name)
            if value != one.default:
                clients[one.metadata["description"], _shown(value)].append(spec.name)
    return markdown(
        [{"difference": what, "value": value, "clients": ", ".join(names)} for (what, value), names in clients.items()]
    )


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(": ".join(one) if isinstance(one, tuple) else one for one in value)
    return "" if value is True else f"{value:,g}"


class _Setting(NamedTuple):
    name: str
    kind: str
    default: str


def setting_table() -> str:
    """Every setting with its type, its default, and the clients or executors that have it."""
    owners: dict[_Setting, list[str]] = defaultdict(list)
    for setting, owner in (*_of_pools(), *_of_sizes(), *_of_classes(), *_of_policies()):
        owners[setting].append(owner)
    rows: list[dict[str, Any]] = [
        {"setting": f"`?{name}=`", "type": kind, "default": default, "of": ", ".join(names)}
        for (name, kind, default), names in owners.items()
    ]
    return markdown(rows)


def _of_pools() -> Iterator[tuple[_Setting, str]]:
    """The settings of every client or executor with a pool; ``pool=none`` or ``pool=0`` removes the limit."""
    for spec in EVERY_CLIENT.values():
        if spec.policy == "pool" and not spec.program:
            kind = "number or none" if spec.unlimited else "number"
            yield _Setting("pool", kind, "the concurrency"), spec.name
    for executor in EXECUTORS.values():
        if executor.policy == "pool":
            yield _Setting("pool", "number", "the concurrency"), executor.name
    yield _Setting("library_defaults", "true or false", "false"), "every client with a pool"


def _of_sizes() -> Iterator[tuple[_Setting, str]]:
    """The setting that replaces ``-c`` for one executor."""
    for spec in EXECUTORS.values():
        if spec.size:
            yield _Setting(spec.size, "number", "the concurrency"), spec.name


def _of_classes() -> Iterator[tuple[_Setting, str]]:
    """Keyword-only arguments of the classes."""
    places = ((spec.name, spec.import_path) for specs in (EVERY_CLIENT, EXECUTORS) for spec in specs.values())
    for owner, place in places:
        parameters = inspect.signature(load(place)).parameters
        for name, kind in settings_of(place).items():
            yield _Setting(name, _KINDS[kind], _default(name, parameters[name].default)), owner


def _of_policies() -> Iterator[tuple[_Setting, str]]:
    """The settings of retry policies; docs/retries.md has their defaults."""
    for name in KINDS_OF_SETTINGS:
        owners = [kind.name for kind in POLICIES.values() if name in kind.defaults]
        where = ", ".join(owners) if owners else "every strategy that calls a client's `send`"
        yield _Setting(name, _KINDS_OF_POLICIES[name], "–"), f"[retry policies](retries.md): {where}"


_KINDS_OF_POLICIES = {
    "retry": "name or none", "attempts": "number", "backoff": "time", "jitter": "name or none",
    "budget": "share or none", "retry_after": "true or false", "retry_after_max": "time", "methods": "names, or any",
    "statuses": "numbers, or 5xx", "errors": "true or false",
}  # fmt: skip


def _default(name: str, value: Any) -> str:
    if name == "start_method":
        return "fork; on macOS spawn"  # the same on every machine that generates the page
    return "–" if value is None else written(value)


_KINDS = {
    "bool": "true or false",
    "int": "number",
    "int | None": "number or none",
    "float | None": "number or none",
    "str": "name",
}
