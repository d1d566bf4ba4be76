"""Types of the command line's words."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from clientlab import delays

PIPE_COLUMNS = 150
"""Columns of a table where the output is no terminal, whose width is not known."""


def console(*, stderr: bool = False) -> Console:
    """Where tables go: as wide as the terminal, and wide enough for any table where there is none."""
    made = Console(stderr=stderr)
    return made if made.is_terminal else Console(stderr=stderr, width=PIPE_COLUMNS)


class SecondsType(click.ParamType[float]):
    """A length of time: 120ms, 2s, 1m or a number of seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return delays.seconds(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


SECONDS = SecondsType()


class ShareType(click.ParamType[float]):
    """A share between 0 and 1: 3% or 0.03."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            self.fail(f"{text!r} is not a share between 0 and 1; write 3% or 0.03.", param, ctx)
        return share


SHARE = ShareType()


def headers_of(lines: tuple[str, ...]) -> dict[str, str]:
    """``Name: value`` lines as a mapping. Raises click.BadParameter."""
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"{line!r} is not 'Name: value'.", param_hint="'--header'")
        headers[name.strip()] = value.strip()
    return headers


def body_of(word: str | None) -> str | None:
    """A body as given, or the text of the file in ``@FILE``. Raises click.BadParameter."""
    if word is None or not word.startswith("@"):
        return word
    try:
        return Path(word[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{word}: {error}.", param_hint="'--body'") from error


OUT = click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder of results.",
)
