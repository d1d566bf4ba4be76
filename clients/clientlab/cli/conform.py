"""`clientlab conform`: check that a strategy does the same work as all others."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
from rich.markup import escape
from rich.table import Table

from clientlab import units
from clientlab.cli import completion
from clientlab.cli.option_types import console
from clientlab.cli.plugin_errors import faults_of, tell
from clientlab.conformance import CheckResult
from clientlab.conformance import conform as results_of
from clientlab.errors import IncompleteRun, LabError
from clientlab.strategies import Strategy, check_settings, client_spec, find, plugins

_ABREAST = 5
"""Strategies beside each other in the table of error kinds."""


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.strategies)
@click.option("--json", "as_json", is_flag=True, help="Print every check of every strategy as JSON.")
def conform(names: tuple[str, ...], *, as_json: bool) -> int:
    """Check strategies against a server that records everything it receives. Exit code 1: a check failed.

    NAME is a listed strategy, CLIENT@EXECUTOR, or your own class: path/to/file.py:CLASS. Each takes some seconds.
    If your class cannot be loaded, two lines explain why, the other strategies are checked, and the exit code is 3.
    """
    plugins.admit(names)
    faults = faults_of(names)
    strategies = [find(name) for name in dict.fromkeys(names) if name not in faults]
    _check(strategies)
    tell(faults.values())
    judged = {}
    for strategy in strategies:
        judged[strategy.name] = results = list(results_of(strategy))
        if not as_json:
            _tell(strategy.name, results)
    if as_json:
        click.echo(json.dumps([_document(name, results) for name, results in judged.items()], indent=1))
    else:
        for start in range(0, len(strategies), _ABREAST):
            abreast = list(judged)[start : start + _ABREAST]
            console().print(_faults({name: judged[name] for name in abreast}))
    if faults:
        return IncompleteRun.exit_code
    return 0 if all(result.passed for results in judged.values() for result in results) else 1


def _check(strategies: Sequence[Strategy]) -> None:
    """Raise LabError for a strategy without checks: an external program."""
    for strategy in strategies:
        check_settings(strategy)
        if client_spec(strategy.client).program:
            raise LabError(
                f"strategy {strategy.name!r} is an external program, which these checks do not cover; "
                "run scripts/test tests/clients/test_apache_bench.py"
            )


def _document(name: str, results: Sequence[CheckResult]) -> dict[str, object]:
    checks = [
        {"check": r.check, "passed": r.passed, "broken": r.broken, "kind": r.kind, "unchecked": r.unchecked}
        for r in results
    ]
    return {"strategy": name, "conforms": all(result.passed for result in results), "checks": checks}


def _tell(name: str, results: Sequence[CheckResult]) -> None:
    broken = [result for result in results if not result.passed]
    how = f"fails {len(broken)} of {len(results)} checks" if broken else f"passes all {len(results)} checks"
    click.echo(f"{name}: {how}")
    for result in broken:
        click.echo(f"  {result.check}: {' '.join(result.broken.split())}")
    for result in results:
        if result.unchecked:
            click.echo(f"  {result.check}: not checked, {result.unchecked}")


def _faults(judged: dict[str, Sequence[CheckResult]]) -> Table:
    """Fault × strategy → the kind of error that the strategy reports."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("fault", no_wrap=True)
    kinds: dict[str, dict[str, str]] = {}
    for name, results in judged.items():
        table.add_column(escape(name), overflow="fold")
        for result in results:
            if result.kind is not None:
                kinds.setdefault(result.check, {})[name] = result.kind if result.passed else f"{result.kind} BROKEN"
    for fault, row in kinds.items():
        table.add_row(fault, *(escape(row.get(name, units.UNKNOWN)) for name in judged))
    return table
