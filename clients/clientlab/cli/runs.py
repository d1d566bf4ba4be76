"""`clientlab runs`: list and remove the runs of a results folder."""

from __future__ import annotations

import json
from pathlib import Path

import click

from clientlab.cli.option_types import OUT, complete_runs
from clientlab.cli.terminal import console
from clientlab.errors import LabError
from clientlab.printable import printable
from clientlab.reports import run_list
from clientlab.results.store import Store


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@OUT
@click.pass_context
def runs(context: click.Context, folder: Path, *, as_json: bool) -> None:
    """List the runs of a results folder, or remove some of them."""
    context.obj = folder
    if context.invoked_subcommand is not None:
        return
    rows = run_list.rows(Store(folder))
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    elif rows:
        console().print(run_list.render(rows))
    else:
        click.echo(printable(f"no run in {folder} yet"))


@runs.command()
@click.argument("names", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_runs)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--out", "folder", type=click.Path(file_okay=False, path_type=Path), help="Folder of the runs.")
@click.pass_obj
def rm(listed: Path, names: tuple[str, ...], folder: Path | None, *, yes: bool) -> None:
    """Remove runs, with their samples and logs.

    Runs outside the results folder are refused, and those that are being measured.
    """
    store = Store(folder or listed)
    found = list(dict.fromkeys(map(store.inside, names)))
    if not yes:
        _confirm(found)
    for name in found:
        store.remove(name)
        click.echo(printable(f"removed: {name}"))


def _confirm(names: list[str]) -> None:
    try:
        agreed = click.confirm(f"Remove {', '.join(names)}?", err=True)
    except click.Abort:
        click.echo(err=True)
        agreed = False
    if not agreed:
        raise LabError("runs rm: nothing was removed; answer y, or add --yes")
