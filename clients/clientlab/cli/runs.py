"""`clientlab runs`: list, remove, export and import the runs of a results folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from clientlab.cli.option_types import OUT, complete_runs
from clientlab.cli.terminal import console
from clientlab.errors import LabError
from clientlab.printable import printable
from clientlab.reports import run_list
from clientlab.results import archive, leftovers
from clientlab.results.store import Store


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@OUT
@click.pass_context
def runs(context: click.Context, folder: Path, *, as_json: bool) -> None:
    """List the runs of a results folder; remove, export, import them."""
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


def _out(command: Any) -> Any:
    """Add the option of the results folder, whose default is that of the group."""
    return click.option(
        "--out", "folder", type=click.Path(file_okay=False, path_type=Path), callback=_given, help="Folder of results."
    )(command)


def _given(context: click.Context, _option: click.Parameter, folder: Path | None) -> Path:
    return folder if folder is not None else context.obj


@runs.command()
@click.argument("names", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_runs)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_out
def rm(names: tuple[str, ...], folder: Path, *, yes: bool) -> None:
    """Remove runs with their samples and logs, and folders without a run file that killed runs left.

    Runs outside the results folder are refused, and those that are being measured.
    """
    store = Store(folder)
    found = list(dict.fromkeys(name if _is_leftover(store, name) else store.inside(name) for name in names))
    if not yes:
        _confirm(found)
    for name in found:
        if _is_leftover(store, name):
            leftovers.remove(store, name)
        else:
            store.remove(name)
        click.echo(printable(f"removed: {name}"))


def _is_leftover(store: Store, name: str) -> bool:
    """Whether it is the whole name of a folder without a run file, which a run that was killed has left."""
    return Path(name).name == name and leftovers.is_leftover(store.folder / name)


def _confirm(names: list[str]) -> None:
    try:
        agreed = click.confirm(f"Remove {', '.join(names)}?", err=True)
    except click.Abort:
        click.echo(err=True)
        agreed = False
    if not agreed:
        raise LabError("runs rm: nothing was removed; answer y, or add --yes")


@runs.command()
@click.argument("name", metavar="RUN", shell_complete=complete_runs)
@click.argument("target", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@_out
def export(name: str, target: Path, folder: Path) -> None:
    """Write a run and its kept samples to one file, FILE.zip."""
    count = archive.pack(Store(folder), name, target)
    click.echo(printable(f"{target}: the run, and samples of {count} trials"))


@runs.command(name="import")
@click.argument("source", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace a run of the same name.")
@_out
def import_(source: Path, folder: Path, *, force: bool) -> None:
    """Import an exported run. The whole FILE is checked before anything is stored."""
    run = archive.unpack(Store(folder), source, force=force)
    click.echo(printable(f"{folder / run.run}: {len(run.trials)} trials"))
