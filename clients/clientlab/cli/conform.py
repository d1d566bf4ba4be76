"""`clientlab conform`: whether a strategy does the same work as all others, and what it breaks."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
from rich.markup import escape
from rich.table import Table

from clientlab.cli.left_out import faults_of, tell
from clientlab.cli.words import console
from clientlab.conformance import Result
from clientlab.conformance import conform as results_of
from clientlab.errors import IncompleteRun, LabError
from clientlab.strategies import Strategy, check_settings, client_row, find

_ABREAST = 5
"""Strategies beside each other in the table of faults."""


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Every check of every strategy as JSON.")
def conform(names: tuple[str, ...], *, as_json: bool) -> int:
    """Check strategies against a server that notes all that reaches it; exit 1 where one breaks something.

    NAME is a listed strategy, CLIENT@EXECUTOR, or a class of yours: path/to/file.py:CLASS. Takes some
    seconds each. A class of yours that can't be loaded is told in two lines; the others are checked, and the
    exit code is 3.
    """
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
    """Raises LabError for one that has no drills."""
    for strategy in strategies:
        check_settings(strategy)
        if client_row(strategy.client).program:
            raise LabError(
                f"strategy {strategy.name!r} is a driver, and sends no bodies exactly alike; "
                "scripts/test tests/clients/test_apache_bench.py has what holds of it"
            )


def _document(name: str, results: Sequence[Result]) -> dict[str, object]:
    checks = [
        {"check": r.check, "passed": r.passed, "broken": r.broken, "kind": r.kind, "unchecked": r.unchecked}
        for r in results
    ]
    return {"strategy": name, "conforms": all(result.passed for result in results), "checks": checks}


def _tell(name: str, results: Sequence[Result]) -> None:
    broken = [result for result in results if not result.passed]
    how = f"breaks {len(broken)} of {len(results)} checks" if broken else f"keeps to all {len(results)} checks"
    click.echo(f"{name}: {how}")
    for result in broken:
        click.echo(f"  {result.check}: {' '.join(result.broken.split())}")
    for result in results:
        if result.unchecked:
            click.echo(f"  {result.check}: not checked, {result.unchecked}")


def _faults(judged: dict[str, Sequence[Result]]) -> Table:
    """Faults × strategies: the kind of error that each makes of each."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("fault", no_wrap=True)
    kinds: dict[str, dict[str, str]] = {}
    for name, results in judged.items():
        table.add_column(escape(name), overflow="fold")
        for result in results:
            if result.kind is not None:
                kinds.setdefault(result.check, {})[name] = result.kind if result.passed else f"{result.kind} BROKEN"
    for fault, row in kinds.items():
        table.add_row(fault, *(escape(row.get(name, "-")) for name in judged))
    return table
