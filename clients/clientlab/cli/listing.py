"""`clientlab list` and `clientlab init`: what can be measured, and an experiment file to start from."""

from __future__ import annotations

import json
import re
import shlex
from importlib.resources import files
from pathlib import Path

import click

from clientlab.cli.options import JSON
from clientlab.cli.terminal import echo, say
from clientlab.errors import LabError, PluginError

_DEFAULT = Path("experiment.toml")
_LISTS = ["strategies", "clients", "executors", "experiments", "figures", "settings"]


@click.command(name="list")
@click.argument("what", type=click.Choice(_LISTS), default="strategies")
@JSON
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
def list_(what: str, *, as_json: bool, markdown: bool) -> None:
    """List strategies (the default), clients and more."""
    from clientlab.cli import catalogue
    from clientlab.cli.tables import print_table
    from clientlab.strategies import plugins

    plugins.admit_packages()
    for fault in (one for one in plugins.of_packages() if isinstance(one, PluginError)):
        say(fault)
    rows = catalogue.rows(what, here=not markdown)
    if as_json:
        echo(json.dumps(rows, indent=1))
    elif markdown:
        echo(catalogue.markdown(rows), nl=False)
    else:
        print_table(rows)


@click.command()
@click.argument("path", metavar="[FILE]", type=click.Path(path_type=Path), default=_DEFAULT)
def init(path: Path) -> None:
    """Write a commented experiment to start from.

    FILE is experiment.toml by default. An existing file is not changed.
    """
    from clientlab.experiments.experiment import NAME

    if path.suffix != ".toml" or not re.fullmatch(NAME, path.stem):
        raise LabError(
            f"{path}: the file names the experiment; write lower-case letters, digits, '.', '_' and '-', then .toml"
        )
    with path.open("x", encoding="utf-8") as file:
        file.write(template().replace(str(_DEFAULT), path.name))
    echo(f"{path} is written; measure it with: clientlab run {shlex.quote(str(path))}")


def template() -> str:
    """Return the experiment that `clientlab init` writes."""
    return (files("clientlab") / "experiments" / "templates" / _DEFAULT).read_text(encoding="utf-8")
