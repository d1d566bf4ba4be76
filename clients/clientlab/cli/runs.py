"""`clientlab runs`: list and remove the runs of a results folder."""

from __future__ import annotations

import json
from pathlib import Path

import click

from clientlab.cli.options import JSON, OUT, complete_runs
from clientlab.cli.terminal import echo
from clientlab.errors import LabError
from clientlab.printable import printable


@click.group(invoke_without_command=True)
@JSON
@OUT
@click.pass_context
def runs(context: click.Context, folder: Path, *, as_json: bool) -> None:
    """List the runs of a results folder, or remove some of them."""
    from clientlab.cli.tables import console
    from clientlab.reports import run_list
    from clientlab.results.store import Store

    context.obj = folder
    if context.invoked_subcommand is not None:
        return
    rows = run_list.rows(Store(folder))
    if as_json:
        echo(json.dumps(rows, indent=1))
    elif rows:
        console().print(run_list.render(rows))
    else:
        echo(f"no run in {folder} yet")


@runs.command()
@click.argument("names", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_runs)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--out", "folder", type=click.Path(file_okay=False, path_type=Path), help="Folder of the runs.")
@click.pass_obj
def rm(listed: Path, names: tuple[str, ...], folder: Path | None, *, yes: bool) -> None:
    """Remove runs, with their samples and logs.

    Runs outside the results folder are refused, and those that are being measured.
    """
    from clientlab.results.store import Store

    store = Store(folder or listed)
    found = list(dict.fromkeys(map(store.inside, names)))
    if not yes:
        try:
            agreed = click.confirm(printable(f"Remove {', '.join(found)}?"), err=True)
        except click.Abort:
            echo("", err=True)
            agreed = False
        if not agreed:
            raise LabError("runs rm: nothing was removed; answer y, or add --yes")
    for name in found:
        store.remove(name)
        echo(f"removed: {name}")
