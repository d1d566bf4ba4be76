"""`clientlab list` and `clientlab init`: what can be measured, and an experiment file to start from."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from clientlab import units
from clientlab.cli.terminal import console
from clientlab.errors import LabError
from clientlab.experiments.experiment import MOST_CHARACTERS, NAME
from clientlab.experiments.file import articles, bundled, has_quick, read_plan
from clientlab.printable import printable
from clientlab.results.figures import FIGURES
from clientlab.running.due import seconds_of
from clientlab.settings import written
from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES, known, load, plugins, resolve, settings_of, unavailable
from clientlab.strategies.specs import Quirks

Rows = list[dict[str, Any]]
_DEFAULT = Path("experiment.toml")


def strategy_rows() -> Rows:
    """Return a row for every listed strategy. `source` names the experiments of the articles that use it."""
    measured_by = articles()
    return [
        {
            "name": strategy.name,
            "client": strategy.client,
            "executor": strategy.executor,
            "concurrency": strategy.concurrency,
            "connections": strategy.policy,
            "source": ", ".join(measured_by.get(strategy.name, [strategy.source])),
            "note": f"{strategy.wrong}; fixed by {strategy.mended_by}" if strategy.wrong else "",
        }
        for strategy in (*STRATEGIES.values(), *resolve.of_packages().values())
    ]


def strategy_rows_here() -> Rows:
    """Return `strategy_rows`, with the reason in the note if a strategy is unavailable on this machine."""
    rows = strategy_rows()
    for row, strategy in zip(rows, (*STRATEGIES.values(), *resolve.of_packages().values()), strict=True):
        if reason := unavailable(strategy):
            row["note"] = "; ".join(filter(None, (f"unavailable: {reason}", row["note"])))
    return rows


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
        for spec in (*CLIENTS.values(), *known.packages().clients.values())
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
    rows = (*EXECUTORS.values(), *known.packages().executors.values())
    return [{"name": spec.name, "runs": spec.needs, "description": spec.description} for spec in rows]


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
    for setting, owner in _settings():
        owners[setting].append(owner)
    return [
        {"name": name, "type": kind, "default": default, "of": ", ".join(names)}
        for (name, kind, default), names in owners.items()
    ]


def _settings() -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield name, type and default of a setting, and the client or executor that has it."""
    for client in CLIENTS.values():
        if client.policy == "pool" and not client.program:
            yield ("pool", "number or none" if client.unlimited else "number", "the concurrency"), client.name
    for executor in EXECUTORS.values():
        for name in filter(None, ("pool" if executor.policy == "pool" else "", executor.size)):
            yield (name, "number", "the concurrency"), executor.name
    yield ("library_defaults", "true or false", "false"), "every client with a pool"
    places = ((spec.name, spec.import_path) for specs in (CLIENTS, EXECUTORS) for spec in specs.values())
    for owner, place in places:
        try:
            parameters = inspect.signature(load(place)).parameters
        except ModuleNotFoundError:
            continue  # the library is not installed
        for name, kind in settings_of(place).items():
            yield (name, _SETTING_TYPES[kind], _default(name, parameters[name].default)), owner


def _default(name: str, value: Any) -> str:
    if name == "start_method":
        return "fork; on macOS spawn"  # the same in the documentation, wherever it is generated
    return units.UNKNOWN if value is None else written(value)


_SETTING_TYPES = {
    "bool": "true or false",
    "int": "number",
    "int | None": "number or none",
    "float | None": "number or none",
    "str": "name",
}
"""Annotation of a setting → what a user writes."""


def experiment_rows() -> Rows:
    """Return a row for every bundled experiment. Times are estimates, for the full and the quick form."""
    return [_experiment_row(name, path) for name, path in bundled().items()]


def _experiment_row(name: str, path: Path) -> dict[str, Any]:
    plan = read_plan(path)
    quick = [units.minutes(seconds_of(read_plan(path, quick=True)))] if has_quick(path) else []
    source = plan.source
    return {
        "name": name,
        "arms": len(plan.arms),
        "claims": len(plan.claims),
        "rounds": plan.rounds,
        "takes about": units.minutes(seconds_of(plan)),
        "quick": "".join(quick) or units.UNKNOWN,
        "question": plan.question,
        "source": f"{source.authors}, {source.date}: {source.title}" if source else units.UNKNOWN,
    }


_LISTS: dict[str, Callable[[], Rows]] = {
    "strategies": strategy_rows_here,
    "clients": client_rows,
    "executors": executor_rows,
    "experiments": experiment_rows,
    "figures": figure_rows,
    "settings": setting_rows,
}


_NOT_IN_MARKDOWN = ("quirks", "unit")
"""Columns that repeat themselves too often for a page; the unit is also in the full name of a figure."""


def markdown(rows: Rows) -> str:
    """Return rows as a Markdown table. Names are code; bars and angle brackets in other cells are escaped."""
    rows = [{key: value for key, value in row.items() if key not in _NOT_IN_MARKDOWN} for row in rows]
    cells = ([f"`{name}`", *(_escaped(str(cell)) for cell in rest)] for name, *rest in (row.values() for row in rows))
    lines = [list(rows[0]), ["---"] * len(rows[0]), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")


@click.command(name="list")
@click.argument("what", type=click.Choice(list(_LISTS)), default="strategies")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a Markdown table.")
def list_(what: str, *, as_json: bool, as_markdown: bool) -> None:
    """List strategies (the default), clients and more."""
    plugins.installed()
    for fault in resolve.faults():
        where, _, error = str(fault).partition("\n")
        click.echo(f"clientlab: {where}" + (f"\n  {error}" if error else ""), err=True)
    rows = strategy_rows() if as_markdown and what == "strategies" else _LISTS[what]()
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    if as_markdown:
        click.echo(markdown(rows), nl=False)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in rows[0]:
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row.values()))
    console().print(table)


@click.command()
@click.argument("path", metavar="[FILE]", type=click.Path(path_type=Path), default=_DEFAULT)
def init(path: Path) -> None:
    """Write a commented experiment to start from.

    FILE is experiment.toml by default. An existing file is not changed.
    """
    if path.suffix != ".toml" or not re.fullmatch(NAME, path.stem) or len(path.stem) > MOST_CHARACTERS:
        raise LabError(
            f"{path}: the file names the experiment; write lower-case letters, digits, '.', '_' and '-', then .toml"
        )
    text = template().replace(str(_DEFAULT), path.name)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise LabError(f"{path} exists and was not changed; name another file") from error
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    click.echo(printable(f"{path} is written; measure it with: clientlab run {shlex.quote(str(path))}"))


def template() -> str:
    """Return the experiment that `clientlab init` writes."""
    return (files("clientlab") / "experiments" / "templates" / _DEFAULT).read_text(encoding="utf-8")
