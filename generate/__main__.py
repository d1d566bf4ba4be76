"""`python -m generate`: write all generated files; with --check, only name those that are stale."""

from __future__ import annotations

import sys

import click

from generate.blocks import BlockMissing
from generate.registry import stale, write


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is stale.")
def generate(*, check: bool) -> None:
    """Write the files and blocks that follow from the code."""
    try:
        names = stale() if check else write()
    except BlockMissing as error:
        raise click.ClickException(str(error)) from error
    for name in names:
        click.echo(f"{'stale' if check else 'written'}: {name}")
    if check and names:
        click.echo("run scripts/generate", err=True)
        sys.exit(1)


if __name__ == "__main__":
    generate(prog_name="scripts/generate")
