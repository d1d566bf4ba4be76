"""`python -m generate`: refresh the generated blocks of the documentation; with --check, only name the stale files."""

from __future__ import annotations

import sys

import click

from generate.blocks import ROOT, BlockError, stale


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is stale.")
def generate(*, check: bool) -> None:
    """Refresh the generated blocks of the documentation."""
    try:
        texts = stale()
    except BlockError as error:
        raise click.ClickException(str(error)) from error
    for path, text in texts.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        click.echo(f"{'stale' if check else 'written'}: {path.relative_to(ROOT)}")
    sys.exit(1 if check and texts else 0)


if __name__ == "__main__":
    generate(prog_name="scripts/generate")
