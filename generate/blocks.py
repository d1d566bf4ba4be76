"""Blocks of the documentation that hold the output of a clientlab command.

A block is made of two marker lines, and `refreshed` writes the output of the command between them:

    <!-- $ clientlab list strategies --markdown -->
    <!-- end -->

Output of ``--markdown`` is put in as it is, any other output in a fence, 100 columns wide. A command that ends with
``| claims`` gives its output up to the table of claims.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from functools import cache
from pathlib import Path
from unittest.mock import patch

from click.testing import CliRunner

from clientlab.cli import commands, tables

ROOT = Path(__file__).parents[1]
COLUMNS = 100
_BEGIN = "<!-- $ "
_BLOCK = re.compile(rf"^{re.escape(_BEGIN)}(clientlab [^\n]+) -->\n(.*?)^<!-- end -->$", re.DOTALL | re.MULTILINE)
_RUN_FILE = ".json.gz"
_CLAIMS = " | claims"
_TO_CLAIMS = re.compile(r".*?^\| verdict \|.*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


class BlockError(Exception):
    """A block without an end, or whose command failed."""


def pages() -> list[Path]:
    """Return the files that may hold blocks."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def refreshed(text: str) -> str:
    """Return the text with the current output in each block. Raises BlockError."""
    for command, content in _BLOCK.findall(text):
        if _BEGIN in content:
            raise BlockError(f"{command!r}: the block has no line <!-- end -->")
    if len(_BLOCK.findall(text)) < len(re.findall(rf"^{re.escape(_BEGIN)}", text, re.MULTILINE)):
        raise BlockError("a block has no line <!-- end -->, or its command is not clientlab")
    return _BLOCK.sub(lambda found: f"{_BEGIN}{found[1]} -->\n\n{output(found[1])}\n\n<!-- end -->", text)


@cache
def output(command: str) -> str:
    """Return what the command prints, as Markdown. Raises BlockError.

    A run file that is not there yet gives a line that says so.
    """
    words = shlex.split(command.removesuffix(_CLAIMS))[1:]
    for word in words:
        if word.endswith(_RUN_FILE) and not (ROOT / word).exists():
            name = Path(word).name.removesuffix(_RUN_FILE)
            return f"*Not measured yet: `scripts/findings {name}` puts the result here.*"
    with contextlib.chdir(ROOT), patch.object(tables, "PIPE_COLUMNS", COLUMNS):
        plain = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
        result = CliRunner().invoke(commands, words, prog_name="clientlab", env=plain)
    if result.exception is not None:
        raise BlockError(f"{command!r} failed: {result.stderr.strip() or result.exception!r}") from result.exception
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


def stale() -> dict[Path, str]:
    """Return the files whose blocks are not current, with the text that they should have. Raises BlockError."""
    found = {}
    for path in pages():
        before = path.read_text(encoding="utf-8")
        try:
            after = refreshed(before)
        except BlockError as error:
            raise BlockError(f"{path.relative_to(ROOT)}: {error}") from error
        if after != before:
            found[path] = after
    return found
