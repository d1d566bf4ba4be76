"""Blocks of the documentation that hold the output of a clientlab command; `python -m
generate` refreshes them.

A block has two marker lines, and the output of the command is written between them:

    <!-- $ clientlab list strategies --markdown -->
    <!-- end -->

The output of ``--markdown`` is inserted unchanged, and any other output as a fenced
block, 100 columns wide. A command that ends with ``| claims`` gives its output up to
the table of claims.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
from functools import cache
from pathlib import Path
from unittest.mock import patch

import click
from click.testing import CliRunner

from clientlab.cli import commands, output

ROOT = Path(__file__).parents[1]
COLUMNS = 100
_BEGIN = "<!-- $ "
_BLOCK = re.compile(
    rf"^{re.escape(_BEGIN)}(clientlab [^\n]+) -->\n(.*?)^<!-- end -->$",
    re.DOTALL | re.MULTILINE,
)
_RUN_FILE = ".json.gz"
_CLAIMS = " | claims"
_TO_CLAIMS = re.compile(r".*?^\| verdict \|.*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


class BlockError(Exception):
    """A block has no end, or its command failed."""


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is stale.")
def generate(*, check: bool) -> None:
    """Refresh the generated blocks of the documentation."""
    try:
        texts = find_stale_pages()
    except BlockError as error:
        raise click.ClickException(str(error)) from error
    for path, text in texts.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        click.echo(f"{'stale' if check else 'written'}: {path.relative_to(ROOT)}")
    sys.exit(1 if check and texts else 0)


def find_stale_pages() -> dict[Path, str]:
    """Return the files whose blocks are not current, with the text that they should
    have.

    Raise BlockError.
    """
    found = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        before = path.read_text(encoding="utf-8")
        try:
            after = refresh(before)
        except BlockError as error:
            raise BlockError(f"{path.relative_to(ROOT)}: {error}") from error
        if after != before:
            found[path] = after
    return found


def refresh(text: str) -> str:
    """Return the text with the current output in each block. Raise BlockError."""
    for command, content in _BLOCK.findall(text):
        if _BEGIN in content:
            raise BlockError(f"{command!r}: the block has no line <!-- end -->")
    if len(_BLOCK.findall(text)) < len(
        re.findall(rf"^{re.escape(_BEGIN)}", text, re.MULTILINE)
    ):
        raise BlockError(
            "a block has no line <!-- end -->, or its command is not clientlab"
        )
    return _BLOCK.sub(
        lambda found: (
            f"{_BEGIN}{found[1]} -->\n\n{run_command(found[1])}\n\n<!-- end -->"
        ),
        text,
    )


@cache
def run_command(command: str) -> str:
    """Return what the command prints, as Markdown, or a line that says that its run
    file does not exist yet.
    """
    words = shlex.split(command.removesuffix(_CLAIMS))[1:]
    for word in words:
        if word.endswith(_RUN_FILE) and not (ROOT / word).exists():
            name = Path(word).name.removesuffix(_RUN_FILE)
            return (
                f"*Not measured yet: `scripts/findings {name}` puts the result here.*"
            )
    with contextlib.chdir(ROOT), patch.object(output, "PIPE_COLUMNS", COLUMNS):
        plain = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
        result = CliRunner().invoke(commands, words, prog_name="clientlab", env=plain)
    if result.exception is not None:
        raise BlockError(
            f"{command!r} failed: {result.stderr.strip() or result.exception!r}"
        ) from result.exception
    text = result.stdout.strip("\n")
    if "--markdown" not in words:
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        return f"```text\n{lines}\n```"
    if command.endswith(_CLAIMS):
        found = _TO_CLAIMS.match(text)
        if found is None:
            raise BlockError(f"{command!r}: the run has no claims")
        text = found[0]
    return text


if __name__ == "__main__":
    generate(prog_name="scripts/generate")
