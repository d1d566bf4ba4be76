"""`clientlab list`: what there is to compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from clientlab.cli.words import console
from clientlab.reports import units
from clientlab.runs.estimate import seconds_of
from clientlab.runs.experiment_file import bundled, has_quick, read_experiment
from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES, foreign, plugins, unavailable

Rows = list[dict[str, Any]]


def strategy_rows() -> Rows:
    """Every listed strategy. `concurrency` is its own, used where -c is not given; `source` its articles."""
    return [
        {
            "name": strategy.name,
            "client": strategy.client,
            "executor": strategy.executor,
            "concurrency": strategy.concurrency,
            "connections": strategy.policy,
            "source": strategy.source,
            "note": f"{strategy.wrong}; mended by {strategy.mended_by}" if strategy.wrong else "",
        }
        for strategy in (*STRATEGIES.values(), *foreign.of_packages().values())
    ]


def strategy_rows_here() -> Rows:
    """The same, with what keeps a strategy from being measured on this machine before its note."""
    rows = strategy_rows()
    for row, strategy in zip(rows, (*STRATEGIES.values(), *foreign.of_packages().values()), strict=True):
        if reason := unavailable(strategy):
            row["note"] = "; ".join(filter(None, (f"unavailable: {reason}", row["note"])))
    return rows


def client_rows() -> Rows:
    """Every client."""
    return [
        {"name": row.name, "kind": row.kind, "http": row.http, "connections": row.policy, "says": row.says}
        for row in (*CLIENTS.values(), *plugins.installed().clients.values())
    ]


def executor_rows() -> Rows:
    """Every executor."""
    rows = (*EXECUTORS.values(), *plugins.installed().executors.values())
    return [{"name": row.name, "runs": row.needs, "says": row.says} for row in rows]


def experiment_rows() -> Rows:
    """Every bundled experiment; times are estimates, in full and in the quick form."""
    return [_experiment_row(name, path) for name, path in bundled().items()]


def _experiment_row(name: str, path: Path) -> dict[str, Any]:
    experiment = read_experiment(path)
    quick = [units.minutes(seconds_of(read_experiment(path, quick=True)))] if has_quick(path) else []
    source = experiment.source
    return {
        "name": name,
        "arms": len(experiment.arms()),
        "claims": len(experiment.claims),
        "rounds": experiment.rounds,
        "takes about": units.minutes(seconds_of(experiment)),
        "quick": "".join(quick) or units.NOTHING,
        "question": experiment.question,
        "source": f"{source.authors}, {source.date}: {source.title}" if source else units.NOTHING,
    }


_LISTS: dict[str, Callable[[], Rows]] = {
    "strategies": strategy_rows_here,
    "clients": client_rows,
    "executors": executor_rows,
    "experiments": experiment_rows,
}


def markdown(rows: Rows) -> str:
    """Rows as a Markdown table: README's, and held to it by a test."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(map(str, row.values())) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@click.command(name="list")
@click.argument("what", type=click.Choice(list(_LISTS)), default="strategies")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="As a Markdown table.")
def list_(what: str, *, as_json: bool, as_markdown: bool) -> None:
    """List strategies, clients, executors or experiments."""
    for fault in foreign.faults():
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
