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
