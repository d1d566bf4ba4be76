"""The rows of `clientlab list`."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from clientlab import strategies, units
from clientlab.clients.client_interface import ClientSpec, Quirks
from clientlab.clients.retrying import RETRY_SETTINGS
from clientlab.executors.executor_interface import ExecutorSpec
from clientlab.experiments.file import articles, bundled, read_plan
from clientlab.judging.cautions import RULES
from clientlab.results.figures import FIGURES
from clientlab.running.schedule import estimate_seconds
from clientlab.settings import write_setting
from clientlab.strategies import CLIENTS, EXECUTORS, strategies_of_packages

Rows = list[dict[str, Any]]

_SETTING_TYPES = {
    "bool": "true or false",
    "int": "number",
    "int | None": "number or none",
    "float | None": "number or none",
    "str": "name",
}
"""Annotation of a setting → what a user writes."""


def rows(what: str, *, here: bool) -> Rows:
    """Return the rows of a list. `here`: also say what this machine lacks."""
    if what == "strategies":
        return strategy_rows(here=here)
    return {
        "clients": client_rows,
        "executors": executor_rows,
        "experiments": _experiment_rows,
        "figures": _figure_rows,
        "cautions": _caution_rows,
        "settings": _setting_rows,
    }[what]()


def strategy_rows(*, here: bool = False) -> Rows:
    """Return a row per listed strategy.

    `source` names the experiments of published articles that use it.
    """
    measured_by, found = articles(), []
    for strategy in (*strategies.STRATEGIES.values(), *strategies_of_packages()):
        reason = strategies.unavailable(strategy) if here else None
        notes = [f"unavailable: {reason}"] if reason else []
        notes += (
            [f"{strategy.wrong}; fixed by {strategy.mended_by}"]
            if strategy.wrong
            else []
        )
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
    """Return a row per client.

    Its quirks are where it behaves differently from other libraries.
    """
    return [
        {
            "name": spec.name,
            "kind": spec.kind,
            "http": f"{spec.http}, no TLS" if spec.program else spec.http,
            "connections": spec.policy,
            "retry=own": spec.own_retries or units.UNKNOWN,
            "call timeout by": spec.call_timeout_by,
            "description": spec.description,
            "quirks": "; ".join(_describe_quirks(spec.quirks)),
        }
        for spec in (
            *CLIENTS.values(),
            *(one for one in strategies.of_packages() if isinstance(one, ClientSpec)),
        )
    ]


def _describe_quirks(quirks: Quirks) -> Iterator[str]:
    for one in fields(quirks):
        value = getattr(quirks, one.name)
        if value is True:
            yield one.metadata["description"]
        elif isinstance(value, tuple) and value:
            values = (
                ": ".join(item) if isinstance(item, tuple) else item for item in value
            )
            yield f"{one.metadata['description']} ({', '.join(values)})"
        elif value != one.default:
            yield f"{one.metadata['description']}: {value:,g}"


def executor_rows() -> Rows:
    """Return a row per executor."""
    specs = (
        *EXECUTORS.values(),
        *(one for one in strategies.of_packages() if isinstance(one, ExecutorSpec)),
    )
    return [
        {"name": spec.name, "runs": spec.needs, "description": spec.description}
        for spec in specs
    ]


def _figure_rows() -> Rows:
    return [
        {
            "name": figure.key,
            "full name": figure.name,
            "meaning": figure.description,
            "unit": figure.unit,
            "better": "less" if figure.less_is_better else "more",
            "column": figure.heading or units.UNKNOWN,
        }
        for figure in FIGURES
    ]


def _caution_rows() -> Rows:
    """Return a row per caution. Those with "!" mark their arms in tables."""
    return [
        {
            "name": rule.kind,
            "in reports": f"{rule.phrase} !" if rule.marks else rule.phrase,
            "what it means for your decision": rule.meaning,
            "advice": rule.advice,
        }
        for rule in RULES
    ]


def _setting_rows() -> Rows:
    """Return a row per name, type and default of a setting.

    This loads the installed libraries.
    """
    owners: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for client in CLIENTS.values():
        if client.policy == "pool" and not client.program:
            owners[
                "pool",
                "number or none" if client.unlimited else "number",
                "the concurrency",
            ].append(client.name)
    for executor in EXECUTORS.values():
        for name in filter(
            None, ("pool" if executor.policy == "pool" else "", executor.size)
        ):
            owners[name, "number", "the concurrency"].append(executor.name)
    owners["library_defaults", "true or false", "false"].append(
        "every client with a pool"
    )
    for name, retry in RETRY_SETTINGS.items():
        owners[name, retry.written, retry.default].append("every client but programs")
    for owner, place in (
        (spec.name, spec.import_path)
        for specs in (CLIENTS, EXECUTORS)
        for spec in specs.values()
    ):
        try:
            parameters = inspect.signature(strategies.load(place)).parameters
        except ModuleNotFoundError:
            continue  # the library is not installed
        for name, kind in strategies.list_settings(place).items():
            value = parameters[name].default
            default = units.UNKNOWN if value is None else write_setting(value)
            if name == "start_method":
                # The same in the documentation, wherever it is generated.
                default = "fork; on macOS spawn"
            owners[name, _SETTING_TYPES[kind], default].append(owner)
    return [
        {"name": name, "type": kind, "default": default, "of": ", ".join(names)}
        for (name, kind, default), names in owners.items()
    ]


def _experiment_rows() -> Rows:
    return [
        {
            "name": name,
            "arms": len(plan.arms),
            "claims": len(plan.claims),
            "rounds": plan.rounds,
            "takes about": units.minutes(estimate_seconds(plan)),
            "quick": units.minutes(estimate_seconds(read_plan(path, quick=True))),
            "question": plan.question,
            "source": f"{one.authors}, {one.date}: {one.title}"
            if (one := plan.source)
            else units.UNKNOWN,
        }
        for name, path in bundled().items()
        for plan in [read_plan(path)]
    ]


def markdown(rows: Rows) -> str:
    """Return rows as a Markdown table.

    The first column is code; bars and angle brackets in other cells are escaped.
    """
    escapes = str.maketrans({"|": r"\|", "<": "&lt;", "*": r"\*"})
    headings = [
        key for key in rows[0] if key not in {"quirks", "unit", "advice"}
    ]  # too much for a page
    lines = [headings, ["---"] * len(headings)]
    lines += [
        [
            f"`{row[headings[0]]}`",
            *(str(row[key]).translate(escapes) for key in headings[1:]),
        ]
        for row in rows
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
