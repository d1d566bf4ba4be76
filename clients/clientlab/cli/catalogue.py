"""The rows of `clientlab list`."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from clientlab import strategies, units
from clientlab.experiments.file import articles, bundled, has_quick, read_plan
from clientlab.results.figures import FIGURES
from clientlab.running.due import seconds_of
from clientlab.settings import written
from clientlab.strategies import plugins
from clientlab.strategies.registry import CLIENTS, EXECUTORS, ClientSpec, ExecutorSpec, Quirks
from clientlab.strategies.resolve import strategies_of_packages

Rows = list[dict[str, Any]]

_NOT_IN_MARKDOWN = ("quirks", "unit")
"""Columns that repeat themselves too often for a page; the unit is also in the full name of a figure."""

_SETTING_TYPES = {
    "bool": "true or false",
    "int": "number",
    "int | None": "number or none",
    "float | None": "number or none",
    "str": "name",
}
"""Annotation of a setting → what a user writes."""


def rows(what: str, *, here: bool) -> Rows:
    """Return the rows of a list. `here`: say what this machine lacks."""
    if what == "strategies":
        return strategy_rows(here=here)
    lists: dict[str, Callable[[], Rows]] = {
        "clients": client_rows,
        "executors": executor_rows,
        "experiments": experiment_rows,
        "figures": figure_rows,
        "settings": setting_rows,
    }
    return lists[what]()


def strategy_rows(*, here: bool = False) -> Rows:
    """Return a row for every listed strategy. `source` names the experiments of the articles that use it."""
    measured_by, found = articles(), []
    for strategy in (*strategies.STRATEGIES.values(), *strategies_of_packages()):
        reason = strategies.unavailable(strategy) if here else None
        notes = [f"unavailable: {reason}"] if reason else []
        notes += [f"{strategy.wrong}; fixed by {strategy.mended_by}"] if strategy.wrong else []
        row = {
            "name": strategy.name,
            "client": strategy.client,
            "executor": strategy.executor,
            "concurrency": strategy.concurrency,
            "connections": strategy.policy,
            "source": ", ".join(measured_by.get(strategy.name, [strategy.source])),
            "note": "; ".join(notes),
        }
        found.append(row)
    return found


def client_rows() -> Rows:
    """Return a row for every client, with the behaviour that differs from other libraries as its quirks."""
    return [
        {
            "name": spec.name,
            "kind": spec.kind,
            "http": f"{spec.http}, no TLS" if spec.program else spec.http,
            "connections": spec.policy,
            "description": spec.description,
            "quirks": "; ".join(_quirks_of(spec.quirks)),
        }
        for spec in (*CLIENTS.values(), *(one for one in plugins.of_packages() if isinstance(one, ClientSpec)))
    ]


def _quirks_of(quirks: Quirks) -> Iterator[str]:
    for one in fields(quirks):
        value = getattr(quirks, one.name)
        if value is True:
            yield one.metadata["description"]
        elif isinstance(value, tuple) and value:
            values = (": ".join(item) if isinstance(item, tuple) else item for item in value)
            yield f"{one.metadata['description']} ({', '.join(values)})"
        elif value != one.default:
            yield f"{one.metadata['description']}: {value:,g}"


def executor_rows() -> Rows:
    """Return a row for every executor."""
    specs = (*EXECUTORS.values(), *(one for one in plugins.of_packages() if isinstance(one, ExecutorSpec)))
    return [{"name": spec.name, "runs": spec.needs, "description": spec.description} for spec in specs]


def figure_rows() -> Rows:
    """Return a row for every figure. Its key and its full name are accepted everywhere."""
    return [
        {
            "name": figure.key,
            "full name": figure.name,
            "meaning": figure.description,
            "unit": figure.unit,
            "better": "less" if figure.less_is_better else "more",
            "column": units.UNKNOWN if figure.column is None else figure.column.heading,
        }
        for figure in FIGURES
    ]


def setting_rows() -> Rows:
    """Return a row for every setting of strategies with equal type and default. Loads the installed libraries."""
    owners: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for client in CLIENTS.values():
        if client.policy == "pool" and not client.program:
            owners["pool", "number or none" if client.unlimited else "number", "the concurrency"].append(client.name)
    for executor in EXECUTORS.values():
        for name in filter(None, ("pool" if executor.policy == "pool" else "", executor.size)):
            owners[name, "number", "the concurrency"].append(executor.name)
    owners["library_defaults", "true or false", "false"].append("every client with a pool")
    for owner, place in ((spec.name, spec.import_path) for specs in (CLIENTS, EXECUTORS) for spec in specs.values()):
        try:
            parameters = inspect.signature(strategies.load(place)).parameters
        except ModuleNotFoundError:
            continue  # the library is not installed
        for name, kind in strategies.settings_of(place).items():
            value = parameters[name].default
            default = units.UNKNOWN if value is None else written(value)
            if name == "start_method":
                default = "fork; on macOS spawn"  # the same in the documentation, wherever it is generated
            owners[name, _SETTING_TYPES[kind], default].append(owner)
    return [
        {"name": name, "type": kind, "default": default, "of": ", ".join(names)}
        for (name, kind, default), names in owners.items()
    ]


def experiment_rows() -> Rows:
    """Return a row for every bundled experiment. Times are estimates, for the full and the quick form."""
    found = []
    for name, path in bundled().items():
        plan = read_plan(path)
        quick = units.minutes(seconds_of(read_plan(path, quick=True))) if has_quick(path) else units.UNKNOWN
        source = plan.source
        row = {
            "name": name,
            "arms": len(plan.arms),
            "claims": len(plan.claims),
            "rounds": plan.rounds,
            "takes about": units.minutes(seconds_of(plan)),
            "quick": quick,
            "question": plan.question,
            "source": f"{source.authors}, {source.date}: {source.title}" if source else units.UNKNOWN,
        }
        found.append(row)
    return found


def markdown(rows: Rows) -> str:
    """Return rows as a Markdown table. Names are code; bars and angle brackets in other cells are escaped."""
    escaped = str.maketrans({"|": r"\|", "<": "&lt;", "*": r"\*"})
    headings = [key for key in rows[0] if key not in _NOT_IN_MARKDOWN]
    lines = [headings, ["---"] * len(headings)]
    lines += [[f"`{row['name']}`", *(str(row[key]).translate(escaped) for key in headings[1:])] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
