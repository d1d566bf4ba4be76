"""`clientlab init`: write an experiment file to start from."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path

import click

from clientlab.errors import LabError
from clientlab.experiments.experiment import MOST_CHARACTERS, NAME
from clientlab.printable import printable

_DEFAULT = Path("experiment.toml")


@click.command()
@click.argument("path", metavar="[FILE]", type=click.Path(path_type=Path), default=_DEFAULT)
def init(path: Path) -> None:
    """Write a commented experiment to FILE. Without FILE, it is experiment.toml. An existing file is never changed."""
    if path.suffix != ".toml" or not re.fullmatch(NAME, path.stem) or len(path.stem) > MOST_CHARACTERS:
        raise LabError(
            f"{path}: the file's name is the experiment's; write lower-case letters, digits, '.' and '-', then .toml"
        )
    text = template().replace(str(_DEFAULT), path.name)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise LabError(f"{path} exists and was not changed; name another file") from error
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    click.echo(printable(f"{path} is written; measure it with: clientlab run {shlex.quote(str(path))}"))


def template() -> str:
    """The experiment that `clientlab init` writes."""
    return (files("clientlab") / "experiments" / "templates" / _DEFAULT).read_text(encoding="utf-8")
